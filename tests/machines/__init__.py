"""Machines that only tests know."""

from __future__ import annotations

from pathlib import Path

CROWD = str(Path(__file__).with_name("crowd.yaml"))
FILLING = str(Path(__file__).with_name("filling.yaml"))
WEIGHTS = str(Path(__file__).with_name("weights.yaml"))
