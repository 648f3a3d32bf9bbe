"""Artifacts: exact, deterministic, written whole or not at all; damage is a diagnostic."""

from __future__ import annotations

import io
import json
import os
import zipfile
from copy import copy
from dataclasses import replace

import numpy as np
import pytest

from isam.artifact import Argument, Artifact, Size, from_bytes, load_artifact
from isam.diagnostics import IsamError


def sample() -> Artifact:
    return Artifact(
        name="rnn",
        backend="llvm",
        arguments=(Argument("x", "in", "f32", ((0, (("T", 2),)), (4, ()))), Argument("y", "out", "bf16", ())),
        sizes=(Size("T", 1, None, 2), Size("U", 0, 7)),
        entry="isam_call",
        workspace=256,
        bound=64,
        needs=("avx512f",),
        externals=(("isam.blas.sgemm", "blas:sgemm"),),
        provenance={"isam": "0", "größe": [1, None]},
        parts={"object.o": bytes(range(256)), "trace.json": b"{}", "a": b""},
    )


def test_round_trip_and_determinism(tmp_path):
    a = sample()
    assert from_bytes(a.to_bytes()) == a
    shuffled = replace(a, parts=dict(reversed(a.parts.items())))
    assert shuffled.to_bytes() == a.to_bytes()
    a.save(tmp_path / "k.isa")
    assert load_artifact(tmp_path / "k.isa") == a
    assert [p.name for p in tmp_path.iterdir()] == ["k.isa"]
    assert a.text("trace.json") == "{}"
    with pytest.raises(IsamError, match="artifact-part"):
        a.text("certificate.json")


def test_every_flipped_byte_is_noticed_or_harmless():
    content = sample().to_bytes()
    good = sample()
    for at in range(0, len(content), 3):
        bad = bytearray(content)
        bad[at] ^= 0x41
        try:
            read = from_bytes(bytes(bad))
        except IsamError as e:
            codes = {d.code.partition("-")[0] for d in e.diagnostics}
        else:
            codes = {"artifact"} if read == good else {"unnoticed"}  # a byte of the frame that nothing looks at
        assert codes == {"artifact"}, at


def test_every_truncation_is_a_diagnostic():
    content = sample().to_bytes()
    for n in range(0, len(content), 17):
        with pytest.raises(IsamError, match=r"artifact-(damaged|version)"):
            from_bytes(content[:n])


def rezipped(change, compress=zipfile.ZIP_STORED) -> bytes:
    parts = {}
    with zipfile.ZipFile(io.BytesIO(sample().to_bytes())) as z:
        parts = {n: z.read(n) for n in z.namelist()}
    manifest = json.loads(parts["manifest.json"])
    change(manifest, parts)
    parts["manifest.json"] = json.dumps(manifest).encode()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compress) as z:
        for n, b in parts.items():
            z.writestr(n, b)
    return out.getvalue()


FORGED = {
    "version": lambda m, p: m.update(schema="isam.artifact/2"),
    "part changed": lambda m, p: p.update({"object.o": b"other"}),
    "part missing": lambda m, p: p.pop("object.o"),
    "part added": lambda m, p: p.update(extra=b""),
    "no arguments": lambda m, p: m.pop("arguments"),
    "role": lambda m, p: m["arguments"][0].__setitem__(1, "temp"),
    "same name": lambda m, p: m["arguments"][1].__setitem__(0, "x"),
    "workspace": lambda m, p: m.update(workspace=-1),
    "bound": lambda m, p: m.update(bound=512),
    "not a number": lambda m, p: m.update(workspace=True),
    "multiple": lambda m, p: m["sizes"][0].__setitem__(3, 0),
    "needs": lambda m, p: m.update(needs=[1]),
}


@pytest.mark.parametrize("fault", FORGED)
def test_forged_manifests_are_refused(fault):
    with pytest.raises(IsamError, match=r"artifact-(damaged|version)"):
        from_bytes(rezipped(FORGED[fault]))


def test_parts_are_found_behind_what_other_programs_write_before_them():
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(sample().to_bytes())) as z, zipfile.ZipFile(out, "w") as other:
        for n in reversed(z.namelist()):
            info = zipfile.ZipInfo(n)
            info.extra = b"\xfe\xca\x03\x00abc"
            other.writestr(info, z.read(n))
    assert from_bytes(out.getvalue()) == sample()
    assert from_bytes(b"#! /usr/bin/env isam\n" + out.getvalue()) == sample()


def test_parts_that_lie_over_each_other_are_refused_before_they_are_read():
    """One part under many names would be as many times its size in memory."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        z.writestr("p", bytes(4096))
        for n in range(8):
            z.filelist.append(info := copy(z.getinfo("p")))
            info.filename = f"p{n}"
    with pytest.raises(IsamError, match="lie over each other"):
        from_bytes(out.getvalue())


def test_compressed_parts_and_foreign_files_are_refused(tmp_path):
    with pytest.raises(IsamError, match="compressed"):
        from_bytes(rezipped(lambda m, p: None, zipfile.ZIP_DEFLATED))
    for content in (b"", b"PK", b"\x80\x04}.", b"null", os.urandom(1000)):
        with pytest.raises(IsamError, match="artifact-damaged"):
            from_bytes(content)
    with pytest.raises(IsamError, match="artifact-read"):
        load_artifact(tmp_path / "missing.isa")
    with pytest.raises(IsamError, match="artifact-read"):
        load_artifact(tmp_path)


def test_a_failed_write_leaves_nothing(tmp_path, monkeypatch):
    target = tmp_path / "k.isa"
    target.write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", lambda f: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(IsamError, match="No space left"):
        sample().save(target)
    assert [p.name for p in tmp_path.iterdir()] == ["k.isa"]
    assert target.read_bytes() == b"old"
    monkeypatch.undo()
    with pytest.raises(IsamError, match="artifact-write"):
        sample().save(tmp_path / "no" / "such" / "folder.isa")


@pytest.mark.parametrize("place", [".", "./", "", "/", "..", "folder/"])
def test_what_names_no_file_cannot_be_written(tmp_path, monkeypatch, place):
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(IsamError, match="artifact-write"):
        sample().save(place)
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]


def test_links_are_followed_and_modes_stay(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    link.symlink_to("target")
    sample().save(link)
    assert link.is_symlink()
    assert load_artifact(target).name == sample().name
    target.chmod(0o640)
    sample().save(link)
    assert target.stat().st_mode & 0o777 == 0o640
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link", "target"]


def test_what_is_no_file_is_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(IsamError, match=r"artifact-write.*no file but a device"):
        sample().save(pipe)
    assert pipe.is_fifo()


def test_a_zip_of_something_else_is_no_artifact(tmp_path):
    np.savez(tmp_path / "x.npz", a=np.zeros(3))
    with pytest.raises(IsamError, match=r"artifact-damaged\]: .*x.npz is no ISAM artifact") as e:
        load_artifact(tmp_path / "x.npz")
    assert "isam compile" in e.value.diagnostics[0].hint
