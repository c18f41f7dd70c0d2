"""The folder of a campaign: a configuration, and programs for its runs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

BASE = """<wavesim><time step="20 ms"/><world><current north="0.1 m/s"/></world><fleet><sensors><ctd/></sensors>
<vehicle name="a" model="lauv" position="0 0 10 m"><waypoint north="20 m" east="0 m" depth="10 m"/></vehicle>
<vehicle name="b" model="lauv" position="0 30 10 m"/></fleet></wavesim>"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "base.xml").write_text(BASE)
    shutil.copy(Path(__file__).with_name("programs.py"), tmp_path / "programs.py")
    return tmp_path
