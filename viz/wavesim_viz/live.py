"""Interface of all sources, and the live source, which reads a running server on this machine from shared memory."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast

import numpy as np

from wavesim_sdk import frames
from wavesim_sdk.actuators import ACTUATOR_FAULTS
from wavesim_sdk.attach import SharedState
from wavesim_sdk.commander import Commander
from wavesim_sdk.commands import TIMER_VERBS
from wavesim_sdk.errors import AttachError, ConfigError, WaveSimError
from wavesim_sdk.frame_rings import FrameReader
from wavesim_sdk.sensors import HEAD_COLUMNS
from wavesim_sdk.shared_memory import DONE
from wavesim_sdk.tables import BodyType, Field, SensorFault
from wavesim_sdk.wire.messages import Role
from wavesim_viz import cables, image_streams, scene
from wavesim_viz.alarms import BodyHealth
from wavesim_viz.equipment import InstrumentDescription, body_equipment, model_of
from wavesim_viz.fences import change_fences, fence_infos
from wavesim_viz.fleet_status import MissionTracker
from wavesim_viz.frame import (
    NEW_RUN,
    HeldBodyDetector,
    ViewerFrame,
    bodies,
    decode_text,
    reception_rows,
    sent_rows,
    signals,
    to_json_value,
)
from wavesim_viz.page_content import (
    Actuation,
    ActuatorInfo,
    BodyEquipment,
    BodyMotion,
    BodyPanel,
    CableInfo,
    Effort,
    FenceInfo,
    FleetStatus,
    Notice,
    Numbers,
    RosterEntry,
    Scene,
    SensorValue,
    SessionInfo,
    SignalEvents,
    WeatherReport,
)
from wavesim_viz.page_protocol import CommanderRequest, FaultRequest, FencesRequest, VehicleCommandRequest
from wavesim_viz.propeller_turns import LiveTurns, drawn_rates
from wavesim_viz.sea_surface import SeaState, SeaSurface
from wavesim_world.config import LoadedConfig, Model, load
from wavesim_world.config.named_files import file_states, named_files

RETRY_S = 0.5
GRACE_NS = 500_000_000  #: time in ns by which the age of a value is reduced before it is converted to periods
MAX_SIGNALS = (
    200  #: maximum number of signals that a page receives between two frames; further signals are only counted
)
#: maximum number of snapshots whose times a page receives; if there are more, the page receives the times of every
#: second, third, ... snapshot
MAX_SNAPSHOTS = 500
MAX_SESSIONS = 200  #: maximum number of sessions of one kind that a page receives


class SourceConfiguration(NamedTuple):
    """Path or XML text of a configuration, and a note about files that it lacks or that have changed. An empty string means
    that the configuration is not on this machine.
    """

    text: str
    note: str = ""


class LiveConfiguration:
    """The configuration file of a simulation, and whether it or a file that it names has changed since the start."""

    def __init__(self, path: Path) -> None:
        self._path, self._files = path, named_files(path)
        self._states = file_states(self._files)
        self.has_changed = False

    def configuration(self) -> SourceConfiguration:
        """Return the path and, if a file has changed, a note that states this."""
        if not self.has_changed and file_states(self._files) == self._states:
            return SourceConfiguration(str(self._path))
        note = f"{self._path}, or a file that it names, has changed since the start: the simulation may differ"
        return SourceConfiguration(str(self._path), note)


class ViewerSource(Protocol):
    """Source of frames for the viewers. One thread calls its methods, which return immediately."""

    kind: str
    name: str
    trouble: str  #: reason why the source has no data; empty if it has data

    def scene(self) -> tuple[int, Scene]:
        """Return the version of the static scene, and the scene itself."""

    def configuration(self) -> SourceConfiguration:
        """Return the configuration of the simulation that is shown."""

    def roster(self) -> list[RosterEntry]:
        """Return [row, name, model, type, generation] of each body in the last frame."""

    def frame(self) -> ViewerFrame | None:
        """Return the newest frame, or None if the source has no frame yet."""

    def new_signals(self) -> SignalEvents | None:
        """Return the signals that were sent since the last call."""

    def beliefs(self) -> list[Numbers]:
        """Return [row, north, east, down, three standard deviations] for each navigator's estimate."""

    def sea_components(self) -> list[list[float]] | None:
        """Return the current wave components (``sea_surface.py``), or None if they are unknown. The same object is
        returned until they change.
        """

    def cables(self) -> list[CableInfo]:
        """Return the current tethers, moorings and tow cables (``cables.py``)."""

    def fences(self) -> list[FenceInfo]:
        """Return the current fences."""

    def health(self) -> BodyHealth:
        """Return the inputs for the alarms, except motion and estimates."""

    def fleet(self) -> FleetStatus:
        """Return the battery and the mission of each vehicle."""

    def weather(self) -> WeatherReport:
        """Return the flow, wind and water level, and the clients with their round-trip times."""

    def equipment(self, row: int) -> BodyEquipment | None:
        """Return the equipment of a body (``equipment.py``). It is the same object until another body occupies the row."""

    def panel(self, row: int) -> BodyPanel | None:
        """Return the current data of one body, with actuators and instruments in the order of its equipment."""

    def open_frames(self, row: int, name: str, every: bool = False) -> image_streams.FrameStream:
        """Return the frames from a sonar, camera, lidar or hydrophone on a body. For a log, return all frames if ``every`` is set,
        and only the newest one otherwise. Raise WaveSimError with the reason if there are none.
        """

    def fault(self, request: FaultRequest) -> tuple[bool, str]:
        """Inject a fault into an actuator, sensor or device. This may block."""

    def run_order(self, request: CommanderRequest) -> tuple[bool, str]:
        """Apply a force to a body, move it, or change the weather. This may block."""

    def change_fences(self, request: FencesRequest) -> tuple[bool, str]:
        """Add, replace or remove fences. This may block."""

    def command(self, request: VehicleCommandRequest) -> tuple[bool, str]:
        """Send a command to the program that drives a body and return its answer. This may block for seconds."""

    def control(self, verb: str, value: float | None) -> tuple[bool, str]:
        """Start, pause, step, stop, reset or rewind the simulation. This may block."""

    def log_state(self) -> str:
        """Return the state of the log: "ok", "off", or what is wrong with the log. An empty string means that the state
        is unknown. This may block.
        """

    def close(self) -> None:
        """Release the resources of the source."""


