"""Virtual devices: their bytes against golden frames and other people's parsers; foreign bytes do no harm."""

from __future__ import annotations

import math
import struct
from datetime import UTC, datetime

import pynmea2
import pytest
from brping import PingMessage, PingParser, definitions
from hypothesis import given
from hypothesis import strategies as st

from wavesim_sdk.devices import nanomodem, nmea, ping1d

TIME = datetime(2026, 3, 4, 5, 6, 7, 890000, UTC)


@given(st.floats(-1.5, 1.5), st.floats(-3.14, 3.14), st.floats(0, 20), st.floats(0, 6.28318))
def test_positions_survive_nmea(latitude: float, longitude: float, speed: float, course: float) -> None:
    fix = pynmea2.parse(nmea.gga(TIME, latitude, longitude, 1.5, 9, 0.9).decode(), check=True)
    assert fix.latitude == pytest.approx(math.degrees(latitude), abs=2e-8)
    assert fix.longitude == pytest.approx(math.degrees(longitude), abs=2e-8)
    assert fix.timestamp.hour == 5 and fix.gps_qual == 1 and int(fix.num_sats) == 9
    way = pynmea2.parse(nmea.rmc(TIME, latitude, longitude, speed, course).decode(), check=True)
    assert way.datestamp.isoformat() == "2026-03-04"
    assert way.spd_over_grnd == pytest.approx(speed / nmea.KNOT, abs=1e-3)
    assert 0.0 <= way.true_course < 360.0
    assert abs((way.true_course - math.degrees(course) + 180.0) % 360.0 - 180.0) < 0.006


def test_every_other_sentence_is_understood() -> None:
    def parse(data: bytes) -> pynmea2.NMEASentence:
        assert data.endswith(b"\r\n")
        return pynmea2.parse(data.decode(), check=True)

    assert float(parse(nmea.hdt(math.radians(359.999))).heading) == 0.0
    assert float(parse(nmea.rot(math.radians(2.0))).rate_of_turn) == pytest.approx(120.0)
    assert float(parse(nmea.dpt(12.345)).depth) == pytest.approx(12.35, abs=0.011)
    depth = parse(nmea.dbt(18.288))
    assert (float(depth.depth_feet), float(depth.depth_meters), float(depth.depth_fathoms)) == (60.0, 18.29, 10.0)
    assert float(parse(nmea.mtw(14.256)).temperature) == pytest.approx(14.26)
    log = parse(nmea.vhw(1.0, 1.5))
    assert float(log.water_speed_km) == pytest.approx(5.4) and float(log.heading_true) == pytest.approx(57.3)
    wind = parse(nmea.mwv(math.pi / 2, 8.0))
    assert (float(wind.wind_angle), wind.reference, float(wind.wind_speed)) == (90.0, "R", 8.0)
    tilt = parse(nmea.xdr(0.1, -0.05))
    assert float(tilt.get_transducer(0).value) == pytest.approx(-2.86) and tilt.get_transducer(1).id == "ROLL"
    assert float(parse(nmea.vtg(1.0, 0.5)).spd_over_grnd_kmph) == pytest.approx(3.6)


def test_values_that_are_not_there_send_nothing() -> None:
    assert list(nmea.sentences({"echosounder": [0, math.nan], "unknown": [0, 1.0]})) == []
    assert [s for s, _ in nmea.sentences({"speedlog": [10**9, 1.0, 0.0, 0.0]})] == ["speedlog"]


def test_golden_frames_of_the_ping() -> None:
    assert ping1d.frame(6, struct.pack("<H", 1211), 0).hex() == "4252020006000000bb045b01"
    assert ping1d.frame(1211, struct.pack("<IB", 12345, 98), 0).hex() == "42520500bb04000039300000622302"


def test_the_ping_and_brpings_parser() -> None:
    out: list[bytes] = []
    ping = ping1d.Ping1D(out.append, 1500.0)
    ping.tick(0.0, 12.345)
    parser = PingParser()

    def ask(message: int, **fields: int) -> PingMessage:
        out.clear()
        request = PingMessage(message)
        for name, value in fields.items():
            setattr(request, name, value)
        ping.receive(bytes(request.pack_msg_data()))
        for byte in b"".join(out):
            if parser.parse_byte(byte) == PingParser.NEW_MESSAGE:
                return parser.rx_msg
        raise AssertionError("no answer")

    def get(what: int) -> PingMessage:
        return ask(definitions.COMMON_GENERAL_REQUEST, requested_id=what)

    first = get(definitions.PING1D_DISTANCE)  # brping 0.2.5 takes distance_simple and 1002 for another device's
    assert (first.distance, first.confidence) == (12345, 98)
    assert ask(definitions.PING1D_SET_SPEED_OF_SOUND, sos_mm_per_sec=1_450_000).message_id == definitions.COMMON_ACK
    ping.tick(1.0, 12.0)
    assert get(definitions.PING1D_DISTANCE).distance == 11600, "it measures times"
    refused = ask(definitions.PING1D_SET_SPEED_OF_SOUND, sos_mm_per_sec=5)
    assert refused.message_id == definitions.COMMON_NACK and refused.nacked_id == definitions.PING1D_SET_SPEED_OF_SOUND
    ask(definitions.PING1D_SET_MODE_AUTO, mode_auto=0)
    ask(definitions.PING1D_SET_RANGE, scan_start=0, scan_length=5000)
    ping.tick(2.0, 12.0)
    assert get(definitions.PING1D_DISTANCE).confidence == 0, "beyond the scan"
    ask(definitions.PING1D_SET_RANGE, scan_start=10_000, scan_length=4000)
    ping.tick(3.0, 12.0)
    profile = get(definitions.PING1D_PROFILE)
    assert profile.profile_data_length == 200
    peak = max(range(200), key=lambda k: profile.profile_data[k])
    assert 10_000 + (peak + 0.5) * 20 == pytest.approx(11_600, abs=20)


@given(st.binary(max_size=200))
def test_foreign_bytes_do_no_harm(data: bytes) -> None:
    out: list[bytes] = []
    ping1d.Ping1D(out.append, 1500.0).receive(data)
    parser = nanomodem.Parser()
    parser.feed(data)
    assert parser.feed(b"$?")[-1:] in ([b"?"], []) or parser.buffer, "a whole command is found, or belongs to another"


def test_commands_of_the_nanomodem_in_pieces() -> None:
    parser = nanomodem.Parser()
    assert [parser.feed(bytes((b,))) for b in b"xx$P005"][-1] == [b"P005"]
    assert parser.feed(b"$B03a$b$U00502$$$?") == [b"B03a$b", b"U00502$$", b"?"]
    assert parser.feed(b"$Pxyz$B99") == [None, None] and parser.feed(b"$B00") == [None]
