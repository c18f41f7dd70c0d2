"""Source that reads a server on another machine through an observer session. A listener session provides the
details of a body.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk.errors import AttachError, WaveSimError
from wavesim_sdk.observer import FleetFrame, Observer
from wavesim_viz import image_streams, scene
from wavesim_viz.alarms import BodyHealth
from wavesim_viz.body_listener import BodyListener
from wavesim_viz.fences import configured_fences
from wavesim_viz.frame import NEW_RUN, SIGNAL, HeldBodyDetector, ViewerFrame, bodies
from wavesim_viz.live import MAX_SIGNALS, LiveConfiguration, SourceConfiguration, motion
from wavesim_viz.page_content import (
    BodyEquipment,
    BodyPanel,
    CableInfo,
    FenceInfo,
    FleetStatus,
    Numbers,
    RosterEntry,
    Scene,
    SentSignal,
    SignalEvents,
    SignalReception,
    WeatherReport,
)
from wavesim_viz.page_protocol import CommanderRequest, FaultRequest, FencesRequest, VehicleCommandRequest
from wavesim_world.config import load

RETRY_S = 2.0
MOST_LISTENING = 8  #: maximum number of bodies that have a listener session at the same time
LISTENER_IDLE_S = 5.0  #: time in s after which a listener session ends if no page shows its body
LIFE_S = 20.0  #: maximum simulation time in s for which the sphere of a signal is drawn


class RemoteSource:
    """Source that reads a server through an observer session, and rejoins the server when the session is lost."""

    kind = "remote"

    def __init__(self, server: tuple[str, int], rate: float, config: Path | None = None) -> None:
        self.server, self.rate = server, rate
        self.name = f"{server[0]}:{server[1]}"
        self.trouble = ""
        self._loaded = load(config) if config is not None else None
        self._watched = LiveConfiguration(self._loaded.path) if self._loaded is not None else None
        self._described = scene.describe(self._loaded) if self._loaded is not None else scene.empty(self.name)
        self._fences = configured_fences(self._loaded)
        self._listening: dict[int, tuple[BodyListener, float]] = {}  # row -> session, time of the last request
        self._held_detector = HeldBodyDetector({b["name"]: b["position"] for b in self._described["bodies"]})
        self._speed = float(self._described["sound"]["speed"])
        self._lock = threading.Lock()
        self._newest: FleetFrame | None = None
        self._failed: Exception | None = None
        self._signals: dict[int, Any] = {}
        self._sent: list[SentSignal] = []
        self._receptions: list[SignalReception] = []
        self._missed = 0
        self._returned_s: float | None = None  #: time in s that the next frame reports as its time change
        self._rejoined = False  #: whether the next snapshot is the first of a new session
        self._pace: tuple[float, float, float] = (time.monotonic(), 0.0, 0.0)
        self._closed = threading.Event()
        self._observer = self._join()  # the server must answer at the start: raises
        self._thread = threading.Thread(target=self._run_observer, name="observer", daemon=True)
        self._thread.start()

    def _join(self) -> Observer:
        observer = Observer("viewer", self.server, rate=self.rate, sounds=True)
        observer.connect()
        return observer

    def _run_observer(self) -> None:
        while not self._closed.is_set():
            try:
                for frame in self._observer.poll(0.2):
                    self._handle_snapshot(frame)
            except (WaveSimError, OSError) as error:
                self._rejoin(str(error))
            except Exception as error:  # raised again by the next frame(), where the hub contains it
                self._failed = error
                self._rejoin(f"the viewer cannot process data from the server: {type(error).__name__}: {error}")
        self._observer.link.close()

    def _rejoin(self, why: str) -> None:
        """Try to rejoin the server until this succeeds or the source is closed."""
        self.trouble = f"{why}; retrying"
        self._observer.link.close()
        while not self._closed.wait(RETRY_S):
            try:
                self._observer = self._join()
            except (WaveSimError, OSError):
                continue
            self._rejoined, self.trouble = True, ""
            break

    def _handle_snapshot(self, frame: FleetFrame) -> None:
        with self._lock:
            back_to = [c.time_ns * 1e-9 for c in frame.time_changes]
            if self._rejoined and self._newest is not None and frame.time_ns < self._newest.time_ns:
                back_to.append(NEW_RUN)  # a change of time may have been missed while the session was lost
            self._rejoined = False
            if back_to:
                self._discard_after(min(back_to))
            self._newest = frame
            for s in frame.signals:
                self._signals[s.id] = s
                self._sent.append(
                    {
                        "id": s.id,
                        "source": s.source,
                        "query": 0,
                        "kind": s.kind,
                        "outcome": 0,
                        "frequency": s.frequency,
                        "source_level": s.level,
                        "duration": 0.0,
                        "code": 0,
                        "from_address": 0,
                        "to_address": 0,
                        "payload": 0,
                        "time": s.emission_ns * 1e-9,
                        "at": (s.origin[0], s.origin[1], s.origin[2]),
                    }
                )
            for f in frame.fates:
                origin = self._signals.get(f.id)
                self._receptions.append(
                    {
                        "id": f.id,
                        "source": f.source,
                        "receiver": f.receiver,
                        "query": 0,
                        "kind": origin.kind if origin else 0,
                        "outcome": f.outcome,
                        "to_address": 0,
                        "level": f.level,
                        "noise": None,
                        "range": f.range,
                        "distance": None,
                        "measured": None,
                        "one_way": None,
                        "duration": 0.0,
                        "azimuth": None,
                        "elevation": None,
                        "time": f.arrival_ns * 1e-9,
                        "emission": origin.emission_ns * 1e-9 if origin else None,
                        "at": None,
                        "bounces": 0,
                    }
                )
            for events in (self._sent, self._receptions):
                self._missed += max(0, len(events) - MAX_SIGNALS)
                del events[:-MAX_SIGNALS]
            old = frame.time_ns - LIFE_S * 1e9
            self._signals = {k: s for k, s in self._signals.items() if s.emission_ns > old}

    def _discard_after(self, time_s: float) -> None:
        """Discard all data that are later than the time to which the server has returned."""
        self._returned_s = min(time_s, self._returned_s if self._returned_s is not None else time_s)
        self._signals = {k: s for k, s in self._signals.items() if s.emission_ns * 1e-9 < time_s}
        self._sent = [s for s in self._sent if s["time"] < time_s]
        self._receptions = [r for r in self._receptions if r["time"] < time_s]

    def scene(self) -> tuple[int, Scene]:
        return 1, self._described

    def configuration(self) -> SourceConfiguration:
        # the server does not send the digest of its configuration to an observer
        return self._watched.configuration() if self._watched is not None else SourceConfiguration("")

    def roster(self) -> list[RosterEntry]:
        kinds = {n: m["type"] for n, m in self._described["models"].items()}
        names, models = dict(self._observer.names), dict(self._observer.models)
        return [
            RosterEntry(r, n, models.get(r, ""), kinds.get(models.get(r, ""), "underwater"), 0)
            for r, n in sorted(names.items())
        ]

    def frame(self) -> ViewerFrame | None:
        self._end_unused(time.monotonic())
        if (failed := self._failed) is not None:
            self._failed = None
            raise failed
        with self._lock:
            frame = self._newest
            if frame is None or self.trouble:
                return None
            returned_s, self._returned_s = self._returned_s, None
        if returned_s is not None:
            self._held_detector.restart()
            self._pace = (time.monotonic(), frame.time_ns * 1e-9, self._pace[2])
        b, t = frame.bodies, frame.time_ns * 1e-9
        at, then, factor = self._pace
        if (now := time.monotonic()) > at + 1.0:
            self._pace = (now, t, (t - then) / (now - at))
        with self._lock:
            live = list(self._signals.values())
        table = np.zeros((len(live), SIGNAL), np.float32)
        for k, s in enumerate(live):
            radius = max(self._speed * (t - s.emission_ns * 1e-9), 1.0)
            level = s.level - 20.0 * np.log10(radius)  # for the display only: losses are known to the server alone
            table[k] = (s.id % (1 << 24), s.source, *s.origin, radius, level, s.level, s.frequency)
        table = table[table[:, 6] > self._described["sound"]["noise"]]
        held = self._held_detector.update(frame.tick, self.roster(), b["id"], b["p_WB_W"], b["v_WB_B"], b["w_WB_B"])
        packed = bodies(b["id"], b["p_WB_W"], b["q_WB"], b["v_WB_B"], held)
        return ViewerFrame(
            t,
            frame.tick,
            frame.run_state,
            packed,
            table,
            factor=factor,
            jumped=int(returned_s is not None),
            returned_s=returned_s,
        )

    def new_signals(self) -> SignalEvents | None:
        with self._lock:
            if not self._sent and not self._receptions:
                return None
            message: SignalEvents = {
                "sent": self._sent,
                "receptions": self._receptions,
                "notices": [],
                "missed": self._missed,
            }
            self._sent, self._receptions, self._missed = [], [], 0
        return message

    def beliefs(self) -> list[Numbers]:
        return []

    def sea_components(self) -> list[list[float]] | None:
        return None  # the server does not send the seed to an observer

    def cables(self) -> list[CableInfo]:
        return []  # the server does not send them to an observer

    def fences(self) -> list[FenceInfo]:
        return self._fences  # of the configuration: the server does not send changes to an observer

    def change_fences(self, request: FencesRequest) -> tuple[bool, str]:
        return self.control("fence", None)

    def health(self) -> BodyHealth:
        return BodyHealth()

    def fleet(self) -> FleetStatus:
        return {"charges": {}, "missions": {}}  # the server does not send them to an observer

    def command(self, request: VehicleCommandRequest) -> tuple[bool, str]:
        return self.control("command", None)

    def weather(self) -> WeatherReport:
        return {"weather": None, "clients": [], "connected": None}

    def panel(self, row: int) -> BodyPanel | None:
        if (frame := self._newest) is None:
            return None
        found = np.flatnonzero(frame.bodies["id"] == row)
        if not len(found):
            return None
        b = frame.bodies[found[0]]
        listener = self._listener(row)
        panel: BodyPanel = {
            "row": row,
            "time": frame.time_ns * 1e-9,
            "identity": {"name": self._observer.names.get(row, ""), "model": self._observer.models.get(row, "")},
            "motion": motion(b["p_WB_W"], b["q_WB"], b["v_WB_B"], b["w_WB_B"]),
            "note": "",
        }
        if listener is not None:
            listener.complete(panel)
        return panel

    def _listener(self, row: int) -> BodyListener | None:
        """Return the session that listens to the body in a row."""
        now, name = time.monotonic(), self._observer.names.get(row)
        self._end_unused(now)
        if name is None:
            return None
        if row not in self._listening:
            if len(self._listening) >= MOST_LISTENING:
                return None
            model = self._observer.models.get(row, "")
            self._listening[row] = BodyListener(row, name, model, self.server, self._loaded), now
        listening, _ = self._listening[row]
        self._listening[row] = listening, now
        return listening

    def _end_unused(self, now: float) -> None:
        """Close the sessions that have not been used recently, and the sessions of bodies that have left."""
        for row, (listening, last_use) in list(self._listening.items()):
            if (last_use < now - LISTENER_IDLE_S and not listening.has_frame_readers) or self._observer.names.get(
                row
            ) != listening.name:
                listening.close()
                del self._listening[row]

    def equipment(self, row: int) -> BodyEquipment | None:
        listener = self._listener(row)
        return listener.equipment if listener is not None else None

    def open_frames(self, row: int, name: str, every: bool = False) -> image_streams.FrameStream:
        listener = self._listener(row)
        if listener is None:
            raise AttachError("the body is not in the simulation, or the viewer shows too many bodies")
        return listener.open_frames(name)

    def log_state(self) -> str:
        return ""  # the server does not send it to an observer

    def fault(self, request: FaultRequest) -> tuple[bool, str]:
        return self.control("fault", None)

    def run_order(self, request: CommanderRequest) -> tuple[bool, str]:
        return self.control(request.verb, None)

    def control(self, verb: str, value: float | None) -> tuple[bool, str]:
        return (
            False,
            "an observer session cannot control the simulation; run `wavesim viz --control` on the server's machine",
        )

    def close(self) -> None:
        self._closed.set()
        for listening, _ in self._listening.values():
            listening.close()
        self._thread.join(2.0)
