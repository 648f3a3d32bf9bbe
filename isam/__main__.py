"""``python -m isam`` is the command ``isam``."""

from isam.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
