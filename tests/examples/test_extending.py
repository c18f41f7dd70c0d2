"""The package of examples/extending, registered by its own entry points: its effect against closed forms, and its
accepted input.
"""

from __future__ import annotations

import importlib
import itertools
import json
import math
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from wavesim_sdk.errors import ConfigError
from wavesim_server import Simulation
from wavesim_server.acoustics import modems as registered
from wavesim_world.config import load_text

GROUP = "wavesim.dynamics"
OWN = ("broker_sdk", "kernels", "world", "devices", "conformance", "server", "emulators", "viz", "bridges", "studies")


@pytest.fixture(scope="module")
def offers(root: Path) -> dict[str, str]:
    """The lines of registration."""
    project = tomllib.loads((root / "examples/extending/pyproject.toml").read_text())
    return dict(project["project"]["entry-points"][GROUP])


def run(root: Path, site: Path, lines: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Python, where a package of the example's files is installed that has these lines; with compilation off: compiling
    takes a minute (`python examples/extending/sail.py` gives the same compiled)."""
    info = site / "extending-0.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: extending\nVersion: 0\n")
    (info / "entry_points.txt").write_text("\n".join([f"[{GROUP}]", *(f"{k} = {v}" for k, v in lines.items()), ""]))
    paths = [str(site), str(root / "examples/extending"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_what_they_do(root: Path, tmp_path: Path, offers: dict[str, str]) -> None:
    done = run(root, tmp_path, offers, str(root / "examples/extending/sail.py"))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    # (m + m_a) u' = -drag u abs(u): u = u0/(1 + drag u0 t/(m + m_a))
    exact = 2.0 / (1.0 + 60.0 * 2.0 * 2.0 / 300.0)
    assert found["rk4"] == [pytest.approx(exact, rel=1e-9), 0.0]
    errors = [abs(u - exact) for u in found["ralston"]]
    for a, b in itertools.pairwise(errors):
        assert math.log2(a / b) == pytest.approx(2.0, abs=0.1), "its order"
    # off the middle the same force turns the body: (I_z + N_r') r = y (m + m_a) (u0 - u)
    u, r = found["off the middle"]
    assert r == pytest.approx(0.1 * 300.0 * (2.0 - u) / 150.0, rel=1e-9) and r > 0.1
    assert found["trimmed"] == pytest.approx(-25.0 * 0.1 / (250.0 * 0.05), rel=1e-4), "tan theta = -m x/(M h)"


REFUSED = """
import sys
from wavesim_world.config import load
from wavesim_sdk.errors import WaveSimError
try:
    from wavesim_server import Simulation
    Simulation(load(sys.argv[1])).enter("a", "hull", (0.0, 0.0, 50.0))
except WaveSimError as error:
    print(error)
"""
HULL = """<wavesim><time integrator="{}"/><world><bed depth="100 m"/></world>
<models><model name="hull" type="underwater"><cylinder length="2 m" radius="0.2 m"/><mass value="250 kg"/><inertia xx="5" yy="80" zz="80"/>
<added-mass diagonal="50 240 240 0 70 70"/><linear-drag diagonal="9 9 9 9 9 9"/>{}</model></models></wavesim>"""
DRAG = '<coefficient name="drag" value="60"/>'


@pytest.mark.parametrize(
    ("integrator", "inner", "lines", "said"),
    [
        (
            "rk4",
            '<term name="drouge"/>',
            {},
            "model 'hull': no installed package provides the term 'drouge'; did you mean 'drogue'?",
        ),
        (
            "rk4",
            f'<term name="drogue">{DRAG}</term>',
            {},
            "'drogue' has the coefficients drag; specify each of drag x y z exactly once",
        ),
        ("rk4", '<actuator name="a" type="sail" minimum="0" maximum="1"/>', {}, "provides the type of actuator 'sail'"),
        ("ralson", "", {}, "unknown integrator 'ralson'; did you mean 'ralston'?"),
        (
            "rk4",
            "",
            {"parachute": "drogue:DROGUE"},
            "'parachute' of wavesim.dynamics must refer to a term, actuator type or integrator with the name 'parachute'",
        ),
        ("rk4", "", {"sail": "nowhere:SAIL"}, "the entry point 'sail' of wavesim.dynamics cannot be loaded: No module"),
    ],
    ids=["unknown term", "missing coefficient", "unknown type", "unknown integrator", "another name", "no module"],
)
def test_what_is_wrong_is_one_line(
    root: Path, tmp_path: Path, offers: dict[str, str], integrator: str, inner: str, lines: dict[str, str], said: str
) -> None:
    path = tmp_path / "c.xml"
    path.write_text(HULL.format(integrator, inner))
    done = run(root, tmp_path, {**offers, **lines}, "-c", REFUSED, str(path))
    assert done.returncode == 0, done.stderr
    assert said in done.stdout and done.stdout.count("\n") == 1, done.stdout


MODEMS = "wavesim.modems"


@pytest.fixture
def modems(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """The lines of registration of modems, as those of an installed package."""
    project = tomllib.loads((root / "examples/extending/pyproject.toml").read_text())
    lines = dict(project["project"]["entry-points"][MODEMS])
    monkeypatch.syspath_prepend(root / "examples/extending")
    offer(monkeypatch, lines)
    yield lines
    registered.modem_types.cache_clear()


def offer(monkeypatch: pytest.MonkeyPatch, lines: dict[str, str]) -> None:
    entries = [EntryPoint(name, place, MODEMS) for name, place in lines.items()]
    monkeypatch.setattr(registered, "entry_points", lambda group: entries)
    registered.modem_types.cache_clear()


@pytest.mark.usefixtures("modems")
def test_a_modem_of_ones_own() -> None:
    talk = importlib.import_module("talk")
    packets = 120
    plain, slotted = talk.talked("", packets), talk.talked("slotted", packets)
    assert plain["duration"] == pytest.approx(0.03 + 32 / 640) and slotted["duration"] == pytest.approx(0.03 + 56 / 640)
    assert plain["departures"] == pytest.approx([4.3 * k for k in range(8)], abs=1e-6), "at once"
    assert all((t - 1.5) / 4.0 == pytest.approx(round((t - 1.5) / 4.0), abs=1e-6) for t in slotted["departures"])
    sim, row = talk.simulation("slotted")
    for _ in range(2):
        sim.send(row, b"ping")
    sim.advance(70)
    assert (sim.take_signals()[0]["clock_ns"] * 1e-9).tolist() == pytest.approx([1.5, 5.5]), "one after the other"
    word = 0.98**7 + 7 * 0.02 * 0.98**6
    for found, exact in ((plain["share"], 0.98**32), (slotted["share"], word**8)):
        assert abs(found - exact) < 4.0 * math.sqrt(exact * (1.0 - exact) / packets)


def test_what_is_wrong_with_a_modem_is_one_line(modems: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    text = "<wavesim><world><bed depth='9 m'/></world><fleet><buoy name='a' model='buoy' position='0 0 0 m'><transducer><modem type='{}'/></transducer></buoy></fleet></wavesim>"
    for lines, name, said in (
        ({}, "sloted", "no installed package provides the modem type 'sloted'; did you mean 'slotted'?"),
        (
            {"aloha": "slotted:SLOTTED"},
            "slotted",
            "'aloha' of wavesim.modems must refer to a modem type with the name 'aloha'",
        ),
        (
            {"aloha": "nowhere:ALOHA"},
            "slotted",
            "the entry point 'aloha' of wavesim.modems cannot be loaded: No module",
        ),
    ):
        offer(monkeypatch, {**modems, **lines})
        with pytest.raises(ConfigError, match=re.escape(said)):
            Simulation(load_text(text.format(name))).enter_residents()


def test_a_modem_is_one_file_and_one_line(root: Path, modems: dict[str, str]) -> None:
    one_file_and_one_line(root, modems, 1)


def test_each_is_one_file_and_one_line(root: Path, offers: dict[str, str]) -> None:
    one_file_and_one_line(root, offers, 3)


def one_file_and_one_line(root: Path, offers: dict[str, str], count: int) -> None:
    page = (root / "docs/extending.md").read_text()
    sources = {p: p.read_text() for part in OWN for p in (root / part).rglob("*.py") if "build" not in p.parts}
    assert len(offers) == count and len(sources) > 100
    for name, place in offers.items():
        module, _, made = place.partition(":")
        file = root / "examples/extending" / f"{module}.py"
        assert f"\n```python\n{file.read_text()}```\n" in page, "the page shows the file as it is"
        assert f'\n{name} = "{place}"\n' in page
        others = [
            f for f in (root / "examples/extending").glob("*.py") if f.name not in (file.name, "sail.py", "talk.py")
        ]
        assert not [f for f in others if module in f.read_text()], "it needs no other file of its package"
        assert not [p for p, text in sources.items() if module in text or made in text], "nothing of WaVeSim knows it"