def motion(p: Any, q: Any, v: Any, w: Any, v_water: Any = None) -> BodyMotion:
    """Format the pose and velocities of a body for the data panel."""
    return {
        "position": to_json_value(np.asarray(p)),
        "euler": to_json_value(np.degrees(frames.euler(np.asarray(q, float)))),
        "velocity": to_json_value(np.asarray(v)),
        "rates": to_json_value(np.degrees(np.asarray(w))),
        "water": to_json_value(np.asarray(v_water)) if v_water is not None else None,
    }


def actuation(record: Any, turns: Any, turn_rates: Any) -> Actuation:
    """Return the commands and values of a body's actuators, in the order of the actuators, with the turns of its
    propellers.
    """
    count = len(turns)
    return {
        "command": to_json_value(record["command"][:count]),
        "actual": to_json_value(record["actual"][:count]),
        "feedback": to_json_value(record["feedback"][:count]),
        "turns": to_json_value(turns),
        "turn_rates": to_json_value(turn_rates),
    }


def effort(record: Any) -> Effort | None:
    """Return the forces (N) and moments (N m) on a body, in total and by component; None if no client has requested
    them from the server.
    """
    found = {part: to_json_value(record[part]) for part in Effort.__annotations__}
    return cast("Effort", found) if any(any(six) for six in found.values()) else None


def _session(record: Any, role: str) -> SessionInfo:
    """Describe a session of a body for the data panel."""
    return {
        "role": role,
        "address": f"{decode_text(record['address'])}:{int(record['port'])}",
        "status": "connected",
        "silent": to_json_value(record["silent"]),
        "rtt_ms": to_json_value(record["rtt_mean"] * 1e3),
        "lockstep_ms": 0.0,
        "datagrams": (int(record["datagrams_in"]), int(record["datagrams_out"])),
        "device": decode_text(record["device"]),
        "device_fault": decode_text(record["device_fault"]),
    }


def sensor_value(value: Any, entry: Any, fields: Sequence[str], time_ns: int) -> SensorValue:
    """Return the newest value from an instrument, with its age at a given time and its injected faults."""
    there = value["sequence"] > 0 and value["generation"] == entry["generation"]
    return {
        "valid": bool(there and value["valid"]),
        "age": (time_ns - int(value["time_ns"])) * 1e-9 if there else None,
        "fault": SensorFault(int(entry["fault"])).name.lower() if entry["fault"] else "",
        "fields": {f: to_json_value(value[f]) for f in fields} if there else {},
    }


