"""Distribution from one source to any number of viewers. The hub reads and packs each frame once; each viewer receives
the newest frame when the viewer is ready.

A slow viewer receives fewer frames, and the hub drops a viewer that hangs. Other viewers never wait. An error in the
hub does not stop it (``error_registry.py``): only the affected part of a frame is missing, and the page shows the
error.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import dataclasses
import itertools
import json
import time
from collections import deque
from typing import Any

from aiohttp import web

from wavesim_sdk import __version__
from wavesim_viz.alarms import AlarmMonitor, AlarmRules
from wavesim_viz.connection_limits import address_of
from wavesim_viz.error_registry import ErrorRegistry, LogThrottle, print_line
from wavesim_viz.fences import fence_violations
from wavesim_viz.frame import ViewerFrame
from wavesim_viz.history import History, HistorySource
from wavesim_viz.image_streams import ImageStream
from wavesim_viz.live import LiveSource, ViewerSource
from wavesim_viz.live_mosaic import LiveMosaic
from wavesim_viz.manual_control import ForceSession, ManualControlSession, PilotSession
from wavesim_viz.page_content import (
    BodyEquipment,
    CableInfo,
    FenceInfo,
    FleetStatus,
    Numbers,
    RosterEntry,
    TilesetInfo,
    WeatherReport,
)
from wavesim_viz.page_protocol import (
    CommanderRequest,
    ControlRequest,
    DriveRequest,
    FaultRequest,
    FencesRequest,
    HelloMessage,
    ServerMessage,
    VehicleCommandRequest,
)
from wavesim_viz.replay import ReplaySource
from wavesim_viz.scene import scene_messages
from wavesim_viz.traffic import encounter_table

PANEL_S, TRAFFIC_S, BELIEF_S, WEATHER_S, ALARM_S, MISHAP_S, LOG_S = 0.1, 0.2, 0.2, 0.5, 0.5, 1.0, 2.0
IDLE_PERIOD_S = 0.2  #: period in s at which the hub reads its source while no page is connected, for the history
FROZEN_S = 20.0  #: time in s after which a viewer that accepts no data is dropped
_numbers = itertools.count(1)
MOST_VEHICLE_COMMANDS = 16  #: maximum number of vehicle commands that are waiting for an answer
#: message types whose messages replace each other; a new page receives the last message of each type
STATE_MESSAGES = frozenset(("trouble", "weather", "sea", "cables", "fences", "fleet", "mishaps"))
MOST_WAITING = 200  #: maximum number of messages, other than frames, queued for a viewer


def _plain(value: Any) -> Any:
    """Convert a dataclass or a sequence for JSON."""
    return dataclasses.asdict(value) if dataclasses.is_dataclass(value) else list(value)  # type: ignore[arg-type]


def encode_message(message: ServerMessage) -> str:
    """Encode a message. Raise ValueError if it contains values that JSON does not support, because a page could not
    read it.
    """
    return json.dumps(message, separators=(",", ":"), default=_plain, allow_nan=False)


class Viewer:
    """One page that is connected to the hub."""

    def __init__(self, ws: web.WebSocketResponse, transport: asyncio.Transport | None) -> None:
        self.ws, self.transport = ws, transport
        self.number, self.address = next(_numbers), address_of(transport)
        self.watched: int | None = None
        self.kit: BodyEquipment | None = None  #: equipment that was last sent for the body that this page shows
        self.panel = ""  #: panel data that was last sent for the body that this page shows
        self.traffic = ""  #: encounters that were last sent for the body that this page shows
        self.fresh = asyncio.Event()
        #: messages to send, in this order; None stands for the newest frame
        self.texts: deque[str | None] = deque(maxlen=MOST_WAITING)
        #: whether the page has yet to draw its first picture; sending details and history earlier would delay it
        self.first = False
        self.details = ""  #: details of the scene that the page has not received
        self.informed = False  #: whether the page has received the history
        self.last_sent = (0, 0, 0)  # frame, scene, roster
        self.manual_control: ManualControlSession | None = None  #: session through which this page drives a body
        #: number of images that the page has received from each sonar that it shows
        self.pictures: dict[tuple[int, str, int], int] = {}
        #: (epoch, version) of each mosaic that this page has received, by row and sonar; None if the page shows no
        #: mosaics
        self.mosaics: dict[tuple[int, str], tuple[int, int]] | None = None

    def send(self, message: ServerMessage) -> None:
        """Queue a message for this viewer."""
        self.texts.append(encode_message(message))
        self.fresh.set()


class Hub:
    """All viewers of a source. If the source is None, only the configurator is served."""

    def __init__(self, source: ViewerSource | None, rate: float, rules: AlarmRules | None = None) -> None:
        self.source, self.period = source, 1.0 / rate
        self.alarms, self._alarmed = AlarmMonitor(rules), 0
        self.viewers: set[Viewer] = set()
        self.dropped = 0
        self.errors = ErrorRegistry()
        self.refused = LogThrottle()  #: number of pages disconnected for invalid messages, by kind
        self._frame: tuple[int, bytes] = (0, b"")
        self._scene: tuple[int, str, str] = (0, "", "")  # version, scene for the first picture, its details
        self._roster: tuple[int, str] = (0, "")
        self._current: dict[str, str] = {}  #: last message of each type in STATE_MESSAGES
        self._tracks: tuple[int, str] = (-1, "")  #: version of the tracks, and their message
        self._marks = ""
        self._listed: list[RosterEntry] | None = None
        self._jumps = 0
        self._screens: dict[tuple[int, str, int], ImageStream] = {}
        self._mosaic: LiveMosaic | None = None
        self._mosaic_message = ""
        self.history: HistorySource = source if isinstance(source, ReplaySource) else History()
        self._beliefs: list[Numbers] = []
        self._weather: WeatherReport | None = None
        self._sea: list[list[float]] | None = None
        self._cables: list[CableInfo] = []
        self._fences: list[FenceInfo] | None = None  #: the fences that were sent last; None if they must be sent
        self._fleet: FleetStatus | None = None
        self._due = {"panel": 0.0, "traffic": 0.0, "beliefs": 0.0, "weather": 0.0, "alarms": 0.0, "mishaps": 0.0}
        self._due["log"] = 0.0
        self._log_state, self._log_query = "", concurrent.futures.Future[str]()
        self._log_query.set_result("")
        self._answers: set[asyncio.Task[None]] = set()  #: vehicle commands that still await an answer
        self._trouble = ""
        self._sent_errors: dict[str, str] = {}
        # a dedicated thread: a command waits only for other commands
        self._commands = concurrent.futures.ThreadPoolExecutor(1, "control")
        # other threads: a program on board may take seconds to answer
        self._vehicle_commands = concurrent.futures.ThreadPoolExecutor(MOST_VEHICLE_COMMANDS, "command")

    def hello(self, control: bool, write: bool, tiles: TilesetInfo | None, chart: bool) -> HelloMessage:
        """Return the first message for a viewer, which contains its rights and the user's charts."""
        s = self.source
        return {
            "type": "hello",
            "kind": s.kind if s else "none",
            "name": s.name if s else "",
            "period": self.period,
            "version": __version__,
            "control": control,
            "write": write,
            "tiles": tiles,
            "chart": chart,
        }

    def add(self, viewer: Viewer) -> None:
        """Add a viewer, and send it the current state of everything that other viewers have received."""
        self.viewers.add(viewer)
        viewer.texts.extend(self._current.values())

    def _send_history(self, viewer: Viewer) -> None:
        """Send the history to a new viewer, but only after a frame, so that a page on a slow connection can draw before
        it has received the history.
        """
        viewer.informed = True
        viewer.texts.append(None)
        with self.errors.contain("the history for a new page"):
            if self.source is not None:
                viewer.texts.append(self._tracks_message())
                if isinstance(self.history, ReplaySource):
                    self._marks = self._marks or encode_message({"type": "marks", "marks": self.history.marks()})
                    viewer.texts.append(self._marks)
                viewer.send({"type": "sounds", **self.history.events(), "anew": True})
                viewer.send({"type": "beliefs", "bodies": self._beliefs})
                viewer.send({"type": "alarms", "alarms": self.alarms.all})

    def _tracks_message(self) -> str:
        """Return the message with the tracks so far. Encode it only if the tracks have changed since the last call."""
        version, whole = self.history.tracks_version, isinstance(self.history, ReplaySource)
        if self._tracks[0] != version:
            bodies = self.history.tracks()
            self._tracks = version, encode_message({"type": "tracks", "whole": whole, "bodies": bodies})
        return self._tracks[1]

    def remove(self, viewer: Viewer) -> None:
        self.viewers.discard(viewer)
        if viewer.manual_control is not None:
            viewer.manual_control.leave()
        self._close_unwatched_pictures()

    def watch_pictures(self, viewer: Viewer, sonars: tuple[tuple[int, str, int], ...]) -> None:
        """Subscribe a page to images from these sonars."""
        viewer.pictures = {s: viewer.pictures.get(s, 0) for s in sonars}
        for s in sonars:
            if self.source is not None and s not in self._screens:
                self._screens[s] = ImageStream(self.source, *s)
            elif self.source is not None and self._screens[s].trouble:
                viewer.send(self._screens[s].to_message())
        self._close_unwatched_pictures()
        viewer.fresh.set()

    def watch_mosaic(self, viewer: Viewer, on: bool) -> None:
        """Start or stop sending mosaics to a page."""
        viewer.mosaics = {} if on else None
        if on and self.source is not None and self._mosaic is None:
            self._mosaic, self._mosaic_message = LiveMosaic(self.source), ""  # the next reading sends the list
        elif on and self._mosaic_message:
            viewer.texts.append(self._mosaic_message)
            viewer.fresh.set()

    def _read_mosaic(self, mosaic: LiveMosaic, now: float) -> None:
        mosaic.read(self._listed or [], now)
        text = encode_message(mosaic.to_message())
        if text != self._mosaic_message:
            self._mosaic_message = text
            for viewer in self.viewers:
                if viewer.mosaics is not None:
                    viewer.texts.append(text)

    def _close_unwatched_pictures(self) -> None:
        """Release sonars that no page shows."""
        for s in self._screens.keys() - {s for v in self.viewers for s in v.pictures}:
            self._screens.pop(s).close()

    def count_invalid_request(self, kind: str, text: str) -> None:
        """Count a page that was disconnected because of invalid messages."""
        if n := self.refused.count(kind):
            print_line(f"wavesim viz: closed the socket of a page: {text}" + ("" if n == 1 else f" ({n} times so far)"))

    async def control(
        self, request: ControlRequest | FaultRequest | CommanderRequest | FencesRequest
    ) -> tuple[bool, str]:
        """Run commands one at a time in a thread, because the commander may block."""
        source = self.source
        if source is None:
            return False, "this viewer has no simulation to control"
        run = asyncio.get_running_loop().run_in_executor
        try:
            if isinstance(request, FaultRequest):
                return await run(self._commands, source.fault, request)
            if isinstance(request, FencesRequest):
                return await run(self._commands, source.change_fences, request)
            if isinstance(request, CommanderRequest):
                return await run(self._commands, source.run_order, request)
            return await run(self._commands, source.control, request.verb, request.value)
        except Exception as error:  # ends this command only, not the page's socket
            return False, f"the viewer could not run this command: {self.errors.record('control', error)}"

    def command(self, viewer: Viewer, request: VehicleCommandRequest) -> None:
        """Send a command to a vehicle, and send the answer from the vehicle's program to the page."""

        async def answer() -> None:
            ok, text = False, "this viewer has no simulation to control"
            if self.source is not None:
                run = asyncio.get_running_loop().run_in_executor
                try:
                    ok, text = await run(self._vehicle_commands, self.source.command, request)
                except Exception as error:  # ends this command only
                    text = f"the viewer could not send this command: {self.errors.record('control', error)}"
            viewer.send({"type": "answer", "row": request.row, "number": request.number, "ok": ok, "text": text})

        if len(self._answers) >= MOST_VEHICLE_COMMANDS:
            text = "too many commands are waiting for an answer"
            viewer.send({"type": "answer", "row": request.row, "number": request.number, "ok": False, "text": text})
            return
        task = asyncio.create_task(answer())
        self._answers.add(task)
        task.add_done_callback(self._answers.discard)

    def drive(self, viewer: Viewer, request: DriveRequest) -> None:
        """Drive a body from a page: join with the first command, and leave on request."""
        source, helm = self.source, viewer.manual_control
        wanted = request.body, request.mapping
        if helm is not None and (request.axes is None or helm.is_over or (helm.body, helm.mapping) != wanted):
            helm.leave()
            viewer.manual_control = helm = None
        if request.axes is None:
            return

        def reply(ok: bool, text: str) -> None:
            viewer.send({"type": "reply", "ok": ok, "text": text})

        if not isinstance(source, LiveSource):
            reply(False, "you can drive a body only if its server runs on this machine")
            return
        if helm is None and request.mapping == "force":
            viewer.manual_control = helm = ForceSession(source.name, request.body, request.mapping, reply)
        elif helm is None:
            model = source.model_of_body(request.body)
            if model is None:
                reply(False, f"cannot drive {request.body}: its configuration or its model is not on this machine")
                return
            viewer.manual_control = helm = PilotSession(source.name, request.body, request.mapping, reply, model)
        helm.set_axes(request.axes)

    async def run(self) -> None:
        """Read the source at the set rate while a page is connected. Otherwise, read it less often, for the history."""
        due = time.monotonic()
        while True:
            seen = bool(self.viewers) or isinstance(self.source, ReplaySource)
            due = max(due + (self.period if seen else max(self.period, IDLE_PERIOD_S)), time.monotonic())
            await asyncio.sleep(due - time.monotonic())
            if self.source is not None and (self.viewers or not isinstance(self.source, ReplaySource)):
                with self.errors.contain("the hub"):
                    self._read(self.source, time.monotonic())

    def _read(self, source: ViewerSource, now: float) -> None:
        part = self.errors.contain
        frame: ViewerFrame | None = None
        with part("the frame"):
            frame = source.frame()
        with part("the scene"):
            version, scene = source.scene()
            if version != self._scene[0]:
                first, details = scene_messages(scene)
                self._scene = version, encode_message(first), encode_message(details)
        if source.trouble != self._trouble:
            self._trouble = source.trouble
            self._broadcast({"type": "trouble", "text": source.trouble})
        if frame is not None:
            with part("the fleet list"):
                if (roster := source.roster()) != self._listed:
                    self._listed = roster
                    self._roster = (self._roster[0] + 1, encode_message({"type": "roster", "bodies": roster}))
            with part("encoding the frame"):
                frame.roster = self._roster[0]
                self._jumps += frame.jumped
                frame.jumped = self._jumps
                if (data := frame.pack()) != self._frame[1]:  # static scene, sent once
                    self._frame = (self._frame[0] + 1, data)
            if frame.returned_s is not None:
                with part("the time change"):
                    self._discard_after(frame.returned_s)
            self._publish_updates(source, frame, now)
        for screen in self._screens.values():
            with part(f"the image of {screen.name!r}"):
                before = screen.trouble, screen.epoch
                screen.read(now)
                if (screen.trouble, screen.epoch) != before:
                    self._broadcast(screen.to_message())
        if self._mosaic is not None:
            with part("the mosaics"):
                self._read_mosaic(self._mosaic, now)
        self._broadcast_errors(now)
        for viewer in self.viewers:
            if not viewer.informed and not viewer.first:
                self._send_history(viewer)
            viewer.fresh.set()

    def _publish_updates(self, source: ViewerSource, frame: ViewerFrame, now: float) -> None:
        """Send the messages other than frames, each at its own rate."""
        part = self.errors.contain
        with part("signals"):
            if (sounds := source.new_signals()) is not None:
                if isinstance(self.history, History):
                    self.history.add_events(sounds)
                for notice in () if sounds.get("anew") else sounds["notices"]:
                    self.alarms.note(notice)
                self._broadcast({"type": "sounds", **sounds})
        if now >= self._due["beliefs"]:
            self._due["beliefs"] = now + BELIEF_S
            with part("beliefs"):
                beliefs = source.beliefs()
                if beliefs != self._beliefs:
                    self._beliefs = beliefs
                    self._broadcast({"type": "beliefs", "bodies": beliefs})
            self._read_fences(source)
        if isinstance(self.history, History):
            with part("the history"):
                self.history.add(frame, self._listed or [], self._beliefs)
        if now >= self._due["alarms"]:
            self._due["alarms"] = now + ALARM_S
            with part("alarms"):
                self._evaluate_alarms(source, frame)
                self._broadcast_alarms()
            with part("the missions"):
                if (fleet := source.fleet()) != self._fleet:
                    self._fleet = fleet
                    self._broadcast({"type": "fleet", **fleet})
        if now >= self._due["weather"]:
            self._due["weather"] = now + WEATHER_S
            with part("weather and clients"):
                weather = self._weather_of(source, now)
                if weather != self._weather:
                    self._weather = weather
                    self._broadcast({"type": "weather", **weather})
            with part("the waves"):
                if (sea := source.sea_components()) is not self._sea:
                    self._sea = sea
                    self._broadcast({"type": "sea", "components": sea})
        if now >= self._due["traffic"]:
            self._due["traffic"] = now + TRAFFIC_S
            self._send_traffic(source, frame)
            with part("lines"):
                if (cables := source.cables()) != self._cables:
                    self._cables = cables
                    self._broadcast({"type": "cables", "cables": cables})
        if now >= self._due["panel"]:
            self._due["panel"] = now + PANEL_S
            self._send_panels(source)

    def _discard_after(self, time_s: float) -> None:
        """Discard all data that are later than the time to which the simulation has returned, in the hub and on the
        pages.
        """
        if isinstance(self.history, History):
            self.history.discard_after(time_s)
        self.alarms.discard_after(time_s)
        self._due = dict.fromkeys(self._due, 0.0)  # everything that pages show is sent again soon
        for viewer in self.viewers:
            viewer.texts.append(None)  # first a frame of the new time, or the page would draw the old one again
        self._broadcast({"type": "time_change", "time": time_s})

    def _read_fences(self, source: ViewerSource) -> None:
        """Send the fences when they have changed."""
        with self.errors.contain("the fences"):
            fences = source.fences()
            if fences == self._fences:
                return
            if self._fences is not None:
                self.alarms.note_fence_change()
            self._fences = fences
            self._broadcast({"type": "fences", "fences": fences})

    def _evaluate_alarms(self, source: ViewerSource, frame: ViewerFrame) -> None:
        health, roster = source.health(), self._listed or []
        health.fences = fence_violations(self._fences or [], frame, roster)
        self.alarms.evaluate(frame, {b[0]: b[1] for b in roster}, self._beliefs, health)

    def _weather_of(self, source: ViewerSource, now: float) -> WeatherReport:
        """Return the weather and the clients, together with the state of the log and the number of pages that share a
        replay.
        """
        if now >= self._due["log"] and self._log_query.done():
            self._due["log"] = now + LOG_S
            with self.errors.contain(
                "the state of the log"
            ):  # the answer is read next time, because it may take a while
                answered, self._log_query = self._log_query, self._commands.submit(source.log_state)
                self._log_state = answered.result()
        weather = source.weather()
        weather["log"] = self._log_state
        if "replay" in weather:
            weather["replay"]["pages"] = len(self.viewers)
        return weather

    def _send_panels(self, source: ViewerSource) -> None:
        """Send the data of one body to the viewers that watch it."""
        watched = {v.watched for v in self.viewers if v.watched is not None}
        for row in watched:
            with self.errors.contain(self._data_of(row)):
                kit = source.equipment(row)
                text = encode_message({"type": "panel", "row": row, "panel": source.panel(row)})
                for viewer in self.viewers:
                    if viewer.watched != row:
                        continue
                    if viewer.kit is not kit:  # a source returns the same object until another body takes the row
                        viewer.kit, viewer.panel = kit, ""  # send its values again, even if they are the same
                        viewer.send({"type": "kit", "row": row, "kit": kit})
                    if text != viewer.panel:
                        viewer.panel = text
                        viewer.texts.append(text)
        self.errors.discard("the data of ", {self._data_of(row) for row in watched})

    def _send_traffic(self, source: ViewerSource, frame: ViewerFrame) -> None:
        """Send encounters to the viewers that watch a surface vessel."""
        for row in {v.watched for v in self.viewers if v.watched is not None}:
            with self.errors.contain("traffic"):
                met = encounter_table(frame, self._listed or (), row, source.scene()[1]["models"])
                text = encode_message({"type": "traffic", "row": row, "traffic": met})
                for viewer in self.viewers:
                    if viewer.watched == row and text != viewer.traffic:
                        viewer.traffic = text
                        viewer.texts.append(text)

    def _broadcast_alarms(self) -> None:
        if self.alarms.version != self._alarmed:
            self._alarmed = self.alarms.version
            self._broadcast({"type": "alarms", "alarms": self.alarms.all})

    def acknowledge(self, number: int | None) -> tuple[bool, str]:
        """Acknowledge an alarm; None acknowledges all alarms."""
        done = self.alarms.acknowledge(number)
        self._broadcast_alarms()
        return done, "acknowledged" if done else "no such alarm to acknowledge"

    def shelve(self, number: int, seconds: float) -> tuple[bool, str]:
        """Suppress an alarm for some simulation time (in s); 0 returns it to service."""
        done = self.alarms.shelve(number, seconds)
        self._broadcast_alarms()
        if not done:
            return False, "no such alarm to shelve"
        return True, f"shelved for {seconds / 60.0:g} min of simulation time" if seconds else "no longer shelved"

    def _data_of(self, row: int) -> str:
        """Return the label that error messages use for one body's data. The label contains the name of the body if it
        is known, and otherwise its row.
        """
        name = next((b[1] for b in self._listed or () if b[0] == row), None)
        return f"the data of {f'row {row}' if name is None else repr(name)}"

    def _broadcast_errors(self, now: float) -> None:
        """Send the list of failing parts with their errors, at most once per second so that errors cannot flood the
        pages.
        """
        if now >= self._due["mishaps"] and self.errors.failed_parts != self._sent_errors:
            self._due["mishaps"] = now + MISHAP_S
            self._sent_errors = dict(self.errors.failed_parts)
            self._broadcast({"type": "mishaps", "total": self.errors.total, "parts": self._sent_errors})

    def _broadcast(self, message: ServerMessage) -> None:
        text = encode_message(message)
        if message["type"] in STATE_MESSAGES:
            self._current[message["type"]] = text
        for viewer in self.viewers:
            viewer.texts.append(text)
            viewer.fresh.set()

    async def serve(self, viewer: Viewer) -> None:
        """Send new messages and frames to one viewer at its own pace."""
        with contextlib.suppress(ConnectionError, asyncio.CancelledError):
            try:
                while not viewer.ws.closed:
                    await viewer.fresh.wait()
                    viewer.fresh.clear()
                    await asyncio.wait_for(self._send(viewer), FROZEN_S)
            except TimeoutError:
                self.drop(viewer)
            except ConnectionError:
                raise
            except Exception as error:  # for this viewer only
                self.errors.record("sending to one viewer", error)
                self.drop(viewer)

    def drop(self, viewer: Viewer) -> None:
        """Close a viewer's socket immediately."""
        self.dropped += 1
        self.remove(viewer)
        if viewer.transport is not None:
            viewer.transport.abort()

    async def _send(self, viewer: Viewer) -> None:
        frame, scene, roster = viewer.last_sent
        version, first, details = self._scene
        if version != scene:
            await viewer.ws.send_str(first)
            viewer.details = details
        if self._roster[0] != roster:
            await viewer.ws.send_str(self._roster[1])
        viewer.last_sent = (self._frame[0], version, self._roster[0])
        while viewer.texts:
            if (text := viewer.texts.popleft()) is not None:
                await viewer.ws.send_str(text)
            elif self._frame[0]:
                frame, data = self._frame
                await viewer.ws.send_bytes(data)
                await self._send_details(viewer)
        if self._frame[0] != frame and not (viewer.first and frame):  # one frame is enough for the first picture
            await viewer.ws.send_bytes(self._frame[1])
        await self._send_details(viewer)
        for key in list(viewer.pictures):
            if (screen := self._screens.get(key)) is None:
                continue
            new, made = screen.after(viewer.pictures[key]), screen.made
            for data in new:
                await viewer.ws.send_bytes(data)
            if key in viewer.pictures:  # the page may watch another body by now
                viewer.pictures[key] = made
        await self._send_mosaics(viewer)

    async def _send_details(self, viewer: Viewer) -> None:
        """Send the details of the scene as soon as the page has drawn its first picture."""
        if viewer.details and not viewer.first:
            details, viewer.details = viewer.details, ""
            await viewer.ws.send_str(details)

    async def _send_mosaics(self, viewer: Viewer) -> None:
        """Send the tiles that have changed since this page received them."""
        for layer in self._mosaic.shown() if self._mosaic is not None and viewer.mosaics is not None else ():
            key, version = (layer.row, layer.name), layer.mosaic.version if layer.mosaic is not None else 0
            epoch, sent = (viewer.mosaics or {}).get(key, (layer.epoch, 0))
            for data in list(layer.tiles(sent if epoch == layer.epoch else 0)):
                await viewer.ws.send_bytes(data)
            if viewer.mosaics is not None:  # the page may have switched them off by now
                viewer.mosaics[key] = layer.epoch, version

    def close(self) -> None:
        for screen in self._screens.values():
            screen.close()
        if self._mosaic is not None:
            self._mosaic.close()
        self._commands.shutdown(wait=False, cancel_futures=True)
        if self.source is not None:
            self.source.close()
