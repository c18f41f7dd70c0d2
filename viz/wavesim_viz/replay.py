"""Replay of a log, starting at any time and at any speed."""

from __future__ import annotations

import bisect
import time
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk.errors import LogError
from wavesim_sdk.log import Log, read
from wavesim_sdk.log_validation import is_number
from wavesim_sdk.tables import (
    ACTUATION,
    EFFORT,
    ESTIMATE,
    LINES,
    RECEPTION,
    SENT,
    STATE,
    SURROUNDINGS,
    BodyType,
    Outcome,
    RunState,
    Table,
)
from wavesim_viz import cables, image_streams, scene
from wavesim_viz.alarms import BodyHealth
from wavesim_viz.chart_series import EMPTY_SERIES, ChartSeries, LogSeries
from wavesim_viz.equipment import InstrumentDescription, body_equipment, described_instruments, model_of
from wavesim_viz.fences import FenceHistory
from wavesim_viz.fleet_status import LoggedFleet
from wavesim_viz.frame import SIGNAL, ViewerFrame, bodies, reception_rows, sent_rows, to_json_value
from wavesim_viz.history import MOST_NOTICES, MOST_RECEPTIONS, MOST_SENT
from wavesim_viz.live import SourceConfiguration, actuation, effort, motion, sound_message
from wavesim_viz.logged_signals import signals_between
from wavesim_viz.page_content import (
    BodyEquipment,
    BodyPanel,
    CableInfo,
    FenceInfo,
    FleetStatus,
    HullShape,
    ModelInfo,
    Notice,
    Numbers,
    RosterEntry,
    Scene,
    SensorValue,
    SignalEvents,
    TimeMark,
    TrackPoints,
    WeatherReport,
)
from wavesim_viz.page_protocol import CommanderRequest, FaultRequest, FencesRequest, VehicleCommandRequest
from wavesim_viz.propeller_turns import LoggedTurns, drawn_rates
from wavesim_viz.sea_surface import AS_CONFIGURED, SeaState, SeaSurface
from wavesim_world.config import load
from wavesim_world.config.standalone_xml import omitted_water

TRACK_POINTS = 3000
#: outcomes of lost signals that the page shows: all except losses due to distance, losses out of band, and echoes
LOSSES = tuple(o for o in Outcome if o not in (Outcome.HEARD, Outcome.FADED, Outcome.OUT_OF_BAND, Outcome.ECHO))
COMPARED_PREFIX = "other:"
MOST_LOSSES = 400  #: maximum number of losses marked on the time slider
BELIEF_S = 5.0  #: time in s for which the page shows an estimate after it was logged
VERBS = ("start", "resume", "pause", "stop", "step", "speed", "seek")