def sound_message(sent: Any, receptions: Any, missed: int, notices: list[Notice]) -> SignalEvents | None:
    """Return the message about signals and notices, or None if there is nothing to send."""
    if not len(sent) and not len(receptions) and not missed and not notices:
        return None
    missed += max(0, len(sent) - MAX_SIGNALS) + max(0, len(receptions) - MAX_SIGNALS)
    return {
        "sent": sent_rows(sent[-MAX_SIGNALS:]),
        "receptions": reception_rows(receptions[-MAX_SIGNALS:]),
        "notices": notices,
        "missed": missed,
    }


def _notices(records: Any) -> list[Notice]:
    """Build the messages about notices."""
    return [
        {
            "time": int(r["time_ns"]) * 1e-9,
            "row": int(r["row"]),
            "name": decode_text(r["name"]),
            "text": decode_text(r["text"]),
        }
        for r in records
    ]


class LiveSource:
    """Source that reads the shared memory of a server. When the server exits, the source waits for it to restart."""

    kind = "live"

    def __init__(self, name: str, config: Path | None = None) -> None:
        self.name, self.config = name, config
        self.trouble = ""
        self._scene, self._version = scene.empty(name), 0
        self._retry = 0.0
        self._returned_s: float | None = None  #: time in s that the next frame reports as its time change
        self._attach()  # the server must exist at the start: raises

    def _attach(self) -> None:
        self.state = SharedState(self.name)
        with Commander(self.name) as commander:
            status = commander.send("status").data
        self._returned_s = NEW_RUN if self._version else None
        self._time_changes = int(self.state.time_change()["count"])
        self._seen = {t: self.state.simulation[t].snapshot()[0] for t in ("sent", "reception", "notice")}
        self._missions = MissionTracker()
        self._missions.take(_notices(self.state.history("notice", 0)[1]))
        self._fences, self._fences_written = list[FenceInfo](), -1
        self._kits: dict[int, tuple[Any, BodyEquipment]] = {}
        self._turns: dict[int, LiveTurns] = {}
        self.trouble = ""
        self._identity: Any = self.state.snapshot().identity
        self._roster, self._written = self._list(self._identity), -1
        warning = ""
        loaded: LoadedConfig | None = None
        self._loaded: LoadedConfig | None = None
        self._sea_surface: SeaSurface | None = None
        try:
            loaded = load(self.config or status["configuration"])
            self._watched = LiveConfiguration(loaded.path)
            if loaded.digest != status["digest"]:
                self._watched.has_changed = True
                warning = f"{loaded.path} has changed since the server loaded it: the bed and the missions may differ"
            else:
                self._sea_surface = SeaSurface(loaded, int(self.state.world()["seed"]))
            self._loaded = loaded
        except (ConfigError, OSError) as error:
            warning = f"cannot read the configuration: {error}"
        self._scene = scene.describe(loaded) if loaded is not None else scene.empty(self.name)
        self._scene["warning"] = warning
        self._held_detector = HeldBodyDetector({b["name"]: b["position"] for b in self._scene["bodies"]})
        self._version += 1

    def scene(self) -> tuple[int, Scene]:
        return self._version, self._scene

    def configuration(self) -> SourceConfiguration:
        return self._watched.configuration() if self._loaded is not None else SourceConfiguration("")

    def _alive(self) -> bool:
        now = time.monotonic()
        if now < self._retry:
            return not self.trouble
        self._retry = now + RETRY_S
        if self.trouble:
            with contextlib.suppress(WaveSimError):
                self._attach()
        elif not self.state.alive():
            self.trouble = f"the server '{self.name}' has stopped; waiting for it to restart"
        return not self.trouble

    def frame(self) -> ViewerFrame | None:
        if not self._alive():
            return None
        returned_s = self._take_time_change()  # before the state, which must not be older
        s = self.state.snapshot()
        written = int(self.state.vehicles["identity"].header[DONE])
        if written != self._written:
            self._written, self._identity, self._roster = written, s.identity, self._list(s.identity)
        clock, rows = self.state.clock(), s.rows
        state = s.state[rows]
        p, v = state["p_WB_W"], state["v_WB_B"]
        held = self._held_detector.update(s.tick, self._roster, rows, p, v, state["w_WB_B"])
        return ViewerFrame(
            s.time_ns * 1e-9,
            s.tick,
            int(clock["state"]),
            bodies(rows, p, state["q_WB"], v, held),
            signals(self.state.signals()),
            float(clock["speed"]),
            float(clock["realtime_factor"]),
            float(clock["lateness_ns"]) * 1e-6,
            float(clock["lateness_max_ns"]) * 1e-6,
            int(clock["ticks_late"]),
            float(self.state.weather()["level"]),
            v_WB_B=v,
            jumped=int(returned_s is not None),
            returned_s=returned_s,
        )

    def _take_time_change(self) -> float | None:
        """Return the time (s) to which the server was rewound since the last call, or None. Afterwards,
        :meth:`new_signals` continues with the first record after the time change.
        """
        change = self.state.time_change()
        if (count := int(change["count"])) != self._time_changes:
            # the earliest of several times is unknown
            self._returned_s = int(change["time_ns"]) * 1e-9 if count == self._time_changes + 1 else 0.0
            self._time_changes = count
            self._seen = {table: int(change[table]) for table in self._seen}
            self._held_detector.restart()
        returned_s, self._returned_s = self._returned_s, None
        return returned_s

    def roster(self) -> list[RosterEntry]:
        return self._roster

    @staticmethod
    def _list(i: Any) -> list[RosterEntry]:
        return [
            RosterEntry(
                int(r),
                decode_text(i["name"][r]),
                decode_text(i["model"][r]),
                BodyType(int(i["type"][r])).name.lower(),
                int(i["generation"][r]),
            )
            for r in np.flatnonzero(i["present"])
        ]

    def new_signals(self) -> SignalEvents | None:
        new, missed = {}, 0
        for table, seen in self._seen.items():
            total, new[table] = self.state.history(table, seen)
            missed += max(0, total - seen - len(new[table]))
            self._seen[table] = total
        notices = _notices(new["notice"])
        self._missions.take(notices)
        return sound_message(new["sent"], new["reception"], missed, notices)

    def beliefs(self) -> list[Numbers]:
        e = self.state.estimates()
        rows = np.flatnonzero(np.any(e["sigma"] != 0.0, axis=1) | np.any(e["p_WB_W"] != 0.0, axis=1))
        return [[int(r), *to_json_value(e["p_WB_W"][r]), *to_json_value(e["sigma"][r])] for r in rows]

    def weather(self) -> WeatherReport:
        clients, crew = self.state.clients(), self.state.crew()
        on = np.flatnonzero(clients["status"] == 1)
        sessions: list[SessionInfo] = [{"row": int(r), **_session(clients[r], "pilot")} for r in on[:MAX_SESSIONS]]
        sessions += [
            {"row": int(r["body"]), **_session(r, Role(int(r["role"])).name.lower())} for r in crew[:MAX_SESSIONS]
        ]
        times = self.state.snapshot_times()
        return {
            "weather": to_json_value(self.state.weather()),
            "clients": sessions,
            "connected": len(on) + len(crew),
            "snapshots": [t * 1e-9 for t in times[:: max(1, -(-len(times) // MAX_SNAPSHOTS))]],
        }

    def sea_components(self) -> list[list[float]] | None:
        if self._sea_surface is None:
            return None
        now = self.state.weather()
        return self._sea_surface.components(
            SeaState(*(float(now[f"wave_{n}"]) for n in ("height", "peak", "direction")))
        )

    def cables(self) -> list[CableInfo]:
        return cables.cable_messages(self.state.vehicles["lines"].snapshot()[1])

    def fences(self) -> list[FenceInfo]:
        written = int(self.state.simulation["fences"].header[DONE])
        if written != self._fences_written:
            self._fences, self._fences_written = fence_infos(self.state.fences()), written
        return self._fences

    def change_fences(self, request: FencesRequest) -> tuple[bool, str]:
        return change_fences(self.name, request)

    def health(self) -> BodyHealth:
        clients, now = self.state.clients(), int(self.state.clock()["time_ns"])
        found = BodyHealth(removed={int(r) for r in np.flatnonzero(clients["status"] == 2)})
        connected = np.flatnonzero(clients["status"] == 1)
        found.silent = dict(zip(connected.tolist(), clients["silent"][connected].tolist(), strict=True))
        table = self.state.vehicles["instruments"].snapshot()[1]
        table = table[table["body"] >= 0]
        for type_ in np.unique(table["type"]):
            entries = table[table["type"] == type_]
            values = self.state.vehicles[decode_text(type_)].snapshot()[1][entries["place"]]
            there = (values["sequence"] > 0) & (values["generation"] == entries["generation"])
            late = (now - values["time_ns"] - GRACE_NS) / (entries["period"] * self.state._step_ns)
            for k in np.flatnonzero(there & (late > 1.0)):
                found.stale[int(entries["body"][k]), decode_text(entries["name"][k])] = float(late[k])
            if decode_text(type_) == "battery":
                good = there & (values["valid"] != 0)
                found.battery |= dict(zip(entries["body"][good].tolist(), values["charge"][good].tolist(), strict=True))
        return found

    def fleet(self) -> FleetStatus:
        connected = np.flatnonzero(self.state.clients()["status"] == 1).tolist()
        driven = {row: decode_text(self._identity[row]["name"]) for row in connected}
        charges = {str(row): round(charge, 3) for row, charge in self.health().battery.items()}
        return {"charges": charges, "missions": self._missions.by_row(driven)}

    def _instruments_of(self, row: int) -> list[Any]:
        """Return a body's records of the `instruments` table, in the order of its instruments."""
        table = self.state.vehicles["instruments"].snapshot()[1]
        mine = table[table["body"] == row]
        return list(mine[np.argsort(mine["number"])])

    def _sessions_of(self, row: int) -> list[SessionInfo]:
        """Return the clients of a body, with its pilot first, even if the pilot was removed."""
        pilot = self.state.clients()[row]
        found: list[SessionInfo] = []
        if pilot["status"]:
            status = ("", "connected", "removed: silent", "left")[int(pilot["status"])]
            session = _session(pilot, "pilot")
            found.append({**session, "status": status, "lockstep_ms": int(pilot["lockstep_ns"]) * 1e-6})
        crew = self.state.crew()
        return found + [_session(r, Role(int(r["role"])).name.lower()) for r in crew[crew["body"] == row]]

    def equipment(self, row: int) -> BodyEquipment | None:
        if not 0 <= row < len(self._identity) or not self._identity["present"][row]:
            return None
        who, entries = self._identity[row], self._instruments_of(row)
        key = (int(who["generation"]), *((e["type"], e["name"], int(e["place"]), int(e["period"])) for e in entries))
        known = self._kits.get(row)
        if known is None or known[0] != key:
            self._kits[row] = known = (key, self._describe(row, who, entries))
        return known[1]

    def _describe(self, row: int, who: Any, entries: list[Any]) -> BodyEquipment:
        """Return the equipment of a body from shared memory, with mounts and limits from the configuration."""
        name, model = decode_text(who["name"]), decode_text(who["model"])
        found = model_of(self._loaded, model)
        suite = self._loaded.suite_by_name(name, model) if self._loaded is not None and found is not None else ()
        declared = {(i.name, i.type): i.parameters for i in suite}
        instruments = []
        for e in entries:
            which = decode_text(e["name"]), decode_text(e["type"])
            period = int(e["period"]) * self.state._step_ns * 1e-9
            instruments.append(InstrumentDescription(*which, period, declared.get(which), self._fields(which[1])))
        return body_equipment(row, int(who["generation"]), found, instruments, self._loaded)

    def model_of_body(self, name: str) -> Model | None:
        """Return the model that the configuration declares for a body, or None if the model is unknown."""
        declared = {b["name"]: b["model"] for b in self._scene["bodies"]}
        return model_of(self._loaded, declared.get(name, ""))

    def _fields(self, type_: str) -> tuple[Field, ...]:
        """Return the fields of a sensor type as the layout in shared memory describes them."""
        layout = next((t for t in self.state.vehicles.layout if t["name"] == type_), None)
        fields = layout["fields"][HEAD_COLUMNS:] if layout is not None else []
        return tuple(Field(f["name"], f["type"], f["unit"], f["doc"], tuple(f["shape"])) for f in fields)

    def panel(self, row: int) -> BodyPanel | None:
        vehicles = self.state.vehicles
        if not 0 <= row < len(self._identity) or not self._identity["present"][row]:
            return None
        known, entries = self.equipment(row), self._instruments_of(row)
        if known is None:
            return None
        view = self.state.snapshot("geometry", "actuation")
        s = view.state[row]
        acting = view.tables["actuation"][row]
        rates = drawn_rates(known["actuators"], acting["actual"])
        turns = self._turns.setdefault(row, LiveTurns()).update(view.time_ns * 1e-9, rates)
        sensors = {}
        for look, entry in zip(known["sensors"], entries, strict=False):  # a value may arrive between the two reads
            value = vehicles[decode_text(entry["type"])].snapshot()[1][int(entry["place"])]
            sensors[look["name"]] = sensor_value(value, entry, [f["name"] for f in look["fields"]], view.time_ns)
        return {
            "row": row,
            "time": view.time_ns * 1e-9,
            "identity": to_json_value(view.identity[row]),
            "geometry": to_json_value(view.tables["geometry"][row]),
            "motion": motion(s["p_WB_W"], s["q_WB"], s["v_WB_B"], s["w_WB_B"], s["v_FB_B"]),
            "actuation": {
                **actuation(acting, turns, rates),
                "faults": self._actuator_faults(row, known["actuators"], view.time_ns * 1e-9),
            },
            "effort": effort(vehicles["effort"].snapshot()[1][row]),
            "surroundings": to_json_value(vehicles["surroundings"].snapshot()[1][row]),
            "sensors": sensors,
            "crew": self._sessions_of(row),
        }

    def _actuator_faults(self, row: int, actuators: Sequence[ActuatorInfo], time_s: float) -> dict[str, str]:
        """Return the faults of a body's actuators by name."""
        record = self.state.vehicles["actuator_fault"].snapshot()[1][row]
        return {
            actuator["name"]: ACTUATOR_FAULTS[kind - 1]
            for actuator, kind, until in zip(actuators, record["kind"].tolist(), record["until"].tolist(), strict=False)
            if kind and time_s < until
        }

    def open_frames(self, row: int, name: str, every: bool = False) -> image_streams.FrameStream:
        if (who := self._named(row)) is None:
            raise AttachError("the body is not in the simulation")
        return image_streams.LiveFrames(FrameReader.open(self.name, who, name))

    def fault(self, request: FaultRequest) -> tuple[bool, str]:
        if (who := self._named(request.row)) is None:
            return False, "the body is not in the simulation"
        return self._command(
            "fault",
            body=who,
            part=request.part,
            kind=request.kind,
            amount=request.amount or None,
            field=request.field or None,
        )

    def run_order(self, request: CommanderRequest) -> tuple[bool, str]:
        if request.row is None:
            return self._command(request.verb, **request.values)
        if (who := self._named(request.row)) is None:
            return False, "the body is not in the simulation"
        if request.verb == "mission":
            return self._mission(who, request.values["points"])
        return self._command(request.verb, **{**request.values, "body": who})

    def command(self, request: VehicleCommandRequest) -> tuple[bool, str]:
        if (who := self._named(request.row)) is None:
            return False, "the body is not in the simulation"
        try:
            with Commander(self.name) as commander:
                reply = commander.vehicle_command(who, request.action, request.point)
        except WaveSimError as error:
            return False, str(error)
        return reply.ok, reply.text

    def _named(self, row: int) -> str | None:
        """Return the name of the body in a row, or an empty string if there is none."""
        there = 0 <= row < len(self._identity) and self._identity["present"][row]
        return decode_text(self._identity[row]["name"]) if there else None

    def control(self, verb: str, value: float | None) -> tuple[bool, str]:
        if verb not in TIMER_VERBS or verb == "shutdown":
            return False, f"a viewer cannot '{verb}'"
        return self._command(verb, **({TIMER_VERBS[verb][0]: value} if TIMER_VERBS[verb][0] else {}))

    def log_state(self) -> str:
        try:
            with Commander(self.name) as commander:
                return str(commander.send("status").data.get("log", ""))
        except WaveSimError:
            return ""

    def _command(self, verb: str, **arguments: Any) -> tuple[bool, str]:
        try:
            with Commander(self.name) as commander:
                reply = commander.send(verb, **arguments)
        except WaveSimError as error:
            return False, str(error)
        return reply.ok, reply.text

    def _mission(self, body: str, points: Any) -> tuple[bool, str]:
        try:
            with Commander(self.name) as commander:
                reply = commander.mission(body, [points[k : k + 4] for k in range(0, len(points), 4)])
        except (WaveSimError, ValueError) as error:
            return False, str(error)
        return reply.ok, reply.text

    def close(self) -> None:
        pass
