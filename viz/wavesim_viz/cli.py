"""Commands for the viewer. ``wavesim plot`` draws plots of a run, ``wavesim viz`` opens mission control in the browser,
``wavesim configure`` edits vehicle models, and ``wavesim soundings`` reads a sea bed from an electronic chart.
"""

from __future__ import annotations

import contextlib
import html
import ipaddress
import math
import os
import socket
import tempfile
import webbrowser
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from wavesim_sdk import termination_signals
from wavesim_sdk.cli import server_option, whole
from wavesim_sdk.cli_commands import unused
from wavesim_sdk.cli_numbers import Quantity
from wavesim_sdk.errors import ConfigError, WaveSimError
from wavesim_sdk.terminal_text import echo
from wavesim_world.cli_options import files_option

PORT = 9780


class PageNotBuilt(WaveSimError):
    """Raised when the viewer's page has not been built."""

    exit_code = 11


class WebPortTaken(WaveSimError):
    """Raised when the TCP port of the viewer is in use."""

    exit_code = 8


@click.command()
@click.argument("log", type=click.Path(path_type=Path))
@click.option(
    "--out", type=click.Path(path_type=Path), help="Write the plots to this folder; default: the folder of the log."
)
@click.option(
    "--mosaic",
    is_flag=True,
    help="Draw sonar results instead: a mosaic, the targets, and the depths compared with the true sea bed.",
)
@click.option(
    "--cell",
    type=Quantity("length", low=0.01, high=100.0),
    default=0.2,
    show_default=True,
    help="With --mosaic: cell size in m.",
)
@click.option("--geotiff", is_flag=True, help="With --mosaic: also write mosaics and depths as GeoTIFF.")
def plot(log: Path, out: Path | None, mosaic: bool, cell: float, geotiff: bool) -> None:
    """Plot the results of a run from its LOG."""
    from wavesim_sdk.log import read
    from wavesim_viz.plots import LoggedRun, draw

    if mosaic:
        from wavesim_viz import mosaic as mosaics

        for line in mosaics.draw(log, out or log.parent, cell, geotiff):
            echo(line)
        whole(read(log))
        return
    unused("without --mosaic", "cell", "geotiff")
    run = LoggedRun(log)
    for path in draw(run, out or log.parent, processes=min(2, len(os.sched_getaffinity(0)))):
        echo(path)
    whole(run.log)