class ReplaySource:
    """Source that plays one log with its own clock, which all viewers share."""

    kind = "replay"
    tracks_version = 0  #: always 0, because the tracks of a log do not change

    def __init__(self, path: Path, other: Path | None = None, config: Path | None = None) -> None:
        """``other`` is a log whose chart lines are drawn for comparison. ``config`` is the configuration of the run, with
        the files that the log does not contain.
        """
        self.other = ReplaySource(other) if other is not None else None
        self._config = str(load(config).path) if config is not None else ""
        self.log: Log = read(path)
        self.name, self.trouble = path.name, ""
        self.step_s = float(self.log.metadata.get("step_ns", "4000000")) * 1e-9
        self.end = self.log.end_ns * 1e-9
        self._scene, self._loaded = scene.of_log(self.log)
        self._seas, self._weathers = self._sea_of_log()
        self._fence_history = FenceHistory(self.log, self._loaded)
        self._kits: dict[int, BodyEquipment] = {}
        self._turns: dict[int, LoggedTurns] = {}
        self._scene["models"] |= {
            b["model"]: self._default_model_info(b)
            for b in self.log.bodies.values()
            if b["model"] not in self._scene["models"]
        }
        self._series = {
            row: (b, s)
            for row, b in self.log.bodies.items()
            if len((s := self.log.get(f"/state/{b['name']}", STATE)).time_ns)
        }
        if not self._series:
            reasons = "".join(f"; {note}" for note in self.log.notes if "track" in note)
            raise LogError(f"{path} contains no states to replay{reasons}")
        lacking = [r.log.damage_notice for r in (self, self.other) if r is not None and r.log.damage_notice]
        if self.log.notes:
            lacking.append(f"{path.name} was recorded by another program; `wavesim log info` lists the assumptions")
        if lacking:
            self._scene["warning"] = "; ".join(lacking)
        self._lines = LogSeries(self.log)
        self._logged_fleet = LoggedFleet(self.log, {row: b["name"] for row, (b, _) in self._series.items()})
        self._frozen = self._hold_intervals()
        self.start = min(int(s.time_ns[0]) for _, s in self._series.values()) * 1e-9
        sent, receptions = (
            self.log.get("/acoustics/sent", SENT).records,
            self.log.get("/acoustics/reception", RECEPTION).records,
        )
        self._sent = sent[np.argsort(sent["emission_ns"], kind="stable")]
        self._receptions = receptions[np.argsort(receptions["arrival_ns"], kind="stable")]
        self._speed_of_sound = float(self._scene["sound"]["speed"])
        self._last_heard = self._signal_ends()
        presence: dict[int, list[tuple[int, bool]]] = {}
        for t, b in self.log.json.get("/bodies", []):
            presence.setdefault(int(b["row"]), []).append((t, bool(b["present"])))
        self._presence = presence
        self._roster: list[RosterEntry] = []
        self.playing, self.speed, self._at = True, 1.0, self.start
        self._wall, self._sent_until = time.monotonic(), self.start
        self._jumped, self._is_restarted = True, False

    def _hold_intervals(self) -> dict[str, list[tuple[int, bool]]]:
        """Return, for each body name, a list of pairs (time, whether the body is frozen from that time on). A body is
        frozen when its state diverges, and continues when a command moves it to another pose.
        """
        found: dict[str, list[tuple[int, bool]]] = {}
        for t, m in self.log.json.get("/frozen", []):
            for name in m["bodies"]:
                found.setdefault(str(name), []).append((t, True))
        for t, m in self.log.json.get("/commands", []):
            if m["verb"] == "pose":
                found.setdefault(str(m["arguments"].get("body")), []).append((t, False))
        return {name: sorted(changes) for name, changes in found.items()}

    def _sea_of_log(self) -> tuple[SeaSurface | None, list[tuple[int, SeaState]]]:
        """Return the sea that acted on bodies, and a list of (start time, sea state) for each change by a command. The
        sea is None if the log does not contain a sea.
        """
        seed = self.log.metadata.get("seed", "")
        if self._loaded is None or not seed.isdecimal():
            return None, []
        bed = next((m for _, m in self.log.json.get("/world/bed", [])), {})
        states: list[tuple[int, SeaState]] = []
        now = AS_CONFIGURED
        for t, m in self.log.json.get("/commands", []):
            if m["verb"] != "weather":
                continue
            arguments = [m["arguments"].get(f"wave_{n}") for n in ("height", "peak", "direction")]
            now = SeaState(*(float(g) if is_number(g) else old for g, old in zip(arguments, now, strict=True)))
            states.append((t, now))
        return SeaSurface(self._loaded, int(seed), bed.get("mean")), states

    @staticmethod
    def _default_model_info(body: dict[str, Any]) -> ModelInfo:
        """Return a placeholder for a model of which the log contains only the name."""
        shapes: dict[str, HullShape] = {
            "buoy": {"kind": "sphere", "size": (1.0, 1.0, 1.0)},
            "surface": {"kind": "box", "size": (2.0, 0.8, 0.6)},
            "underwater": {"kind": "cylinder", "size": (2.0, 0.2, 0.2)},
            "aircraft": {"kind": "box", "size": (1.7, 2.9, 0.3)},
        }
        return {
            "name": body["model"],
            "type": body["type"],
            "title": "",
            "source": "",
            "validated": "",
            "appearance": "",
            "draw_parts": True,
            "shape": shapes.get(body["type"], shapes["underwater"]),
            "mass": None,
            "thrusters": [],
            "fins": [],
            "tanks": [],
            "transducer": None,
        }

    def _signal_ends(self) -> Any:
        """Return the time (s) until which each signal is drawn: the time of its last arrival at any receiver. Arrivals
        that were lost because of the distance do not count.
        """
        last: dict[int, int] = {}
        for r in self._receptions:
            if r["outcome"] != Outcome.FADED:
                last[int(r["id"])] = max(last.get(int(r["id"]), 0), int(r["arrival_ns"]))
        return np.array([last.get(int(s["id"]), int(s["emission_ns"]) + 300_000_000) for s in self._sent], float) * 1e-9

    # -- the clock --------------------------------------------------------------------------------

    def now(self) -> float:
        """Return the log time that the page shows, in s."""
        wall = time.monotonic()
        if self.playing:
            self._at = min(self._at + (wall - self._wall) * self.speed, self.end)
        self._wall = wall
        return self._at

    def control(self, verb: str, value: float | None) -> tuple[bool, str]:
        if verb not in VERBS:
            return False, f"a replay cannot '{verb}'"
        at = self.now()
        match verb:
            case "start" | "resume":
                if at >= self.end:
                    self._seek(self.start)
                self.playing = True
            case "pause":
                self.playing = False
            case "stop":
                self.playing = False
                self._seek(self.start)
            case "step":
                self.playing = False
                self._at = min(max(at + (1.0 if value is None else value) * self.step_s, self.start), self.end)
            case "speed":
                if value is None or not 0.0 < value <= 1000.0:
                    return False, "speed must be greater than 0 and at most 1000"
                self.speed = value
            case "seek":
                if value is None:
                    return False, "seek needs a time"
                self._seek(value)
        return True, f"{'playing' if self.playing else 'paused'} at {self._at:.2f} s"

    def _seek(self, to: float) -> None:
        self._at = min(max(to, self.start), self.end)
        self._sent_until, self._jumped, self._is_restarted = self._at, True, True

    # -- frames -----------------------------------------------------------------------------------

    def scene(self) -> tuple[int, Scene]:
        return 1, self._scene

    def configuration(self) -> SourceConfiguration:
        if self._config:
            return SourceConfiguration(self._config)
        if self._loaded is None:
            return SourceConfiguration("")
        lacking = omitted_water(self.log.metadata["configuration"])
        note = f"the log does not contain the files of {', '.join(lacking)}; start the viewer with --config FILE to include them"
        return SourceConfiguration(self._loaded.text, note if lacking else "")

    def _present(self, row: int, time_ns: float) -> bool:
        return _state_at(self._presence.get(row, []), time_ns)

    def frame(self) -> ViewerFrame | None:
        t = self.now()
        ns = t * 1e9
        rows, p, q, v, held, roster = [], [], [], [], [], []
        for row, (body, series) in self._series.items():
            if not self._present(row, ns + 1.0):
                continue
            k = min(max(int(np.searchsorted(series.time_ns, ns, "right")) - 1, 0), len(series.time_ns) - 1)
            state, after = series.records[k], series.records[min(k + 1, len(series.records) - 1)]
            span = int(series.time_ns[min(k + 1, len(series.records) - 1)]) - int(series.time_ns[k])
            f = min(max((ns - int(series.time_ns[k])) / span, 0.0), 1.0) if span > 0 else 0.0
            rows.append(row)
            p.append(state["p_WB_W"] + f * (after["p_WB_W"] - state["p_WB_W"]))
            q.append(_between(state["q_WB"], after["q_WB"], f))
            v.append(state["v_WB_B"] + f * (after["v_WB_B"] - state["v_WB_B"]))
            held.append(_state_at(self._frozen.get(body["name"], []), ns))
            roster.append(RosterEntry(row, body["name"], body["model"], body["type"], 0))
        self._roster = roster
        packed = bodies(rows, p, q, v, np.array(held, bool))
        jumped, self._jumped = self._jumped, False
        state_now = RunState.RUNNING if self.playing and t < self.end else RunState.PAUSED
        factor = self.speed if state_now is RunState.RUNNING else 0.0
        return ViewerFrame(
            t,
            round(t / self.step_s),
            int(state_now),
            packed,
            self._signal_spheres(t),
            self.speed,
            factor,
            v_WB_B=v,
            jumped=jumped,
        )

    def _signal_spheres(self, t: float) -> Any:
        born = self._sent["emission_ns"] * 1e-9
        alive = np.flatnonzero((born <= t) & (t <= self._last_heard) & (self._sent["outcome"] == 0))
        table = np.zeros((len(alive), SIGNAL), np.float32)
        for i, k in enumerate(alive):
            s = self._sent[k]
            radius = max(self._speed_of_sound * (t - born[k]), 1.0)
            level = float(s["source_level"]) - 20.0 * np.log10(radius) - 0.005 * radius
            table[i] = (
                int(s["id"]) % (1 << 24),
                s["source"],
                *s["origin_W"],
                radius,
                level,
                s["source_level"],
                s["frequency"],
            )
        return table

    def roster(self) -> list[RosterEntry]:
        return self._roster

    def new_signals(self) -> SignalEvents | None:
        if self._is_restarted:
            self._is_restarted = False
            return {"anew": True, **self.events()}
        t, since = self._at, self._sent_until
        self._sent_until = t
        if t <= since:
            return None
        sent = _span(self._sent, "emission_ns", since, t)
        return sound_message(sent, _span(self._receptions, "arrival_ns", since, t), 0, self._notices(since, t))

    def _notices(self, since: float, until: float) -> list[Notice]:
        return [
            {"time": ns * 1e-9, "row": -1, "name": n["body"], "text": n["text"]}
            for ns, n in self.log.json.get("/notices", [])
            if since < ns * 1e-9 <= until
        ]

    def events(self) -> SignalEvents:
        """Return the newest signals and notices before the current time."""
        t = self._sent_until
        sent = _span(self._sent, "emission_ns", -1.0, t)[-MOST_SENT:]
        heard = _span(self._receptions, "arrival_ns", -1.0, t)[-MOST_RECEPTIONS:]
        return {
            "sent": sent_rows(sent),
            "receptions": reception_rows(heard),
            "missed": 0,
            "notices": self._notices(-1.0, t)[-MOST_NOTICES:],
        }

    def signals(self, since: float, until: float) -> SignalEvents:
        """Return the signals of a time span (s), also of times that the replay has not reached yet."""
        return signals_between(self._sent, self._receptions, since, until)

    def beliefs(self) -> list[Numbers]:
        found, ns = [], self._at * 1e9
        for row, (body, _) in self._series.items():
            e = self.log.get(f"/estimate/{body['name']}", ESTIMATE)
            k = int(np.searchsorted(e.time_ns, ns, "right")) - 1
            if k >= 0 and ns - int(e.time_ns[k]) < BELIEF_S * 1e9:
                found.append([row, *to_json_value(e.records["p_WB_W"][k]), *to_json_value(e.records["sigma"][k])])
        return found

    def sea_components(self) -> list[list[float]] | None:
        if self._seas is None:
            return None
        k = bisect.bisect_right(self._weathers, self._at * 1e9, key=lambda w: w[0]) - 1
        return self._seas.components(self._weathers[k][1] if k >= 0 else AS_CONFIGURED)

    def cables(self) -> list[CableInfo]:
        found = (self._at_time(topic, LINES) for topic in self.log.series if topic.startswith("/lines/"))
        return cables.cable_messages([r for r in found if r is not None])

    def fences(self) -> list[FenceInfo]:
        return self._fence_history.at(self._at * 1e9)

    def health(self) -> BodyHealth:
        return BodyHealth()

    def fleet(self) -> FleetStatus:
        return self._logged_fleet.at(self._at, self._notices(-1.0, self._at))

    def weather(self) -> WeatherReport:
        return {
            "weather": None,
            "clients": [],
            "connected": None,
            "replay": {
                "start": self.start,
                "end": self.end,
                "playing": self.playing,
                "speed": self.speed,
                "other": self.other.name if self.other is not None else "",
            },
        }

    def panel(self, row: int) -> BodyPanel | None:
        if row not in self._series:
            return None
        (body, series), ns = self._series[row], self._at * 1e9
        if not self._present(row, ns + 1.0):
            return None
        s = series.records[max(int(np.searchsorted(series.time_ns, ns, "right")) - 1, 0)]
        name = body["name"]
        sensors: dict[str, SensorValue] = {}
        acting = self.log.get(f"/actuation/{name}", ACTUATION)
        k = int(np.searchsorted(acting.time_ns, ns, "right")) - 1
        known = self.equipment(row)
        for look in known["sensors"] if known is not None else ():
            values = self.log.sensors(name)[look["name"]]
            i = int(np.searchsorted(values.time_ns, ns, "right")) - 1
            sensors[look["name"]] = {
                "valid": bool(i >= 0 and values.records["valid"][i]),
                "age": (ns - int(values.records["time_ns"][i])) * 1e-9 if i >= 0 else None,
                "fault": "",
                "fields": {f["name"]: to_json_value(values.records[f["name"]][i]) for f in look["fields"]}
                if i >= 0
                else {},
            }
        return {
            "row": row,
            "time": self._at,
            "identity": {"name": name, "model": body["model"], "type": int(BodyType[body["type"].upper()])},
            "motion": motion(s["p_WB_W"], s["q_WB"], s["v_WB_B"], s["w_WB_B"], s["v_FB_B"]),
            "actuation": actuation(acting.records[k], *self._propeller_turns(row, known, acting).at(self._at))
            if k >= 0 and known is not None
            else None,
            "effort": effort(forces) if (forces := self._at_time(f"/effort/{name}", EFFORT)) is not None else None,
            "surroundings": to_json_value(self._at_time(f"/surroundings/{name}", SURROUNDINGS)),
            "sensors": sensors,
        }

    def _propeller_turns(self, row: int, known: BodyEquipment, acting: Any) -> LoggedTurns:
        """Return the turns of a body's propellers from its logged actuation."""
        if row not in self._turns:
            rates = drawn_rates(known["actuators"], acting.records["actual"])
            self._turns[row] = LoggedTurns(acting.time_ns * 1e-9, rates)
        return self._turns[row]

    def _at_time(self, topic: str, table: Table) -> Any:
        """Return the newest record of a topic, or None before the first record."""
        series = self.log.get(topic, table)
        k = int(np.searchsorted(series.time_ns, self._at * 1e9, "right")) - 1
        return series.records[k] if k >= 0 else None

    def equipment(self, row: int) -> BodyEquipment | None:
        """Return the equipment of a body: the instruments that have values in the log, as the configuration declares
        them. Return None if there is no such body.
        """
        if row not in self._series:
            return None
        if row not in self._kits:
            body, _ = self._series[row]
            name, loaded = body["name"], self._loaded
            model = model_of(loaded, body["model"])
            suite = loaded.suite_by_name(name, body["model"]) if loaded is not None and model is not None else ()
            declared = {t.name: t for t in described_instruments(suite)}
            instruments = [
                declared.get(n, InstrumentDescription(n, s.type, None)) for n, s in self.log.sensors(name).items()
            ]
            self._kits[row] = body_equipment(row, 0, model, instruments, loaded)
        return self._kits[row]

    def marks(self) -> list[TimeMark]:
        """Return the events for the time slider: notices, faults, commands, bodies that joined or left, and a selection
        of lost signals.
        """
        messages = self.log.json
        found = [(t, "notice", f"{m['body']}: {m['text']}") for t, m in messages.get("/notices", [])]
        found += [
            (t, "fault", f"{', '.join(m['bodies'])}: frozen, the state diverged (NaN or infinity)")
            for t, m in messages.get("/frozen", [])
        ]
        found += [
            (t, "fault", f"{m['body']}: {m['part']} {m['kind'] if m['begins'] else 'cleared'}")
            for t, m in messages.get("/faults", [])
        ]
        found += [(t, "command", m["verb"]) for t, m in messages.get("/commands", []) if m["verb"] != "fault"]
        start = self.start * 1e9
        found += [
            (t, "join", f"{m['name']} {'joined' if m['present'] else 'left'}")
            for t, m in messages.get("/bodies", [])
            if t > start
        ]
        lost = self._receptions[np.isin(self._receptions["outcome"], LOSSES)]
        for k in np.unique(np.searchsorted(lost["arrival_ns"], np.linspace(start, self.end * 1e9, MOST_LOSSES))):
            if k < len(lost):
                found.append(
                    (
                        int(lost["arrival_ns"][k]),
                        "loss",
                        Outcome(int(lost["outcome"][k])).name.lower().replace("_", " "),
                    )
                )
        return [{"time": t * 1e-9, "kind": kind, "text": text} for t, kind, text in sorted(found)]

    def line(self, row: int, key: str) -> ChartSeries:
        """Return a chart line over the whole log. ``other:KEY`` is the line of the body with the same name in the
        comparison log.
        """
        if key.startswith(COMPARED_PREFIX):
            name = self._series[row][0]["name"] if row in self._series else None
            rows = (
                [r for r, (b, _) in self.other._series.items() if b["name"] == name] if self.other is not None else []
            )
            return (
                self.other.line(rows[0], key.removeprefix(COMPARED_PREFIX))
                if self.other is not None and rows
                else EMPTY_SERIES
            )
        if row not in self._series:
            return EMPTY_SERIES
        return self._lines.line(
            self._series[row][0]["name"],
            key,
            [a["name"] for a in (self.equipment(row) or {"actuators": []})["actuators"]],
        )

    def open_frames(self, row: int, name: str, every: bool = False) -> image_streams.FrameStream:
        body = self._series[row][0]["name"] if row in self._series else ""
        if f"/sonar/{body}/{name}" not in self.log.series:
            raise LogError(
                f"the log has no frames from '{name}': its <sonar> has log=\"0\", or the sonar produced none"
            )
        kind = image_streams.SequentialFrames if every else image_streams.LoggedFrames
        return kind(self.log.path, body, name, lambda: self._at)

    def log_state(self) -> str:
        return self.log.damage_notice or "ok"

    def fault(self, request: FaultRequest) -> tuple[bool, str]:
        return False, "a replay does not accept faults"

    def command(self, request: VehicleCommandRequest) -> tuple[bool, str]:
        return False, "a replay accepts no commands"

    def change_fences(self, request: FencesRequest) -> tuple[bool, str]:
        return False, "a replay shows the fences of the log and does not change them"

    def run_order(self, request: CommanderRequest) -> tuple[bool, str]:
        return False, "a replay does not accept changes"

    def tracks(self) -> dict[str, TrackPoints]:
        """Return, by row, the times and positions of the whole track of each body and of its navigator's estimates,
        both reduced to fewer points.
        """
        found: dict[str, TrackPoints] = {}
        for row, (body, series) in self._series.items():
            thin = slice(None, None, max(1, len(series.time_ns) // TRACK_POINTS))
            e = self.log.get(f"/estimate/{body['name']}", ESTIMATE)
            thin_e = slice(None, None, max(1, len(e.time_ns) // TRACK_POINTS))
            found[str(row)] = {
                "name": body["name"],
                "time": (series.time_ns[thin] * 1e-9).round(3).tolist(),
                "position": to_json_value(series.records["p_WB_W"][thin].round(3).ravel()),
                "believed_time": (e.time_ns[thin_e] * 1e-9).round(3).tolist(),
                "believed": to_json_value(e.records["p_WB_W"][thin_e].round(3).ravel()),
            }
        return found

    def close(self) -> None:
        pass


def _state_at(changes: list[tuple[int, bool]], time_ns: float) -> bool:
    """Return the last state at or before a time, or False before the first change. ``changes`` contains (time, state)
    pairs.
    """
    k = bisect.bisect_right(changes, (time_ns, True)) - 1
    return changes[k][1] if k >= 0 else False


def _between(q: Any, r: Any, f: float) -> Any:
    """Interpolate between two attitudes that are close together."""
    mixed = (1.0 - f) * q + f * (r if float(q @ r) >= 0.0 else -r)
    return mixed / np.linalg.norm(mixed)


def _span(records: Any, column: str, since: float, until: float) -> Any:
    """Return the records whose time is after ``since``, but not after ``until``."""
    a, b = np.searchsorted(records[column], [since * 1e9, until * 1e9], "right")
    return records[a:b]
