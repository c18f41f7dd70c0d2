"""Equipment and instrument values of one body on a remote server, received by a listener session."""

from __future__ import annotations

import threading

from wavesim_sdk.actuators import FIRST_SLOT, MAX_ACTUATORS, Actuator, ActuatorKind
from wavesim_sdk.broker import Broker
from wavesim_sdk.errors import AttachError, WaveSimError
from wavesim_sdk.imaging_frames import FRAME_SENSOR_TYPES, no_such_source
from wavesim_sdk.tables import Field
from wavesim_sdk.wire.items import ActuatorDescription, Frames, SensorDescription
from wavesim_sdk.wire.state import State, Value
from wavesim_viz.equipment import InstrumentDescription, actuator, instrument, model_of
from wavesim_viz.frame import to_json_value
from wavesim_viz.image_streams import ReceivedFrames
from wavesim_viz.live import effort, motion
from wavesim_viz.page_content import BodyEquipment, BodyPanel, InstrumentInfo, SensorValue
from wavesim_viz.propeller_turns import LiveTurns, drawn_rates
from wavesim_world.actuators import actuators_of
from wavesim_world.config import LoadedConfig
from wavesim_world.config.sensors import InstrumentConfig

RETRY_S = 2.0
PERIOD_S = 0.1


class BodyListener:
    """Listener session for a body. It runs in a separate thread until it is closed."""

    def __init__(self, row: int, name: str, model: str, server: tuple[str, int], loaded: LoadedConfig | None) -> None:
        self.row, self.name, self.model, self.server, self.loaded = row, name, model, server, loaded
        self.equipment: BodyEquipment | None = None
        self.trouble = ""  #: reason why no instrument values arrive; empty if values arrive
        self._state: State | None = None
        self._turns = LiveTurns()
        self._values: dict[str, Value] = {}  # newest value of each instrument, including currently invalid ones
        self._looks: dict[str, list[ReceivedFrames]] = {}  # by instrument name; a new object whenever it changes
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run_session, name=f"listener on {name}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Leave the server. The thread then ends automatically."""
        self._closed.set()

    @property
    def has_frame_readers(self) -> bool:
        """Return whether a page shows images from this body."""
        return bool(self._looks)

    def open_frames(self, name: str) -> ReceivedFrames:
        """Subscribe to the frames from an instrument. Raise AttachError with the reason if that is impossible."""
        if self.equipment is None:
            raise AttachError(self.trouble or f"the equipment of '{self.name}' is still being requested")
        there = [s["name"] for s in self.equipment["sensors"] if s["type"] in FRAME_SENSOR_TYPES]
        if name not in there:
            raise AttachError(no_such_source(self.name, name, there))
        look = ReceivedFrames(lambda: self._drop(name, look))
        self._looks = {**self._looks, name: [*self._looks.get(name, ()), look]}
        return look

    def _drop(self, name: str, look: ReceivedFrames) -> None:
        rest = [o for o in self._looks.get(name, ()) if o is not look]
        self._looks = {n: v for n, v in {**self._looks, name: rest}.items() if v}

    def _frames(self, broker: Broker, requested: tuple[str, ...]) -> tuple[str, ...]:
        """Process received data, and request the images that pages currently show."""
        looks = self._looks
        for frame in broker.take_frames():
            for look in looks.get(frame.name, ()):
                look.add(frame)
        if (shown := tuple(sorted(looks))) != requested:
            broker.request(Frames(shown))
        return shown

    def _run_session(self) -> None:
        while not self._closed.is_set():
            try:
                with Broker(
                    self.name, self.server, role="listener", state_period=PERIOD_S, acoustics=False, effort=True
                ) as broker:
                    self.equipment = self._describe(broker.actuators, broker.sensors)
                    self.trouble = ""
                    requested: tuple[str, ...] = ()
                    while not self._closed.is_set():
                        for step in broker.poll(0.2):
                            self._values |= step.state.sensors
                            self._state = step.state
                        requested = self._frames(broker, requested)
            except (WaveSimError, OSError) as error:
                self.trouble = str(error)
            except Exception as error:  # last line of defence of this thread: shown in the panel, then retried
                self.trouble = f"the viewer cannot process data from the server: {type(error).__name__}: {error}"
            self._state = None
            self._closed.wait(RETRY_S)

    def _describe(
        self, actuators: tuple[ActuatorDescription, ...], sensors: tuple[SensorDescription, ...]
    ) -> BodyEquipment:
        """Build the description of the equipment from the server's data. Mounts and actuator laws come from the model
        in the configuration or the library, if the actuators of that model have the same names as those on the server.
        """
        model = model_of(self.loaded, self.model)
        known = actuators_of(model) if model is not None else ()
        if [a.name for a in known] != [a.name for a in actuators]:
            known, model = _actuators(actuators), None
        declared: dict[tuple[str, str], InstrumentConfig] = {}
        if self.loaded is not None and model_of(self.loaded, self.model) is not None:
            declared = {(i.name, i.type): i for i in self.loaded.suite_by_name(self.name, self.model)}
        descriptions = []
        for s in sensors:
            mine = declared.get((s.name, s.type))
            fields = tuple(Field(f.name, "f8", f.unit, "", (f.count,) if f.count > 1 else ()) for f in s.fields)
            descriptions.append(
                InstrumentDescription(s.name, s.type, s.period_ns * 1e-9, mine.parameters if mine else None, fields)
            )
        return {
            "row": self.row,
            "generation": 0,
            "actuators": [actuator(a, model) for a in known],
            "sensors": [instrument(d, known, self.loaded) for d in descriptions],
        }

    def complete(self, panel: BodyPanel) -> None:
        """Add the data that the session receives to the panel data of the body."""
        panel["note"] = self.trouble
        kit, state = self.equipment, self._state
        if kit is None or state is None:
            return
        count = len(kit["actuators"])
        rates = drawn_rates(kit["actuators"], list(state.actuation)[:count])
        panel["actuation"] = {
            "command": [None] * count,
            "actual": to_json_value(list(state.actuation)),
            "feedback": [None] * count,
            "turns": to_json_value(self._turns.update(state.time_ns * 1e-9, rates)),
            "turn_rates": to_json_value(rates),
        }
        panel["sensors"] = {s["name"]: self._value(s, state) for s in kit["sensors"]}
        if state.effort is not None:
            panel["effort"] = effort(vars(state.effort))
        if state.motion is not None:
            m = state.motion
            panel["motion"] = motion(m[0:3], m[3:7], m[7:10], m[10:13], m[13:16])

    def _value(self, look: InstrumentInfo, state: State) -> SensorValue:
        value = self._values.get(look["name"])
        if value is None:
            return {"valid": False, "age": None, "fault": "", "fields": {}}
        return {
            "valid": look["name"] in state.sensors,
            "age": (state.time_ns - value.time_ns) * 1e-9,
            "fault": "",  # not known on board
            "fields": {f["name"]: to_json_value(value[f["name"]]) for f in look["fields"]},
        }


def _actuators(descriptions: tuple[ActuatorDescription, ...]) -> tuple[Actuator, ...]:
    """Describe the actuators of a model that this machine does not have."""
    numbers = dict.fromkeys(ActuatorKind, 0)
    numbers[ActuatorKind.OTHER] = sum(a.kind == ActuatorKind.BALLAST for a in descriptions)  # they follow the tanks
    found = []
    for a in descriptions[:MAX_ACTUATORS]:
        kind = ActuatorKind(a.kind)
        found.append(Actuator(a.name, kind, a.unit, a.minimum, a.maximum, FIRST_SLOT[kind] + numbers[kind], a.unit))
        numbers[kind] += 1
    return tuple(found)