def _web_options(command: Callable[..., None]) -> Callable[..., None]:
    options = (
        click.option("--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="TCP port; 0 = any free port."),
        click.option("--address", default="127.0.0.1", show_default=True, help="Address to listen on; an address other than loopback needs a token, which the printed address contains."),
        click.option("--rate", type=Quantity("frequency", low=1.0, high=60.0), default=20.0, show_default=True, help="Frames per second; the page interpolates between them."),
        click.option("--folder", type=click.Path(path_type=Path, file_okay=False, exists=True), default=Path(), help="Folder in which the configurator saves files; default: the current folder."),
        files_option,
        click.option("--open", "open_", is_flag=True, help="Open the page in a browser."),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


@click.command()
@click.argument("log", type=click.Path(path_type=Path), required=False)
@server_option
@click.option("--remote", metavar="ADDRESS:PORT", help="Server on another machine; the viewer joins it as an observer.")
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    help="Configuration with the sea bed and the missions; default: the configuration of the server or the log.",
)
@click.option(
    "--control",
    is_flag=True,
    help="Allow viewers to start, stop, pause and step the simulation and to save files. The printed address contains a token, which every request needs.",
)
@click.option(
    "--compare", type=click.Path(path_type=Path), help="Second log, which is drawn in the same charts for comparison."
)
@click.option(
    "--tiles",
    type=click.Path(path_type=Path),
    help="MBTiles or PMTiles file with a raster chart, which is drawn as the background.",
)
@click.option(
    "--enc",
    type=click.Path(path_type=Path),
    help="Electronic chart (S-57 cell, *.000), which is drawn as the background.",
)
@click.option("--alarms", type=click.Path(path_type=Path), help="TOML file with alarm rules (docs/viewer.md).")
@_web_options
def viz(
    log: Path | None,
    server: str,
    remote: str | None,
    config: Path | None,
    control: bool,
    compare: Path | None,
    tiles: Path | None,
    enc: Path | None,
    alarms: Path | None,
    port: int,
    address: str,
    rate: float,
    folder: Path,
    open_: bool,
) -> None:
    """Show a running server or replay a LOG in the browser.

    \b
    wavesim viz --control            show the server `wavesim` on this machine
    wavesim viz run.mcap             replay a log with a time slider
    wavesim viz --remote 10.0.0.7:9750 --config config.xml
    """
    if log is not None and remote is not None:
        raise click.UsageError("use either a log or --remote, not both")
    if compare is not None and log is None:
        raise click.UsageError("--compare needs a LOG")
    host, _, number = (remote or "").rpartition(":")
    if remote is not None and not (number.isdigit() and host):
        raise click.UsageError("--remote expects ADDRESS:PORT, such as 10.0.0.7:9750")
    _page_is_built()
    from wavesim_viz.alarms import AlarmRules
    from wavesim_viz.s57 import read_cell
    from wavesim_viz.tiles import open_tiles

    rules = AlarmRules.read(alarms) if alarms is not None else None
    charted = open_tiles(tiles) if tiles is not None else None
    cell = read_cell(enc) if enc is not None else None
    sock = _bind(address, port)  # a long log takes time to read: check the port and the page first
    source: Any
    if log is not None:
        from wavesim_viz.replay import ReplaySource

        source = ReplaySource(log, compare, config)
        if warning := source.scene()[1].get("warning"):
            echo(f"wavesim viz: {warning}", err=True)
    elif remote is not None:
        from wavesim_viz.remote import RemoteSource

        source = RemoteSource((host.strip("[]"), int(number)), rate, config)
    else:
        from wavesim_viz.live import LiveSource

        source = LiveSource(server, config)
    _serve(source, source.name, address, sock, rate, folder, control, open_, "", rules, charted, cell)


@click.command()
@click.argument("cell", type=click.Path(path_type=Path))
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--config", type=click.Path(path_type=Path), help="Configuration that defines the origin of the world.")
@click.option(
    "--origin",
    type=(Quantity("angle", "deg"),) * 2,
    metavar="LAT LON",
    help="Latitude and longitude of the world's origin in degrees, instead of --config.",
)
def soundings(cell: Path, out: Path, config: Path | None, origin: tuple[float, float] | None) -> None:
    """Convert an electronic chart into soundings.

    CELL is an S-57 cell (*.000). OUT receives soundings and depth contours of the cell, as a sea bed for <soundings
    file="OUT"/>.
    """
    from wavesim_sdk.geodesy import Origin
    from wavesim_viz.s57 import read_cell
    from wavesim_world.config import load

    if config is not None and origin is None:
        world = load(config).config.world
        place = world.latitude, world.longitude
    elif origin is not None and config is None:
        if not (abs(origin[0]) <= 90.0 and abs(origin[1]) <= 180.0):
            raise click.UsageError("--origin expects latitude and longitude in degrees")
        place = math.radians(origin[0]), math.radians(origin[1])
    else:
        raise click.UsageError("use --config FILE or --origin LAT LON")
    bed = read_cell(cell).bed(Origin(*place))
    try:
        with out.open("x", encoding="utf-8") as file:
            file.write(
                f"# north east depth (m) of {cell.name}, around {math.degrees(place[0])} {math.degrees(place[1])}\n"
            )
            file.writelines(f"{n:.2f} {e:.2f} {d:.2f}\n" for n, e, d in bed)
    except OSError as error:
        raise ConfigError(f"cannot write the file: {error.strerror}", str(out)) from None
    echo(f"{len(bed)} points, {bed[:, 2].min():g} to {bed[:, 2].max():g} m deep: {out}")


@click.command()
@_web_options
def configure(port: int, address: str, rate: float, folder: Path, open_: bool) -> None:
    """Create and edit vehicle models in the browser. You can place thrusters, fins and sensors, try out the model and
    save it.
    """
    _page_is_built()
    _serve(None, "configurator", address, _bind(address, port), rate, folder, True, open_, "#configure")


def _page_is_built() -> None:
    from wavesim_viz.web import STATIC

    if not (STATIC / "index.html").is_file():
        raise PageNotBuilt(
            "the viewer's page is not built; run `make web` (needs Node.js: `apt-get install nodejs npm`)"
        )


def _bind(address: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ipaddress.ip_address(address).version == 6 else socket.AF_INET
    except ValueError:
        raise ConfigError(f"--address {address}: not an IP address") from None
    sock = socket.socket(family)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((address, port))
        sock.listen(128)
    except OSError as error:
        raise WebPortTaken(f"cannot use TCP {address}:{port}: {error.strerror}; select another with --port") from None
    return sock


@contextlib.contextmanager
def private_link(url: str, token: str) -> Iterator[str]:
    """Yield an address for the command line of a browser. Other users of the machine can read this command line. If
    there is a ``token``, the address therefore leads to a private file that redirects to ``url``. The file exists until
    the end of the block.
    """
    if not token:
        yield url
        return
    with tempfile.NamedTemporaryFile("w", prefix="wavesim-", suffix=".html", encoding="utf-8") as file:
        file.write(f'<meta charset="utf-8"><meta http-equiv="refresh" content="0; url={html.escape(url)}">')
        file.flush()
        yield Path(file.name).as_uri()


def _serve(
    source: Any,
    name: str,
    address: str,
    sock: socket.socket,
    rate: float,
    folder: Path,
    control: bool,
    open_: bool,
    place: str,
    rules: Any = None,
    tiles: Any = None,
    cell: Any = None,
) -> None:
    import asyncio

    from wavesim_viz.connection_limits import open_site
    from wavesim_viz.web import AccessPolicy, make_app

    access = AccessPolicy.make(address, sock.getsockname()[1], control)

    async def run() -> None:
        async with open_site(make_app(source, rate, access, folder, rules, tiles, cell), sock):
            await wait_for_end()

    async def wait_for_end() -> None:
        stop = asyncio.Event()
        for s in termination_signals.termination_signals():
            asyncio.get_running_loop().add_signal_handler(s, stop.set)
        first = access.view_token or access.control_token
        echo(
            f"viewer of '{name}' at {access.url(first)}{place}"
            + ("" if control or place or source.kind == "replay" else " (read-only; use --control to allow control)"),
            err=True,
        )
        if access.view_token and access.control_token:
            echo(f"with control at {access.url(access.control_token)}", err=True)
        if access.view_token:
            echo(
                "other machines on this network can read the data sent to the browser: the connection has no TLS (docs/viewer.md)",
                err=True,
            )
        with contextlib.ExitStack() as until_end:
            if open_:
                token = access.control_token or access.view_token
                url = until_end.enter_context(private_link(access.url(token) + place, token))
                opened = False
                with contextlib.suppress(webbrowser.Error):
                    opened = webbrowser.open(url)
                if not opened:
                    echo("cannot open a browser here (no display?); open the address above in your browser", err=True)
            await stop.wait()

    asyncio.run(run())


def commands() -> list[click.Command]:
    return [plot, viz, soundings, configure]
