"""pyais and gpsd check our AIS sentences: every field of every message, to its resolution."""

from __future__ import annotations

import hashlib
import json
import math
import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import numpy as np
import pyais
import pytest

from tests import gpsd
from wavesim_devices import ais as encoder
from wavesim_sdk import ais

Read = Callable[[list[list[bytes]]], list[dict[str, Any]]]
#: steps of the numbers as they are sent
NONE = {"latitude": 91 * 600_000, "longitude": 181 * 600_000, "sog": 1023, "cog": 3600, "heading": 511, "turn": -128}


def some(seed: int, each: int) -> list[ais.AisReport]:
    """Reports of all kinds, among them the corners of every range, and what is not known."""
    rng = np.random.default_rng(seed)
    found = []
    for n in range(4 * each):
        kind, k = ais.CLASS_A + n % 4, n // 4

        def drawn(low: float, high: float, place: int = k) -> float | None:
            if place == 0:
                return None
            return low if place == 1 else high if place == 2 else float(rng.uniform(low, high))

        found.append(
            ais.AisReport(
                200_000_000 + n,
                kind,
                drawn(-math.pi / 2, math.pi / 2),
                drawn(-math.pi, math.pi),
                drawn(0.0, 102.2 * ais.KNOT),
                drawn(0.0, math.radians(359.9)),
                drawn(0.0, math.radians(359.0)),
                drawn(-0.2, 0.2),
                float(rng.uniform(0.0, 600.0)),
                int(rng.integers(0, 9)),
                f"VESSEL {n} [A-Z]?"[:20],
                f"LA{n}",
                int(rng.choice((30, 36, 52, 60, 70, 89) if kind != ais.AID_TO_NAVIGATION else (1, 20, 31))),
                float(rng.uniform(0.0, 400.0)),
                float(rng.uniform(0.0, 60.0)),
                "OSLO",
            )
        )
    return found


def messages(r: ais.AisReport, number: int) -> list[list[bytes]]:
    """The position report, then the static ones."""
    return [
        list(encoder.sentences(bits, number=number))
        for bits in (encoder.position_report(r), *encoder.static_reports(r))
    ]


def by_pyais(sent: list[list[bytes]]) -> list[dict[str, Any]]:
    """In the units and names of gpsd's unscaled reports."""
    found = []
    for parts in sent:
        m = pyais.decode(*parts).asdict()
        kind = m["msg_type"]
        out = {"type": kind, "mmsi": int(m["mmsi"])}
        for ours, theirs, factor in (
            ("lat", "lat", 6e5),
            ("lon", "lon", 6e5),
            ("speed", "speed", 10.0),
            ("course", "course", 10.0),
            ("heading", "heading", 1.0),
            ("second", "second", 1.0),
            ("status", "status", 1.0),
        ):
            if m.get(theirs) is not None:
                out[ours] = round(float(m[theirs]) * factor)
        if kind == 1:
            turn = m["turn"]
            rate = float(turn)
            out["turn"] = (
                -128 if rate == -128.0 else int(math.copysign(round(4.733 * math.sqrt(abs(rate))), rate)) if rate else 0
            )
        for name in ("shipname", "name"):
            if m.get(name) is not None:
                out[name] = m[name]
        out["kind"] = m.get("ship_type", m.get("aid_type"))
        out["size"] = tuple(m.get(k) for k in ("to_bow", "to_stern", "to_port", "to_starboard"))
        found.append(out)
    return found


