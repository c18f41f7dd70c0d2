"""Web server of the viewer: one page, one websocket, and the requests from the configurator.

The server is safe by default. It listens on loopback and, to prevent DNS rebinding, answers only to its own host name.
The server accepts websockets and changes only from its own page, and the page loads nothing from other servers. Viewers
are read-only unless the user started the viewer with ``--control``. Every request needs a token if the viewer was
started with ``--control`` or listens on an address other than loopback. ``--control`` requires a token on loopback too,
because other users of the machine can connect to loopback addresses.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import hmac
import ipaddress
import math
import re
import secrets
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from aiohttp import WSCloseCode, WSMsgType, web

from wavesim_sdk.errors import WaveSimError
from wavesim_viz.acoustics_process import AcousticsProcess
from wavesim_viz.acoustics_requests import answer_acoustics, parse_acoustics_request
from wavesim_viz.alarms import AlarmRules
from wavesim_viz.appearance import find_appearance, read_appearance
from wavesim_viz.chart_series import MOST_LINES, MOST_POINTS, MOST_VALUES, aligned
from wavesim_viz.configurator import Configurator
from wavesim_viz.connection_limits import BODY_S, UPLOAD_S, ConnectionRateLimiter, address_of, upgraded
from wavesim_viz.frame import to_json_value
from wavesim_viz.hub import Hub, Viewer
from wavesim_viz.live import SourceConfiguration, ViewerSource
from wavesim_viz.page_protocol import (
    AcknowledgeRequest,
    DetailsRequest,
    DriveRequest,
    MosaicRequest,
    PageRequest,
    PicturesRequest,
    ShelveRequest,
    VehicleCommandRequest,
    WatchRequest,
)
from wavesim_viz.replay import ReplaySource
from wavesim_viz.requests import MOST_ROW, InvalidRequest, parse_request
from wavesim_viz.s57 import ChartCell
from wavesim_viz.tiles import Tileset
from wavesim_viz.uploads import MOST_UPLOAD
from wavesim_viz.xml_trees import RequestFailed

STATIC = Path(__file__).parent / "static"
#: pattern for the names of built files that never change: these names contain a hash
HASHED = re.compile(r"-[0-9A-Z]{8}\.(js|css)$")
MOST_VIEWERS, MOST_EACH = (
    64,
    16,
)  #: maximum number of viewers, in total and for each address of another machine; a new viewer closes the oldest one
MOST_BYTES = 1 << 20  #: maximum size of a request in bytes
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
    "connect-src 'self' {ws} blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class AccessPolicy:
    """Access rights of viewers, and the tokens that grant them."""

    address: str
    port: int
    control: bool
    view_token: str = ""
    control_token: str = ""
    names: set[str] = field(default_factory=set)

    @classmethod
    def make(cls, address: str, port: int, control: bool) -> AccessPolicy:
        loopback = ipaddress.ip_address(address).is_loopback
        a = cls(address, port, control)
        a.view_token = "" if loopback else secrets.token_urlsafe(24)
        a.control_token = secrets.token_urlsafe(24) if control else ""
        if loopback:
            host = f"[{address}]" if ":" in address else address
            a.names = {f"{host}:{port}", f"localhost:{port}"}
        return a

    def role(self, token: str) -> str:
        """Return the level of access that a token grants: `control`, `view`, or an empty string for none."""
        granted = {"control": self.control_token, "view": self.view_token}
        if not any(granted.values()):
            return "view"
        return next((r for r, own in granted.items() if own and hmac.compare_digest(token.encode(), own.encode())), "")

    @property
    def cookie(self) -> str:
        """Return the name of the token cookie. It contains the port, because browsers send cookies to all ports of an
        address.
        """
        return f"wavesim_token_{self.port}"

    def url(self, token: str = "") -> str:
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"http://{host}:{self.port}/" + (f"?token={token}" if token else "")


ACCESS, HUB, CONFIGURATOR = (
    web.AppKey("access", AccessPolicy),
    web.AppKey("hub", Hub),
    web.AppKey("configurator", Configurator),
)


def role_of(request: web.Request) -> str:
    """Return the access level of the sender of a request: `control`, `view`, or none."""
    access = request.app[ACCESS]
    return access.role(request.query.get("token") or request.cookies.get(access.cookie, ""))


def _netloc(address: str) -> str | None:
    """Return the host and port of an address, or None if the address is invalid, such as `http://[::1`."""
    try:
        return urlsplit(address).netloc
    except ValueError:
        return None


@web.middleware
async def guard_requests(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Check every request before it is answered."""
    access = request.app[ACCESS]
    if access.names and request.headers.get("Host", "") not in access.names:
        return web.Response(
            status=421, text=f"wrong host name: this viewer answers only to {' or '.join(sorted(access.names))}\n"
        )
    foreign = _netloc(request.headers.get("Origin", "")) != request.headers.get("Host")
    if foreign and (request.method != "GET" or request.path == "/ws"):
        return web.Response(status=403, text="only the viewer's own page may send this request\n")
    if not role_of(request):
        return web.Response(status=403, text="missing or invalid token: open the address that `wavesim viz` printed\n")
    if "token" in request.query:  # move it from the address bar into a cookie
        moved = web.Response(status=303, headers={"Location": request.path})
        # Lax: a browser that comes from the page of `--open` would not send a strict cookie after this redirection
        moved.set_cookie(access.cookie, request.query["token"], httponly=True, samesite="Lax")
        return moved
    try:
        response = await handler(request)
    except web.HTTPException as error:
        response = web.Response(status=error.status, text=f"{error.reason}\n")
    except WaveSimError as error:  # the request cannot be fulfilled
        response = web.json_response({"error": getattr(error, "message", str(error))}, status=400)
    except Exception as error:  # ends this request only
        text = request.app[HUB].errors.record(f"the request {request.method} {request.path}", error)
        response = web.json_response({"error": f"the viewer failed: {text}"}, status=500)
    if not response.prepared:
        host = request.headers.get("Host", "")
        response.headers["Content-Security-Policy"] = POLICY.format(ws=f"ws://{host}")
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Referrer-Policy"] = "no-referrer"
        response.headers["Cross-Origin-Opener-Policy"] = "same-origin"
        response.headers.setdefault("Cache-Control", "no-cache")
        if response.content_type == "application/json" and isinstance(response, web.Response):
            response.headers["Vary"] = "Accept-Encoding"
            response.enable_compression()
    return response


