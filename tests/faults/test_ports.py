"""Unavailable ports and addresses, for every command that opens one: one line, an exit code, no traceback."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner

from wavesim_sdk import cli

HERE = "127.0.0.1"


class Taken(NamedTuple):
    """Ports that another program has."""

    tcp: int
    udp: int
    ardupilot: int  #: instances of a bridge whose port is taken
    px4: int


@pytest.fixture(scope="module")
def taken() -> Iterator[Taken]:
    sockets = []

    def bound(kind: socket.SocketKind, first: int = 0, apart: int = 0) -> int:
        """A port of this kind, of those at which a bridge can be: the instance."""
        for instance in range(100, 500):
            sock = socket.socket(socket.AF_INET, kind)
            try:
                sock.bind((HERE, first + apart * instance if first else 0))
            except OSError:
                sock.close()
                continue
            sockets.append(sock)
            if kind is socket.SOCK_STREAM:
                sock.listen(1)
            return instance if first else int(sock.getsockname()[1])
        raise AssertionError("no port is free")

    yield Taken(
        bound(socket.SOCK_STREAM),
        bound(socket.SOCK_DGRAM),
        bound(socket.SOCK_DGRAM, 9002, 10),
        bound(socket.SOCK_STREAM, 4560, 1),
    )
    for sock in sockets:
        sock.close()


DEVICES = ("nmea", "ping1d", "ping360", "omniscan", "surveyor", "sbe37", "sbe45", "dvl")
ORIGIN = ("--latitude", "41", "--longitude", "-8")
TAKEN: list[tuple[str, int]] = [
    *((f"device {d} x --tcp {{tcp}}", 1) for d in DEVICES),
    *((f"device {d} x --udp {{udp}}", 1) for d in DEVICES if d != "nmea"),  # it sends there, and listens nowhere
    ("device nanomodem x --address 1 --tcp {tcp}", 1),
    ("device micromodem x --address 1 --tcp {tcp}", 1),
    ("device seatrac x --beacon 1 --udp {udp}", 1),
    ("device boat x --nmea0183 tcp:{tcp}", 1),
    ("device boat x --nmea2000 udp:9 --nmea2000 tcp:{tcp}", 1),
    ("device boat x --signalk tcp:{tcp}", 1),
    ("bridge ardupilot --vehicle x --frame skid --instance {ardupilot}", 5),
    ("bridge px4 --vehicle x --frame boat --latitude 41 --longitude -8 --instance {px4}", 5),
    ("bridge dune --vehicle x --listen {udp}", 5),
    ("viz --port {tcp}", 8),
    ("configure --port {tcp}", 8),
    ("serve {file} --port {udp}", 8),
    ("trial {file} --duration 1 --port {udp} --out {folder}", 8),
]
WRONG: list[tuple[str, int]] = [
    *(
        (f"device boat x --signalk {where}", 2)
        for where in ("tcp:99999", "udp:0", "tcp:", "tcp:-1", "pty", "x", "udp:1e3")
    ),
    *((f"device {d} x --tcp 65536", 2) for d in DEVICES),
    *((f"device {d} x --udp -1", 2) for d in DEVICES),
    *((f"device {d} x --link /nowhere/at/all", 1) for d in DEVICES),
    ("device boat x --nmea0183 pty:/nowhere/at/all", 1),
    *((f"bridge {b} --vehicle x --frame boat --instance {i}", 2) for b in ("ardupilot", "px4") for i in (-1, 100_000)),
    ("bridge ardupilot --vehicle x --frame skid --instance 5653 --also y", 5),
    ("bridge px4 --vehicle x --frame boat --latitude 41 --longitude -8 --instance 60975 --also y", 5),
    ("bridge mavlink --vehicle x --instance 255", 2),
    ("bridge dune --vehicle x --listen 99999", 2),
    ("bridge dune --vehicle x --dune 127.0.0.1:99999", 1),
    ("bridge moos --vehicle x --db 127.0.0.1:99999", 1),
    *((f"{c} --port 65536", 2) for c in ("viz", "configure", "serve {file}", "trial {file}")),
    *((f"{c} --port 0 --address {a}", 2) for c in ("viz", "configure") for a in ("999.1.1.1", "x", "::1%", "1:2")),
    ("configure --port 0 --address 192.0.2.1", 8),
    *((f"device nmea x --server {s}", 2) for s in (":9", "h:0", "h:99999", "h:٣")),
    *((f"device nmea x --server {s}", 5) for s in ("1:2:3", "x..y:9", "[::1")),
    *((f"device nmea x --port 9 --host {h}", 5) for h in ("256.1.1.1", "x..y", "127.0.0.1:5", "a" * 300)),
]


@pytest.mark.system
@pytest.mark.parametrize(("command", "code"), [*TAKEN, *WRONG])
def test_one_line_and_an_exit_code(taken: Taken, tmp_path: Path, command: str, code: int) -> None:
    file = tmp_path / "c.xml"
    file.write_text("<wavesim><fleet><buoy name='b' model='buoy' position='0 0 5 m'/></fleet></wavesim>")
    cli.load_commands()
    words = command.format(**taken._asdict(), file=file, folder=tmp_path).split(" ")
    done = CliRunner().invoke(cli.cli, words)
    assert done.exception is None or isinstance(done.exception, SystemExit), repr(done.exception)
    said = [line for line in done.stderr.splitlines() if line.startswith(("wavesim: ", "Error: "))]
    assert done.exit_code == code and len(said) == 1 and "Traceback" not in done.output, done.output


def test_a_host_may_stand_in_brackets() -> None:
    """As in HOST:PORT and in addresses of the web; here nobody answers at it."""
    cli.load_commands()
    done = CliRunner().invoke(cli.cli, ["device", "nmea", "x", "--host", "[::1]", "--port", "9"])
    assert "no server answers at ::1:9" in done.stderr and done.exit_code == 5
