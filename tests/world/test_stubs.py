"""`wavesim stubs`: a type checker sees the bodies of a configuration, and refuses a misspelt sensor, field or actuator."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import wavesim
from tests.examples.pages import page_blocks
from wavesim_world.config import LoadedConfig
from wavesim_world.stubs import class_name, identifier, module_text

FLEET = """<fleet>
<vehicle name="lauv" model="lauv" position="0 0 5 m"><sensors><ctd/><ahrs/><dvl name="dvl-down"/></sensors></vehicle>
<vehicle name="2nd-boat" model="jolner" position="0 50 0 m"><sensors><gps position="0 0 -1 m"/></sensors></vehicle>
<buoy name="class" model="buoy" position="0 90 0 m"/></fleet>"""
GOOD = """
from vehicles import Class, Lauv, _2ndBoat
from wavesim_sdk.broker import Broker

with Broker(Lauv.name) as broker:
    for step in broker.steps():
        s = Lauv.sensors(step)
        temperature: float = s.ctd.temperature
        rates: tuple[float, ...] = s.ahrs.rates
        altitude: float = s["dvl-down"].altitude
        log = s.get("dvl-down")
        nothing: float | None = None if log is None else log.altitude
        broker.answer(Lauv.command(propeller=8.0, rudder_top=0.1, plane_port=None))
        fix = _2ndBoat.sensors(step)["gps"].latitude, _2ndBoat.command(port=1.0), Class.sensors(step)
"""
BAD = {
    "s.cdt.temperature": '"LauvSensors" has no attribute "cdt"',
    "s.ctd.temprature": '"CtdValue" has no attribute "temprature"; maybe "temperature"?',
    's["dvl"]': 'No overload variant of "__getitem__" of "LauvSensors" matches',
    "Lauv.command(propeler=8.0)": 'Unexpected keyword argument "propeler" for "command"',
    "s.ctd.temperature.upper()": '"float" has no attribute "upper"',
    "Class.command()": '"type[Class]" has no attribute "command"',
}


@pytest.mark.timeout(600)
def test_a_type_checker_refuses_what_a_body_does_not_have(
    root: Path, config: Callable[..., LoadedConfig], tmp_path: Path
) -> None:
    written = tmp_path / "work"
    written.mkdir()
    done = wavesim("stubs", config(FLEET).path, "--out", written / "vehicles.py")
    assert done.returncode == 0 and done.stdout == f"wrote {written / 'vehicles.py'}\n", done.stderr
    lines = GOOD.splitlines()
    program = "\n".join([*lines, *(f"        {bad}" for bad in BAD)])
    (written / "program.py").write_text(program)
    (page,) = (b for b in page_blocks(root, "docs/broker.md") if b.title == "typed.py")
    (written / "page.py").write_text(page.text)
    checker = [sys.executable, "-m", "mypy", "--strict", "--config-file", "", "--cache-dir", str(tmp_path / "cache")]
    paths = os.pathsep.join(str(root / part) for part in ("wavesim", "broker_sdk", "world", "server", "kernels"))
    done = subprocess.run(
        [*checker, "--follow-imports=silent", "program.py", "vehicles.py", "page.py"],
        cwd=written,
        env={**os.environ, "MYPYPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    errors = dict(re.findall(r"^program\.py:(\d+): error: (.*)$", done.stdout, re.MULTILINE))
    assert done.stdout.count(": error:") == len(BAD), done.stdout
    for k, text in enumerate(BAD.values()):
        assert text in errors.get(str(len(lines) + k + 1), ""), done.stdout


def test_the_module_is_python_and_says_units(config: Callable[..., LoadedConfig]) -> None:
    names: dict[str, object] = {}
    text = module_text(config(FLEET))
    exec(compile(text, "vehicles.py", "exec"), names)
    lauv = names["Lauv"]
    assert lauv.command(rudder_top=0.1) == {"rudder-top": 0.1}  # type: ignore[attr-defined]
    assert "Absolute pressure (dbar)." in text and "rudder_top: -0.436332 to 0.436332 rad" in text
    assert identifier("2nd") == "_2nd" and identifier("class") == "class_" and identifier("dvl-down") == "dvl_down"
    taken: set[str] = set()
    assert [class_name(n, taken) for n in ("auv-1", "auv 1", "1st")] == ["Auv1", "Auv1_", "_1st"]


def test_a_mistake_is_one_line(tmp_path: Path) -> None:
    done = wavesim("stubs", tmp_path / "absent.xml")
    assert done.returncode == 2 and "Traceback" not in done.stderr and "absent.xml" in done.stderr