async def page(_request: web.Request) -> web.StreamResponse:
    return web.FileResponse(STATIC / "index.html", headers={"Vary": "Accept-Encoding"})


async def static(request: web.Request) -> web.StreamResponse:
    name = request.match_info["name"]
    file = STATIC / name
    if Path(name).name != name or not file.is_file():
        raise web.HTTPNotFound
    # FileResponse sends the compressed file beside it to a browser that accepts it
    headers = {"Vary": "Accept-Encoding"}
    if HASHED.search(name):
        headers["Cache-Control"] = "private, max-age=31536000, immutable"
    return web.FileResponse(file, headers=headers)


async def appearance(request: web.Request) -> web.StreamResponse:
    """Return the glTF file of a model in the scene. A log does not contain it: for a replay, it is searched in the folders
    of the configuration, of the log and of the viewer.
    """
    source = request.app[HUB].source
    scene = source.scene()[1] if source is not None else None
    model = scene["models"].get(request.match_info["model"]) if scene is not None else None
    if source is None or scene is None or model is None or not model["appearance"]:
        raise web.HTTPNotFound
    folders = [Path(scene["file"]).parent]
    if source.kind == "replay":
        if not (given := source.configuration().text).lstrip().startswith("<"):  # a path, not XML
            folders.insert(0, Path(given).parent)
        folders.append(request.app[CONFIGURATOR].folder)
    loop = asyncio.get_running_loop()
    content = await loop.run_in_executor(
        request.app[WORK], lambda: read_appearance(find_appearance(model["appearance"], folders))
    )
    return web.Response(body=content, content_type="model/gltf-binary")


async def series(request: web.Request) -> web.StreamResponse:
    """Return the lines of a chart. The query contains one or more ``line=ROW/KEY`` parameters, the times ``since`` and
    ``until`` (s), and the number of ``points``.
    """
    lines = request.query.getall("line", [])
    try:
        wanted = [(int(row), key) for row, _, key in (line.partition("/") for line in lines)]
        since, until = (float(request.query.get(k, f)) for k, f in (("since", "-inf"), ("until", "inf")))
        points = int(request.query.get("points", "1200"))
    except ValueError:
        raise RequestFailed(
            "invalid query: line must be ROW/KEY, and the values of since, until and points must be numbers"
        ) from None
    if any(not 0 <= row < MOST_ROW for row, _ in wanted):
        raise RequestFailed("unknown row")
    if not 0 < len(wanted) <= MOST_LINES or not 0 < points <= MOST_POINTS:
        raise RequestFailed(f"invalid query: expected 1 to {MOST_LINES} lines and at most {MOST_POINTS} points")
    if len(wanted) * points > MOST_VALUES:
        raise RequestFailed(f"invalid query: expected at most {MOST_VALUES} values (lines times points)")
    past = request.app[HUB].history
    return web.json_response(aligned([past.line(*w) for w in wanted], since, until, points))


