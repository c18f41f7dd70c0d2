"""The programs of docs/broker.md: each drives a vehicle, in a trial in this process, and does what the page says."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import io
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.examples.pages import Block, differs, page_blocks
from wavesim_sdk.log import read
from wavesim_sdk.onboard import Step
from wavesim_sdk.wire.items import Reception
from wavesim_server import Trial
from wavesim_server.resources import remove_leftovers
from wavesim_world.config import load
from wavesim_world.stubs import module_text

ROOT = Path(__file__).parents[2]
PAGE = "docs/broker.md"
BLOCKS = [b for b in page_blocks(ROOT, PAGE) if b.language == "python"]
PROGRAMS = [b for b in BLOCKS if "Broker(" in b.text]
MODEM = """<transducer position="0 0 0 m" listen_low="20 kHz" listen_high="32 kHz" threshold="90 dB" source_level="185 dB"
 pulse="10 ms" recharge="200 ms"><modem address="{}" bit_rate="1000" preamble="20 ms" frequency="26 kHz"/></transducer>"""
TRIAL = """<wavesim name="{name}" seed="3"><time step="10 ms" duration="13 s" pace="fast"/><network port="9750"/>
<log file="run.mcap"/><world latitude="41.18 deg" longitude="-8.70 deg"><bed depth="50 m"/></world>
<fleet><vehicle name="lauv" model="lauv" position="0 0 5 m" client="required">
<sensors><ctd rate="10 Hz"/><ahrs rate="10 Hz"/></sensors>{own}<program run="program.py"/></vehicle>
<buoy name="station" model="buoy" position="30 0 5 m">{other}</buoy></fleet></wavesim>"""
#: the program that drives, beside which an instrument runs
PILOT = 'from wavesim import Broker as _Broker\n_pilot = _Broker("lauv")\n_pilot.connect()\n'


def check_ranges(output: str) -> None:
    ranges = [float(r) for r in re.findall(r"s: ([\d.]+) m to modem 5$", output, re.MULTILINE)]
    assert len(ranges) >= 10 and all(29.0 < r < 31.0 for r in ranges), output


def check_temperature(output: str) -> None:
    assert output.count(" C\n") > 100


def check_probe(output: str) -> None:
    assert "ctd" in output and "ahrs" not in output


def check_keywords(output: str) -> None:
    assert output == "('surge', 'pitch', 'yaw', 'rudder', 'planes')\n"


CHECKS: dict[str, Callable[[str], None]] = {
    "broker.range_to(5)": check_ranges,
    "step.sensors.ctd.temperature:.2f": check_temperature,
    'role="instrument"': check_probe,
    "mix.keywords": check_keywords,
}


def run_in_trial(block: Block, folder: Path) -> tuple[str, Path]:
    """Return the output of a program of the page, and the log."""
    name = f"page{os.getpid()}"
    config = folder / "config.xml"
    config.write_text(TRIAL.format(name=name, own=MODEM.format(1), other=MODEM.format(5)))
    (folder / "program.py").write_text((PILOT if 'role="instrument"' in block.text else "") + block.text)
    (folder / "vehicles.py").write_text(module_text(load(config)))
    assert remove_leftovers(name) == []
    with Trial(config, folder / "out") as trial:
        trial.run()
    return trial.output("lauv"), trial.log


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_programs_of_the_page_drive(tmp_path: Path, number: int) -> None:
    block = PROGRAMS[number]
    output, log = run_in_trial(block, tmp_path)
    assert "Traceback" not in output, f"{block}\n{output}"
    for sign, check in CHECKS.items():
        if sign in block.text:
            check(output)
    recorded = read(log)
    assert recorded.complete
    if "Estimate(" in block.text:
        assert recorded.table("/estimate/lauv")["sigma_x"][-1] == 0.5
    if 'b"position"' in block.text:
        sent = recorded.table("/acoustics/sent")
        assert sent["clock_ns"].tolist() == [2_000_000_000, 12_000_000_000], "exactly at the start of the slot"
    if "take_missions" in block.text:
        assert "follows waypoints" in " ".join(recorded.table("/notices")["text"])


def test_each_check_belongs_to_a_program() -> None:
    assert len(PROGRAMS) >= 9
    for sign in CHECKS:
        assert sum(sign in b.text for b in PROGRAMS) == 1, sign


def test_other_blocks_print_what_is_shown() -> None:
    blocks = page_blocks(ROOT, PAGE)
    for k, block in enumerate(blocks):
        if block.language == "text":
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(compile(blocks[k - 1].text, PAGE, "exec"), {})
            assert not differs(block.text, output.getvalue())


def test_the_page_names_every_field_and_every_argument(root: Path) -> None:
    page = (root / PAGE).read_text()
    for field in dataclasses.fields(Reception):
        assert f"`{field.name}`" in page, f"reception.{field.name} is not explained"
    for field in dataclasses.fields(Step):
        assert f"`step.{field.name}" in page, f"step.{field.name} is not explained"
    tree = ast.parse((root / "broker_sdk/wavesim_sdk/onboard.py").read_text())
    (base,) = (n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "BrokerBase")
    make = next(n for n in base.body if isinstance(n, ast.FunctionDef) and n.name == "__init__")
    for argument in [*make.args.args[1:], *make.args.kwonlyargs]:
        assert f"`{argument.arg}`" in page, f"Broker(..., {argument.arg}=...) is not explained on the page"
        assert f":param {argument.arg}:" in (ast.get_docstring(make) or ""), (
            f"help(Broker) does not explain {argument.arg}"
        )