def by_gpsd(sent: list[list[bytes]]) -> list[dict[str, Any]]:
    """All sentences come from a station that it is connected to; what it makes of them, in order."""
    with closing(socket.create_server(("127.0.0.1", 0))) as station:
        station.settimeout(20.0)
        process, port = gpsd.start(f"tcp://127.0.0.1:{station.getsockname()[1]}")
        try:
            with closing(gpsd.connect(port)) as client, closing(client.makefile()) as lines:
                client.sendall(b'?WATCH={"enable":true,"json":true,"scaled":false,"split24":true};\n')
                while json.loads(lines.readline())["class"] != "WATCH":
                    pass
                ours, _ = station.accept()
                with closing(ours):
                    ours.sendall(b"".join(line for parts in sent for line in parts))
                    found: list[dict[str, Any]] = []
                    while len(found) < len(sent):
                        said = json.loads(lines.readline())
                        if said["class"] == "AIS":
                            found.append(said)
        finally:
            process.terminate()
            process.wait(10)
    for m in found:
        m["kind"] = m.get("shiptype", m.get("aid_type"))
        m["size"] = tuple(m.get(k) for k in ("to_bow", "to_stern", "to_port", "to_starboard"))
    return found


def code(value: float | None, step: float, name: str) -> int:
    return NONE[name] if value is None else math.floor(value / step + 0.5)


def checked(r: ais.AisReport, read: Iterator[dict[str, Any]]) -> None:
    """A report as it was read, to the step of each field."""
    decoded = next(read)
    kind = {ais.CLASS_A: 1, ais.CLASS_B: 18, ais.CLASS_B_SO: 18, ais.AID_TO_NAVIGATION: 21}[r.kind]
    assert (decoded["type"], decoded["mmsi"]) == (kind, r.mmsi)
    assert decoded["lat"] == code(r.latitude, ais.STEP_ANGLE, "latitude")
    assert decoded["lon"] == code(r.longitude, ais.STEP_ANGLE, "longitude")
    assert decoded["second"] == math.floor(r.time) % 60
    size = math.floor(r.length + 0.5), math.floor(r.width + 0.5)
    if r.kind == ais.AID_TO_NAVIGATION:
        assert decoded["name"] == r.name and decoded["kind"] == r.ship_type
        assert (sum(decoded["size"][:2]), sum(decoded["size"][2:])) == size
        return
    assert decoded["speed"] == code(r.sog, ais.STEP_SPEED, "sog")
    assert decoded["course"] == code(r.cog, ais.STEP_COURSE, "cog")
    assert decoded["heading"] == code(r.heading, ais.STEP_HEADING, "heading")
    if r.kind == ais.CLASS_A:
        assert decoded["status"] == r.status
        assert decoded["turn"] == encoder.turn_code(r.turn)
        voyage = next(read)
        assert (voyage["type"], voyage["shipname"], voyage["kind"]) == (5, r.name, r.ship_type)
        assert (sum(voyage["size"][:2]), sum(voyage["size"][2:])) == size
    else:
        first, second = next(read), next(read)
        assert (first["type"], second["type"], first["shipname"], second["kind"]) == (24, 24, r.name, r.ship_type)
        assert (sum(second["size"][:2]), sum(second["size"][2:])) == size


@pytest.mark.parametrize("judge", [by_pyais, by_gpsd])
def test_every_field_is_read_to_its_step(judge: Read) -> None:
    """A wrong width, sign, step or code of any field of messages 1, 5, 18, 21 and 24 would be seen here."""
    reports = some(3, 40)
    sent = [m for n, r in enumerate(reports) for m in messages(r, n)]
    read = iter(judge(sent))
    for r in reports:
        checked(r, read)
    assert next(read, None) is None


def test_the_bytes_are_those_of_another_encoder() -> None:
    """Sentences that were written by an encoder of its own, before pyais encoded them; reserved types of ships stay."""
    lines = [line for n, r in enumerate(some(3, 40)) for parts in messages(r, n) for line in parts]
    digest = hashlib.sha256(b"".join(lines)).hexdigest()
    assert digest == "0c7d49d8f4407bbdab5bcba0e4ea4176af58ab76ea364f0663bae77eba1a4af8"
    ship = ais.AisReport(257000001, name="Nordstjärnan", ship_type=66, length=100.0, width=16.0)
    assert (
        messages(ship, 3)[1][0]
        == b"!AIVDM,2,1,3,A,53m62@H000000000000pu8A=@b18p4p0000000126@j8840Ht00000000000,0*08\r\n"
    )