async def signals(request: web.Request) -> web.StreamResponse:
    """Return the signals between the times ``since`` and ``until`` (s) of a log."""
    try:
        since, until = float(request.query["since"]), float(request.query["until"])
    except (KeyError, ValueError):
        raise RequestFailed("invalid query: since and until must be times in s") from None
    source = request.app[HUB].source
    if not isinstance(source, ReplaySource):
        raise RequestFailed("only a replay lists the signals of a time span")
    if not (math.isfinite(since) and math.isfinite(until)):
        raise RequestFailed("invalid query: since and until must be finite")
    return web.json_response(source.signals(since, until))


async def kit(request: web.Request) -> web.StreamResponse:
    """Return the equipment of the body in ``?row=``, for charts."""
    source, row = request.app[HUB].source, request.query.get("row", "")
    if source is None or not row.isdecimal() or len(row) > 9 or int(row) >= MOST_ROW:
        raise RequestFailed("body missing: add ?row=NUMBER")
    return web.json_response(to_json_value(source.equipment(int(row))))


async def tile(request: web.Request) -> web.StreamResponse:
    """Return an image of the user's chart."""
    tiles = request.app[TILES]
    found = tiles.tile(*(int(request.match_info[k]) for k in "zxy")) if tiles is not None else None
    if found is None:
        return web.Response(status=204)  # the chart ends there: not an error
    return web.Response(body=found[0], content_type=found[1], headers={"Cache-Control": "private, max-age=3600"})


async def chart(request: web.Request) -> web.StreamResponse:
    """Return the user's electronic chart."""
    cell = request.app[CELL]
    if cell is None:
        raise web.HTTPNotFound
    return web.json_response(cell.to_message())


async def acoustics(request: web.Request) -> web.StreamResponse:
    """Return rays, transmission loss, or a section of the sound speed (``page_acoustics.py``). The computation ends when
    the page no longer waits for it.
    """
    hub, wanted = request.app[HUB], parse_acoustics_request(await _json_object(request))
    configuration = hub.source.configuration() if hub.source is not None else SourceConfiguration("")
    process = request.app[ACOUSTICS]["loss" if wanted["kind"] == "loss" else "rays"]
    answer = asyncio.create_task(answer_acoustics(process, configuration, wanted))
    try:
        while not (await asyncio.wait({answer}, timeout=LEFT_S))[0]:
            if request.transport is None or request.transport.is_closing():
                raise web.HTTPRequestTimeout(reason="the page no longer waits for the answer")
        return web.json_response(answer.result())
    finally:
        answer.cancel()  # without effect on an answer that is complete


async def websocket(request: web.Request) -> web.StreamResponse:
    """Serve the websocket session of a viewer."""
    hub = request.app[HUB]
    if not request.app[OPENINGS].allow(address_of(request.transport), time.monotonic()):
        return web.Response(status=429, text="too many pages were opened from this address; try again in a moment\n")
    # on this machine, compression would only cost processor time
    compress = not _is_local(request.remote or "")
    ws = web.WebSocketResponse(heartbeat=20.0, compress=compress, max_msg_size=65536)
    await ws.prepare(request)
    upgraded(request)
    viewer = Viewer(ws, request.transport)
    viewer.first = "first" in request.query
    _evict_idle_viewer(hub, viewer.address)
    may_control = role_of(request) == "control" or isinstance(hub.source, ReplaySource)
    # files and programs need control rights; the clock of a log is open to all
    tiles = request.app[TILES]
    viewer.send(
        hub.hello(
            control=may_control,
            write=role_of(request) == "control",
            tiles=tiles.described if tiles is not None else None,
            chart=request.app[CELL] is not None,
        )
    )
    hub.add(viewer)
    sender = asyncio.create_task(hub.serve(viewer))
    try:
        async for message in ws:
            if message.type is not WSMsgType.TEXT:
                raise InvalidRequest("bytes", "invalid message: it is binary, but the viewer's page sends only text")
            await _act(hub, viewer, parse_request(message.data), may_control)
    except InvalidRequest as error:  # not the viewer's page: close its socket only
        hub.count_invalid_request(error.kind, str(error))
        await ws.close(code=WSCloseCode.POLICY_VIOLATION, message=str(error).encode()[:120])
    finally:
        hub.remove(viewer)
        sender.cancel()
    return ws


