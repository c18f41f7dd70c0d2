"""Command that drives a body with a gamepad or joystick connected to this computer."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wavesim_sdk.cli_commands import server_option
from wavesim_sdk.cli_numbers import NumbersCommand, Quantity
from wavesim_sdk.errors import ConfigError, WaveSimError
from wavesim_sdk.names import suggest_name
from wavesim_sdk.terminal_text import echo

if TYPE_CHECKING:
    from wavesim_sdk.gamepad import Gamepad
    from wavesim_world.config.vehicle import Model

PERIOD_S = 0.05  #: interval in s between two commands
MAPPINGS = ("allocation", "force", "actuators")
#: gamepad axis for each demand on a gamepad with two sticks; a minus sign reverses an axis
STICKS = {"surge": "-1", "sway": "3", "heave": "4", "yaw": "0"}
VERTICAL = ("-1", "-4")  #: vertical axes of the left and right stick, for the first two thrusters


class GamepadLost(WaveSimError):
    """Raised when the gamepad is unplugged while it is driving a body."""


@dataclass(frozen=True)
class AxisControl:
    """Gamepad axis that controls one demand or actuator: number, sign, and value at full deflection."""

    number: int
    sign: float
    scale: float

    @classmethod
    def parse(cls, text: str, scale: float) -> AxisControl:
        """Return the control for an axis such as ``3`` or ``-1``."""
        plain = text.removeprefix("-")
        if not plain.isdecimal() or int(plain) > 63:
            raise click.UsageError(f"invalid axis '{text}': use a number from 0 to 63, with a minus sign to reverse it")
        return cls(int(plain), -1.0 if text.startswith("-") else 1.0, scale)

    def value(self, pad: Gamepad, dead_zone: float) -> float:
        from wavesim_sdk.gamepad import with_dead_zone

        return self.sign * self.scale * with_dead_zone(pad.axis(self.number), dead_zone)


def _pairs(texts: tuple[str, ...], option: str) -> dict[str, str]:
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name or not value:
            raise click.UsageError(f"invalid {option} '{text}': use NAME=VALUE")
        found[name] = value
    return found


def _controls(mapping: str, model: Model, axes: Mapping[str, str], scales: Mapping[str, str]) -> dict[str, AxisControl]:
    """Return the control of each demand or actuator."""
    from wavesim_world.actuators import actuators_of
    from wavesim_world.manual_axes import DEMANDS, default_wrench

    names = tuple(a.name for a in actuators_of(model)) if mapping == "actuators" else DEMANDS
    full = dict.fromkeys(names, 1.0)
    if mapping == "force":
        full = dict(zip(DEMANDS, default_wrench(model), strict=True))
    wanted: dict[str, str] = dict(zip((t.name for t in model.thruster), VERTICAL, strict=False))
    wanted = {**(wanted if mapping == "actuators" else STICKS), **axes}
    for name in (*axes, *scales):
        if name not in names:
            raise click.UsageError(f"'{name}' cannot be mapped{suggest_name(name, names)}; valid: {', '.join(names)}")
    for name, text in scales.items():
        quantity = ("torque" if name == "yaw" else "force") if mapping == "force" else ""
        full[name] = Quantity(quantity).convert(text, None, None)
        if mapping != "force" and not abs(full[name]) <= 1.0:
            raise click.UsageError(f"invalid scale {text} of '{name}': use a fraction of the maximum, from -1 to 1")
    return {name: AxisControl.parse(text, full[name]) for name, text in wanted.items() if text != "none"}


def _model_of(server: str, body: str) -> Model:
    """Return the model of a body on a server that runs on this machine."""
    from wavesim_sdk.commander import Commander
    from wavesim_world.config import load

    with Commander(server) as commander:
        status = commander.send("status").data
    loaded = load(Path(str(status["configuration"])))
    declared = {b.name: b.model for b in loaded.config.fleet.bodies}
    if body not in declared:
        raise ConfigError(f"the configuration has no body '{body}'{suggest_name(body, declared)}")
    return loaded.model(declared[body])


@click.command(cls=NumbersCommand)
@click.argument("body")
@click.option(
    "--gamepad", required=True, type=click.Path(path_type=Path), help="Device, such as /dev/input/js0 or event5."
)
@click.option(
    "--mapping",
    type=click.Choice(MAPPINGS),
    default="allocation",
    show_default=True,
    help="Select how the axes act: through the mixer, as a force on the hull, or on each actuator.",
)
@click.option("--axis", "axes", multiple=True, metavar="NAME=AXIS", help="Select the axis of a demand or an actuator.")
@click.option(
    "--scale", "scales", multiple=True, metavar="NAME=VALUE", help="Set the command at full deflection of the axis."
)
@click.option(
    "--dead-zone", type=Quantity(), default="0.08", show_default=True, help="Ignore deflections up to this fraction."
)
@click.option("--hold", type=click.IntRange(0), metavar="BUTTON", help="Drive only while this button is held.")
@click.option(
    "--events",
    type=click.Choice(("js", "evdev")),
    help="Read the gamepad through the joystick API (js) or as input events (evdev).  [default: from the device's name]",
)
@server_option
def drive(
    body: str,
    gamepad: Path,
    mapping: str,
    axes: tuple[str, ...],
    scales: tuple[str, ...],
    dead_zone: float,
    hold: int | None,
    events: str | None,
    server: str,
) -> None:
    """Drive BODY with a gamepad or joystick until Ctrl-C.

    By default, the vertical axis of the left stick is surge, its horizontal axis is yaw, and the right stick is sway
    and heave. With the mapping `actuators`, the vertical axes drive the first two thrusters.

    \b
    --axis surge=-1 --axis yaw=0     axis 1, reversed, is surge, and axis 0 is yaw; `none`: no axis
    --scale surge=40N --scale yaw=5  with the mapping `force`: 40 N and 5 N m at full deflection
    --scale port=0.5                 with the other mappings: half of the maximum at full deflection

    If the gamepad is unplugged or this command ends, the actuators return to neutral and the force ends.
    """
    from wavesim_sdk.gamepad import Gamepad

    if not 0.0 <= dead_zone < 1.0:
        raise click.UsageError(f"invalid dead zone {dead_zone:g}: use a fraction from 0 to below 1")
    model = _model_of(server, body)
    controls = _controls(mapping, model, _pairs(axes, "--axis"), _pairs(scales, "--scale"))
    pad = Gamepad(gamepad, events or "")

    def demands() -> dict[str, float]:
        if pad.is_lost:
            raise GamepadLost(f"the gamepad {gamepad} was disconnected; the controls of '{body}' are at neutral")
        held = hold is None or hold in pad.buttons
        return {name: c.value(pad, dead_zone) if held else 0.0 for name, c in controls.items()}

    shown = ", ".join(f"{name} axis {'-' if c.sign < 0.0 else ''}{c.number}" for name, c in controls.items())
    echo(f"driving '{body}' with {gamepad} ({mapping}): {shown}; Ctrl-C ends")
    try:
        if mapping == "force":
            _apply_force(server, body, demands)
        else:
            _pilot(server, body, model, mapping, demands)
    except KeyboardInterrupt:
        return


def _apply_force(server: str, body: str, demands: Callable[[], dict[str, float]]) -> None:
    from wavesim_sdk.body_force import BodyForce

    with BodyForce(server, body) as force:
        while True:
            d: Any = {"surge": 0.0, "sway": 0.0, "heave": 0.0, "yaw": 0.0, **demands()}
            force.apply((d["surge"], d["sway"], d["heave"]), (0.0, 0.0, d["yaw"]))
            time.sleep(PERIOD_S)


def _pilot(server: str, body: str, model: Model, mapping: str, demands: Callable[[], dict[str, float]]) -> None:
    from wavesim_sdk.broker import Broker
    from wavesim_world.manual_axes import DEMANDS, NEUTRAL, actuator_commands, allocated_commands
    from wavesim_world.mixing import Mixer

    mixer = Mixer(model)
    rest = allocated_commands(mixer, NEUTRAL)
    with Broker(body, server, state_period=PERIOD_S) as broker:
        try:
            for _ in broker.steps():
                wanted = demands()
                if mapping == "actuators":
                    broker.answer(actuator_commands(model, rest, wanted))
                else:
                    broker.answer(allocated_commands(mixer, [wanted.get(name, 0.0) for name in DEMANDS]))
        finally:
            broker.answer(rest)
