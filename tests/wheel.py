"""The wheel, installed away from the checkout: ``python -m tests.wheel``. Dependencies are those of this environment.

What an editable install does not show: that descriptions, templates and benchmarks are inside the package.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CHECK = """
import sys, isam
from pathlib import Path
from isam.cli import main
from isam.system.find import roots
home = Path(sys.argv[1]).resolve()
assert home in Path(isam.__file__).resolve().parents, isam.__file__
assert [home / "isam" / "hwdesc"] == [r.resolve() for r in roots()], roots()
assert (home / "isam" / "py.typed").is_file()
for command in ("doctor", "system list", "system new mine -o mine.yaml", "system test mine.yaml",
                "demo --size 9 --seconds 0.01", "bench --only square --shape 16x16x16 --rounds 1 --seconds 0.001"):
    assert main(command.split()) == 0, command
"""


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        home, wheels = Path(folder) / "home", Path(folder) / "wheels"
        pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "wheel", "--no-deps", "-w", str(wheels), str(ROOT)], check=True)
        (wheel,) = wheels.glob("*.whl")
        subprocess.run([*pip, "install", "--no-deps", "--target", str(home), str(wheel)], check=True)
        env = {**os.environ, "PYTHONPATH": str(home)}
        done = subprocess.run([sys.executable, "-c", CHECK, str(home)], check=False, cwd=folder, env=env)
        print(f"{wheel.name}: {wheel.stat().st_size >> 10} KiB, {'works' if done.returncode == 0 else 'FAILS'}")
        return done.returncode


if __name__ == "__main__":
    sys.exit(main())