def _evict_idle_viewer(hub: Hub, address: str) -> None:
    """Close the oldest viewer of an address if there are too many viewers, so that idle sockets cannot prevent other
    users from connecting.
    """
    each = Counter(v.address for v in hub.viewers)
    crowd = address if each[address] >= MOST_EACH and not _is_local(address) else ""
    if not crowd and len(hub.viewers) >= MOST_VIEWERS:
        crowd = max(each, key=lambda a: each[a])
    if crowd:
        hub.drop(min((v for v in hub.viewers if v.address == crowd), key=lambda v: v.number))


def _is_local(address: str) -> bool:
    """Return whether an address belongs to this machine."""
    return ipaddress.ip_address(address.partition("%")[0] or "::").is_loopback


async def _act(hub: Hub, viewer: Viewer, wanted: PageRequest, may_control: bool) -> None:
    """Execute a request from a page."""
    if isinstance(wanted, WatchRequest):
        viewer.watched, viewer.kit, viewer.panel, viewer.traffic = wanted.row, None, "", ""
    elif isinstance(wanted, DetailsRequest):
        viewer.first = False
        viewer.fresh.set()
    elif isinstance(wanted, PicturesRequest):
        hub.watch_pictures(viewer, wanted.sonars)
    elif isinstance(wanted, MosaicRequest):
        hub.watch_mosaic(viewer, wanted.on)
    elif not may_control:
        text = "this viewer is read-only; to send commands, start it with: wavesim viz --control"
        viewer.send({"type": "reply", "ok": False, "text": text})
    elif isinstance(wanted, DriveRequest):
        hub.drive(viewer, wanted)
    elif isinstance(wanted, VehicleCommandRequest):
        hub.command(viewer, wanted)
    elif isinstance(wanted, AcknowledgeRequest):
        ok, said = hub.acknowledge(wanted.alarm)
        viewer.send({"type": "reply", "ok": ok, "text": said})
    elif isinstance(wanted, ShelveRequest):
        ok, said = hub.shelve(wanted.alarm, wanted.seconds)
        viewer.send({"type": "reply", "ok": ok, "text": said})
    else:
        ok, said = await hub.control(wanted)
        viewer.send({"type": "reply", "ok": ok, "text": said})


WORKERS, MOST_WORK = (
    2,
    16,
)  #: maximum number of configurator requests that are in progress, and maximum number that are in progress or waiting
WORK = web.AppKey("work", concurrent.futures.ThreadPoolExecutor)
WAITING = web.AppKey("waiting", dict[str, int])
#: separate processes for rays and for losses: rays stay up to date even if the loss in a plane takes minutes to compute
ACOUSTICS = web.AppKey("acoustics", dict[str, AcousticsProcess])
LEFT_S = 0.25  #: interval in s at which the viewer checks whether a page still waits for an answer
OPENINGS = web.AppKey("openings", ConnectionRateLimiter)
TILES: web.AppKey[Tileset | None] = web.AppKey("tiles")
CELL: web.AppKey[ChartCell | None] = web.AppKey("cell")


async def _json_object(request: web.Request) -> dict[str, Any]:
    """Read the JSON object in the body of a request. Raises RequestFailed if there is none."""
    try:
        async with asyncio.timeout(BODY_S):
            body = await request.json()
    except (ValueError, RecursionError):
        raise RequestFailed("invalid JSON") from None
    except TimeoutError:
        raise RequestFailed(f"the request was not complete within {BODY_S:g} s") from None
    if not isinstance(body, dict):
        raise RequestFailed("a request must be a JSON object: {...}")
    return body


def json_call(method: Callable[[Configurator, Any], Any], changes: bool = False) -> Handler:
    """Handle a configurator request outside the event loop."""

    async def call(request: web.Request) -> web.StreamResponse:
        if changes and role_of(request) != "control":
            raise RequestFailed("this viewer is read-only; to write files and run programs, start it with --control")
        body = await _json_object(request) if request.method == "POST" else dict(request.query)
        if (waiting := request.app[WAITING])["now"] >= MOST_WORK:
            raise RequestFailed("the viewer is busy with earlier requests; try again in a moment")
        waiting["now"] += 1
        try:
            run = asyncio.get_running_loop().run_in_executor
            found = await run(request.app[WORK], method, request.app[CONFIGURATOR], body)
        finally:
            waiting["now"] -= 1
        return web.json_response(to_json_value(found))

    return call


