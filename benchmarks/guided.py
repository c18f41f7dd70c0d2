"""Run coverage-guided fuzzing of everything that reads foreign bytes, with atheris.

Atheris is not among the project's tools, because it has wheels for few platforms.

pip install atheris; python -m benchmarks.guided decoder|session|configuration|commander|log|devices -runs=300000
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["wavesim_sdk"]):
    from wavesim_devices import dvl, nanomodem, ping1d, seabird
    from wavesim_sdk import log
    from wavesim_sdk.commander import parse_command as parse_command
    from wavesim_sdk.errors import ConfigError, LogError
    from wavesim_sdk.testing import sessions_for_tests
    from wavesim_sdk.wire import codec, seal
    from wavesim_sdk.wire.client import ClientSession
    from wavesim_sdk.wire.items import EVENTS, REQUESTS
    from wavesim_sdk.wire.messages import MESSAGES, Join
    from wavesim_sdk.wire.schema import Malformed, unpack
    from wavesim_sdk.wire.vectors import VECTORS
    from wavesim_world.config import load

FOLDER = Path(tempfile.mkdtemp())


def decoder(data: bytes) -> None:
    """Decode any bytes as a datagram of either side."""
    for from_client in (True, False):
        try:
            codec.decode_payload(data, codec.decode_header(data, from_client))
        except codec.Dropped as dropped:
            assert dropped.reason in codec.DROP_REASONS
    for record in (*EVENTS.numbers, *REQUESTS.numbers, *(record for _, _, record in MESSAGES.values())):
        with contextlib.suppress(Malformed):
            unpack(record, data)


def _fails(error: Exception) -> None:
    """Raise errors that sessions would only count, because this search looks for them."""
    raise error


def session(data: bytes) -> None:
    """Pass datagrams with valid headers and arbitrary bodies to a server and a client with a session."""
    sessions, client, now = sessions_for_tests(on_error=_fails), ClientSession(Join(name="a")), 100.0
    for _ in range(3):
        now += 0.3
        for out in client.outgoing(now):
            sessions.receive(out, ("127.0.0.1", 4), now)
        for out, _ in sessions.outgoing:
            client.receive(out, now)
        sessions.outgoing.clear()
    for part in data.split(b"\xfe\xfd")[:8]:
        if part:
            head = codec._HEADER.pack(b"WVSM", 2, part[0], 0, client.token, 9, part[0])
            sessions.receive(head + part[1:], ("127.0.0.1", 4), now)
            client.receive(head + part[1:], now)
            client.outgoing(now)
            sessions.poll(now)
    sealed = sessions_for_tests(keys=seal.Keyring([seal.KeyHolder("*", bytes(32))]), on_error=_fails)
    sealed.receive(data, ("127.0.0.1", 4), now)


def configuration(data: bytes) -> None:
    """Read any bytes as a configuration."""
    path = FOLDER / "c.xml"
    path.write_bytes(data)
    with contextlib.suppress(ConfigError):
        load(path)


def commander(data: bytes) -> None:
    """Pass any bytes to the queue of the commander."""
    parse_command(data)


def log_reader(data: bytes) -> None:
    """Read any bytes as a log."""
    path = FOLDER / "x.mcap"
    path.write_bytes(b"\x89MCAP0\r\n" + data)
    with contextlib.suppress(LogError):
        log.read(path)


def devices(data: bytes) -> None:
    """Pass any bytes from hosts to the virtual devices."""
    out: list[bytes] = []
    for device in (
        seabird.SeaBirdDevice(37, out.append),
        seabird.SeaBirdDevice(45, out.append),
        dvl.DvlDevice(out.append),
        ping1d.Ping1DDevice(out.append, 1500.0),
    ):
        device.receive(data)
    nanomodem.NanoModemParser().feed(data)


TARGETS: dict[str, Callable[[bytes], None]] = {
    "decoder": decoder,
    "session": session,
    "configuration": configuration,
    "commander": commander,
    "log": log_reader,
    "devices": devices,
}


def seeds(name: str) -> list[bytes]:
    """Write valid inputs with which the search begins."""
    root = Path(__file__).parent.parent
    datagrams = [codec.encode(message, token, sequence, ack) for token, sequence, ack, message in VECTORS]
    found = {
        "decoder": datagrams,
        "session": [bytes((d[5],)) + d[24:] for d in datagrams],
        "configuration": [
            p.read_bytes()
            for p in (root / "config.xml", *(root / "examples").rglob("*.xml"), *root.rglob("models/*.xml"))
        ],
        "commander": [b'{"verb": "step", "ticks": 5, "id": 1, "reply": "/wavesim.x.reply.1"}'],
        "log": [p.read_bytes()[8:100_000] for p in (root / "runs").rglob("*.mcap")],
        "devices": [
            b"$P003$B05hello$?",
            b"INTERVAL=5\rTS\r",
            b"===PD6\rCS\r",
            ping1d.encode_frame(1001, bytes(8)),
            ping1d.encode_frame(6, b"\xbb\x04"),
        ],
    }
    return found[name]


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in TARGETS:
        raise SystemExit(__doc__)
    name = sys.argv.pop(1)
    corpus = FOLDER / "corpus"
    corpus.mkdir()
    for k, seed in enumerate(seeds(name)):
        (corpus / str(k)).write_bytes(seed)
    atheris.Setup([*sys.argv, str(corpus)], TARGETS[name])
    atheris.Fuzz()
