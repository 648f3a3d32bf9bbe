"""Approaches by their files: what the command line takes without anything being installed."""

from __future__ import annotations

import sys

import pytest

from isam.approach.files import from_file, in_file
from isam.compiler import as_approach
from isam.diagnostics import IsamError

MINE = """import isam

class Smallest(isam.Approach):
    name, why = "smallest", "to see"

    def __init__(self, far=1):
        self.far = far

    @classmethod
    def given(cls, argument):
        return cls(int(argument))

class Thing:
    pass
"""


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(MINE)
    return path


def test_a_file_of_another_kind_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mm.isam").write_text("kernel k()\n")
    (tmp_path / "beam").write_text("")
    for name in ("mm.isam", "mm.isam:Foo", "mm.isam:Foo:7"):
        with pytest.raises(IsamError, match=r"approach-file\]: mm.isam is no file of Approaches: .* not end in \.py"):
            as_approach(name)
    for name in ("mine.isam:Foo", "nothing"):
        with pytest.raises(IsamError, match="registry-unknown"):
            as_approach(name)
    assert as_approach("beam:8") is not None  # a name first, whatever lies here


def test_a_class_in_a_file(mine):
    found = as_approach(f"{mine}:Smallest")
    assert (type(found).__name__, found.name, found.far) == ("Smallest", "smallest", 1)
    assert as_approach(f"{mine}:Smallest:7").far == 7
    assert not type(found).__module__.startswith("isam."), "what it decides is not kept under the name of a shipped one"
    assert not list(mine.parent.glob("__pycache__"))


def test_names_are_no_files():
    assert not any(map(in_file, ("greedy", "beam:8", "replay:trace.py", "replay:a.py:b", "")))
    assert as_approach("beam:8").name.startswith("beam")


@pytest.mark.parametrize(("text", "cls", "code", "said"), [
    (None, ":A", "approach-file", "cannot read"),
    (MINE, "", "approach-file", "needs the name of a class"),
    (MINE, ":Smalest", "approach-file", "did you mean 'Smallest'?"),
    (MINE, ":Other", "approach-file", "Approaches there: Smallest"),
    (MINE, ":Thing", "approach-type", "'Thing' in"),
    (MINE, ":isam", "approach-type", "'isam' in"),
    (MINE, ":Smallest:x", "approach-import", "mine.py:11:20: error[approach-import]: making a 'Smallest' raised"),
    ("x = 1\nx.y\n", ":A", "approach-import", "mine.py:2:1: error[approach-import]: importing it raised Attr"),
    ("x = 1\nclass\n", ":A", "approach-import", "mine.py:2:6: error[approach-import]: importing it raised SyntaxError"),
    ("import isam\nclass A(isam.Approach):\n  def tiel(self, c): ...\n", ":A", "approach-misspelt", "mine.py:3:1: "),
    ("import isam\nclass A(isam.Approach):\n  tries = -3\n  def tile(self, c): ...\n", ":A", "approach-value",
     "mine.py:4:1: error[approach-value]: 'tries' of the Approach A is -3, no whole number from one on"),
    ("import isam\nclass A(isam.Approach):\n  tries = 'many'\n  def tile(self, c): ...\n", ":A", "approach-value",
     "mine.py:4:1: error[approach-value]: 'tries' of the Approach A is 'many', no whole number"),
    ("import isam\nclass A(isam.Approach):\n  varied = ('tyle',)\n  def tile(self, c): ...\n", ":A", "approach-value",
     "'tyle' is no choice point"),
    ("import isam\nclass A(isam.Approach):\n  varied = 'tile'\n  def tile(self, c): ...\n", ":A", "approach-value",
     "a text, not several"),
    ("import sys\nsys.exit(0)\n", ":A", "approach-import", "mine.py:2:1: error[approach-import]: importing it"),
    ("\0", ":A", "approach-import", "mine.py"),
    ("import nowhere_at_all\n", ":A", "approach-import", "mine.py:1:1"),
])  # fmt: skip
def test_faults_are_located(tmp_path, text, cls, code, said):
    path = tmp_path / "mine.py"
    if text is not None:
        path.write_text(text)
    before = set(sys.modules)
    with pytest.raises(IsamError) as e:
        from_file(f"{path}{cls}")
    (fault,) = e.value.diagnostics
    assert fault.code == code
    assert fault.loc.file == str(path)
    assert said in str(e.value)
    if code == "approach-import" and "making" not in said:
        assert not [m for m in set(sys.modules) - before if m.startswith("approach_in_file")]