async def upload(request: web.Request) -> web.StreamResponse:
    """Receive a file for the configurator. Its name is in ``?file=``."""
    if role_of(request) != "control":
        raise RequestFailed("this viewer is read-only; to write files and run programs, start it with --control")
    text = f"the file is larger than {MOST_UPLOAD >> 20} MiB, which is the maximum"
    if (request.content_length or 0) > MOST_UPLOAD:
        raise RequestFailed(text)
    data = bytearray()
    try:
        async with asyncio.timeout(UPLOAD_S):
            async for chunk in request.content.iter_chunked(1 << 18):
                data += chunk
                if len(data) > MOST_UPLOAD:
                    raise RequestFailed(text)
    except TimeoutError:
        raise RequestFailed(f"the upload was not complete within {UPLOAD_S:g} s") from None
    found = request.app[CONFIGURATOR].upload({"file": request.query.get("file"), "data": bytes(data)})
    return web.json_response(found)


def make_app(
    source: ViewerSource | None,
    rate: float,
    access: AccessPolicy,
    folder: Path,
    rules: AlarmRules | None = None,
    tiles: Tileset | None = None,
    cell: ChartCell | None = None,
    make_process: Callable[[], AcousticsProcess] = AcousticsProcess,
) -> web.Application:
    """Build the web application. If ``source`` is None, it serves only the configurator."""
    app = web.Application(middlewares=[guard_requests], client_max_size=MOST_BYTES)
    hub = Hub(source, rate, rules)
    app[ACCESS], app[HUB], app[TILES], app[CELL] = access, hub, tiles, cell
    app[OPENINGS] = ConnectionRateLimiter()
    app[ACOUSTICS] = {kind: make_process() for kind in ("rays", "loss")}
    app[WORK], app[WAITING] = concurrent.futures.ThreadPoolExecutor(WORKERS, "work"), {"now": 0}
    app[CONFIGURATOR] = Configurator(folder, lambda: source.scene()[1]["file"] if source is not None else "")
    app.router.add_get("/", page)
    app.router.add_get("/static/{name}", static)
    app.router.add_get("/appearance/{model}", appearance)
    app.router.add_get("/series", series)
    app.router.add_get("/signals", signals)
    app.router.add_get("/kit", kit)
    app.router.add_get(r"/tiles/{z:\d{1,2}}/{x:\d{1,8}}/{y:\d{1,8}}", tile)
    app.router.add_get("/chart", chart)
    app.router.add_post("/acoustics", acoustics)
    app.router.add_get("/ws", websocket)
    app.router.add_get("/api/models", json_call(Configurator.models))
    app.router.add_get("/api/model", json_call(Configurator.model))
    app.router.add_get("/api/vehicles", json_call(Configurator.vehicles))
    app.router.add_get("/api/vehicle", json_call(Configurator.vehicle))
    app.router.add_get("/api/schema", json_call(Configurator.schema))
    app.router.add_get("/api/hull-files", json_call(Configurator.hull_files))
    app.router.add_post("/api/upload", upload)
    app.router.add_post("/api/hull", json_call(Configurator.open_hull, changes=True))
    app.router.add_post("/api/hull-fit", json_call(Configurator.fit_hull, changes=True))
    app.router.add_post("/api/hull-model", json_call(Configurator.hull_model, changes=True))
    app.router.add_get("/api/from-mesh", json_call(Configurator.from_mesh))
    app.router.add_post("/api/from-mesh", json_call(Configurator.start_from_mesh, changes=True))
    app.router.add_post("/api/from-mesh-cancel", json_call(Configurator.cancel_from_mesh, changes=True))
    app.router.add_post("/api/vessel", json_call(Configurator.import_vessel, changes=True))
    app.router.add_post("/api/import", json_call(Configurator.import_model, changes=True))
    app.router.add_post("/api/check", json_call(Configurator.check, changes=True))
    app.router.add_post("/api/test", json_call(Configurator.test_drive, changes=True))
    app.router.add_post("/api/save", json_call(Configurator.save, changes=True))
    app.router.add_post("/api/fit", json_call(Configurator.check_instruments, changes=True))
    app.router.add_post("/api/mount", json_call(Configurator.save_instruments, changes=True))
    app.router.add_post("/api/mission-file", json_call(Configurator.mission_file, changes=True))
    app.router.add_post("/api/mission", json_call(Configurator.mission, changes=True))

    async def running(_app: web.Application) -> Any:
        task = asyncio.create_task(hub.run())
        yield
        task.cancel()
        app[WORK].shutdown(wait=False, cancel_futures=True)
        app[CONFIGURATOR].mesh_job.cancel()
        hub.close()
        for process in app[ACOUSTICS].values():
            await process.close()

    app.cleanup_ctx.append(running)
    return app
