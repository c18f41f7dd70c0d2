"""Numbers on the command line: units wherever there are numbers, negative ones, and unknown options."""

from __future__ import annotations

import math
from collections.abc import Iterator
from importlib.metadata import entry_points
from typing import Any

import click
import pytest
from click.testing import CliRunner

from wavesim_sdk import cli_commands, cli_fences
from wavesim_sdk.cli_numbers import Quantity


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    """What the commands send to the server."""
    found: list[tuple[str, dict[str, Any]]] = []
    for module in (cli_commands, cli_fences):
        monkeypatch.setattr(module, "send", lambda server, verb, **given: found.append((verb, given)))
    return found


def run(*arguments: str) -> Any:
    commands = {c.name: c for c in (*cli_commands.commands(), cli_fences.fence)}
    return CliRunner().invoke(commands[arguments[0]], arguments[1:])


def test_numbers_take_units_and_signs(sent: list[tuple[str, dict[str, Any]]]) -> None:
    for command in (
        ("weather", "--wind", "50kn", "-90"),
        ("weather", "--current-down", "-0.1"),
        ("push", "boat", "50 lbf", "-1kN", "-.5", "0", "-20 N m", "1"),
        ("pose", "boat", "--position", "1 km", "-2", "30cm", "--attitude", "0", "0", "1.5707963267948966 rad"),
        ("fault", "boat", "ahrs", "bias", "-0.2 deg/s"),
        ("speed", "-1"),
        ("fence", "set", "nets", "-20", "-40", "0.2 km", "-40", "20", "-.5", "--keep", "outside"),
    ):
        assert run(*command).exit_code == 0, run(*command).output
    weather, current, push, pose, fault, speed, fence = (given for _, given in sent)
    assert weather == {"wind_speed": pytest.approx(50 * 1852 / 3600), "wind_direction": pytest.approx(-math.pi / 2)}
    assert current == {"current_down": -0.1}, "an upward flow; the horizontal current stays"
    assert push["force"] == [pytest.approx(222.41108), -1000.0, -0.5] and push["torque"] == [0.0, -20.0, 1.0]
    assert pose["position"] == [1000.0, -2.0, 0.3] and pose["attitude"] == [0.0, 0.0, pytest.approx(math.pi / 2)]
    assert fault["amount"] == "-0.2 deg/s", "its last letter is no option -s"
    assert fence == {"name": "nets", "keep": "outside", "corners": [-20.0, -40.0, 200.0, -40.0, 20.0, -0.5]}
    assert speed == {"factor": -1.0}, "the server refuses it in its own words"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("weather", "--wind", "50knots", "0"), "invalid speed '50knots': use a number in m/s, or one with a unit (m/s, kn)"),
        (("push", "boat", "50 pounds", "0", "0"), "invalid force '50 pounds': use a number in N, or one with a unit (N, kN, lbf)"),
        (("speed", "fast"), "invalid number 'fast'"),
        (("fence", "set", "nets", "1", "2", "3"), "expected two numbers per corner (north, east), got 3 numbers"),
        (("speed", "nan"), "invalid number 'nan'"),
        (("mission", "boat", "1", "2", "3", "fast"), "invalid speed 'fast'"),
        (("pose", "boat", "--north", "3"), "No such option"),
        (("push", "boat", "1", "0", "0", "--torqe"), "No such option"),
        (("fault", "boat", "x", "lost", "--filed", "y"), "--field"),
    ],
)  # fmt: skip
def test_mistakes_are_named(sent: list[tuple[str, dict[str, Any]]], command: tuple[str, ...], said: str) -> None:
    done = run(*command)
    assert done.exit_code == 2 and said in " ".join(done.output.split()), done.output
    assert not sent


def test_bounds_are_those_of_the_unit() -> None:
    time = Quantity("time", low=0.1)
    assert time.convert("2 min", None, None) == 120.0 and time.convert(0.5, None, None) == 0.5
    with pytest.raises(click.BadParameter, match=r"'50 ms' is out of range: use at least 0.1 s"):
        time.convert("50 ms", None, None)
    with pytest.raises(click.BadParameter, match="'200' is out of range: use 5 to 60 deg"):
        Quantity("angle", "deg", low=5.0, high=60.0).convert("200", None, None)
    assert Quantity("time", infinite=True).convert("inf", None, None) == math.inf


def test_no_command_takes_a_number_without_a_unit() -> None:
    """Every parameter with a decimal number has the one type, in every package."""

    def parameters(command: click.Command, path: str) -> Iterator[tuple[str, click.ParamType]]:
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                if (inner := command.get_command(context, name)) is not None:
                    yield from parameters(inner, f"{path} {name}")
        for p in command.params:
            yield from ((f"{path} {p.name}", t) for t in getattr(p.type, "types", [p.type]))

    offered = [c for entry in entry_points(group="wavesim.commands") for c in entry.load()()]
    found = [pair for command in offered for pair in parameters(command, str(command.name))]
    assert sum(isinstance(type_, Quantity) for _, type_ in found) > 40
    assert [path for path, type_ in found if type_ is click.FLOAT or type(type_) is click.FloatRange] == []
