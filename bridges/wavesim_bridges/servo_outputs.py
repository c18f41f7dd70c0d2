"""Mapping from an autopilot's servo outputs to the actuators that they move."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import click

from wavesim_sdk.errors import BrokerError, WaveSimError
from wavesim_sdk.names import suggest_name
from wavesim_sdk.wire.items import ActuatorDescription


@dataclass(frozen=True)
class ServoOutput:
    """Servo output that moves one actuator. With ``sign`` -1, a positive output moves the actuator in the direction
    that is negative in its model.
    """

    actuator: str
    sign: float = 1.0


def assigned(text: str, what: str, allowed: Callable[[str], bool] = bool) -> tuple[str, ServoOutput]:
    """Parse an assignment such as `WHAT=starboard`, or `WHAT=-starboard` for the opposite direction."""
    left, _, name = text.partition("=")
    if not allowed(left) or not name.lstrip("-"):
        raise BrokerError(
            f"invalid output '{text}'; write {what}=ACTUATOR, or {what}=-ACTUATOR for the opposite direction"
        )
    return left, ServoOutput(name.lstrip("-"), -1.0 if name.startswith("-") else 1.0)


def parsed(text: str) -> tuple[int, ServoOutput]:
    """Parse an assignment such as `3=starboard`, or `3=-starboard` for the opposite direction."""
    number, output = assigned(text, "NUMBER", str.isdigit)
    return int(number), output


def chosen(
    frames: Mapping[str, Mapping[int, ServoOutput]], frame: str | None, others: Iterable[str]
) -> dict[int, ServoOutput]:
    """Return the outputs that a preset defines, with individual outputs added or replaced."""
    outputs = {**frames.get(frame or "", {}), **dict(map(parsed, others))}
    if not outputs:
        raise WaveSimError("outputs missing: use --frame, or --output for each output")
    return outputs


def autopilot_options(
    frames: Iterable[str], most_instances: int, instance_help: str
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the command-line options that a bridge to an autopilot needs: servo outputs (evaluated by :func:`chosen`),
    and number of instances.
    """
    options = (
        click.option(
            "--frame", "frame_", type=click.Choice(sorted(frames)), help="Preset that assigns outputs to actuators."
        ),
        click.option(
            "--output",
            multiple=True,
            metavar="N=ACTUATOR",
            help="Output that is added to the preset or replaces one of its outputs. A minus sign reverses the output: "
            "3=-starboard. Repeatable.",
        ),
        click.option(
            "--instance", type=click.IntRange(0, most_instances), default=0, show_default=True, help=instance_help
        ),
        click.option(
            "--also",
            multiple=True,
            metavar="VEHICLE",
            help="Additional vehicle of the same type, with the next instance number. Repeatable.",
        ),
    )
    return lambda function: reduce(lambda inner, option: option(inner), reversed(options), function)


def moved_by(output: ServoOutput, actuators: Sequence[ActuatorDescription]) -> ActuatorDescription:
    """Return the actuator that an output moves."""
    for a in actuators:
        if a.name == output.actuator:
            return a
    known = [a.name for a in actuators]
    raise BrokerError(f"the vehicle has no actuator '{output.actuator}'{suggest_name(output.actuator, known)}")


class Mixer:
    """Conversion of numbered outputs, each from -1 to 1, to commands in the units of the actuators. For a thruster
    commanded in N, thrust is proportional to the square of the output, as for a motor whose speed follows the output.
    Full output commands the thrust limit in the direction of the output. For any other actuator, the command is
    proportional to the output, and full output commands the larger of the actuator's two limits.
    """

    def __init__(self, outputs: Mapping[int, ServoOutput], actuators: Sequence[ActuatorDescription]) -> None:
        self._count = len(actuators)
        self._scales: list[tuple[int, int, float, float, float, bool]] = []
        for number, output in sorted(outputs.items()):
            a = moved_by(output, actuators)
            thrust, greater = a.unit == "N", max(abs(a.minimum), abs(a.maximum))
            ahead, astern = (a.maximum, -a.minimum) if thrust else (greater, greater)
            self._scales.append((number, a.number, output.sign, ahead, astern, thrust))
        self.neutral: list[float | None] = [None] * self._count
        for _, place, *_ in self._scales:
            self.neutral[place] = 0.0

    def commands(self, outputs: Sequence[float | None]) -> list[float | None]:
        """Return the commands in the order of the actuators. None means that an actuator keeps its last command,
        because the autopilot does not have or does not use the output for this actuator.
        """
        found: list[float | None] = [None] * self._count
        for number, place, sign, ahead, astern, squared in self._scales:
            u = outputs[number - 1] if number <= len(outputs) else None
            if u is not None:
                u *= sign
                found[place] = (ahead if u > 0.0 else astern) * (u * abs(u) if squared else u)
        return found
