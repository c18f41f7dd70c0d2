"""Checks of scheduled faults: the actuator, sensor or device must exist, have a unique name on the body, and support
this kind of fault.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wavesim_sdk.actuators import Actuator, fault_amount
from wavesim_sdk.device_faults import device_of, line_fault_amount
from wavesim_sdk.names import suggest_name
from wavesim_world.actuators import actuators_of
from wavesim_world.config.model import FaultConfig, device_names
from wavesim_world.config.sensors import InstrumentConfig
from wavesim_world.config.validation import fail_at
from wavesim_world.sensor_faults import parse_fault

if TYPE_CHECKING:
    from wavesim_world.config.loaded import LoadedConfig


def check(loaded: LoadedConfig) -> None:
    """Raise ConfigError for the first invalid fault."""
    for body in loaded.config.fleet.bodies:
        actuators = {a.name: a for a in actuators_of(loaded.model(body.model))}
        sensors = {i.name: i for i in loaded.suite(body)}
        if both := sorted(actuators.keys() & sensors.keys()):
            fail_at(
                body.place,
                f"'{body.name}' has both an actuator and a sensor '{both[0]}': give them different names, so that "
                "faults are unambiguous",
            )
        devices = device_names(body.device)
        for fault in body.fault:
            try:
                _fault(fault, actuators, sensors, devices)
            except ValueError as error:
                fail_at(fault.place, f"fault of '{body.name}': {error}")


def _fault(
    fault: FaultConfig, actuators: dict[str, Actuator], sensors: dict[str, InstrumentConfig], devices: list[str]
) -> None:
    if fault.kind == "none":
        raise ValueError("invalid kind 'none': use `for` to end a scheduled fault")
    if fault.every and not 0.0 < fault.duration < fault.every:
        raise ValueError("a repeated fault needs `for`, and `for` must be shorter than `every`")
    if device := device_of(fault.part):
        if device not in devices:
            what = suggest_name(device, devices) or "; this body has no <device>"
            raise ValueError(f"unknown device '{device}'{what}")
        if fault.field:
            raise ValueError(f"'{fault.part}' is a device; remove `field`, which applies only to sensors")
        line_fault_amount(fault.kind, fault.amount)
    elif fault.part in actuators:
        if fault.field:
            raise ValueError(f"'{fault.part}' is an actuator; remove `field`, which applies only to sensors")
        if fault.amount and fault.kind not in ("frozen", "reduced"):
            raise ValueError(f"actuator fault '{fault.kind}' does not use `amount`; remove it")
        fault_amount(actuators[fault.part], fault.kind, fault.amount)
    elif fault.part in sensors:
        parse_fault(sensors[fault.part], fault.kind, fault.amount or 0.0, fault.field)
    else:
        raise ValueError(f"unknown actuator or sensor '{fault.part}'{suggest_name(fault.part, [*actuators, *sensors])}")
