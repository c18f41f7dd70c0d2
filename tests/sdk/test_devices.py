"""Virtual devices: their bytes against golden frames and independent parsers; foreign bytes do no harm."""

from __future__ import annotations

import json
import math
import struct
from datetime import UTC, datetime, timedelta
from unittest.mock import Mock

import numpy as np
import pyais
import pynmea2
import pytest
from brping import Ping360, PingMessage, PingParser, definitions
from hypothesis import given
from hypothesis import strategies as st

from wavesim_devices import ais as encoder
from wavesim_devices import dvl, nanomodem, nmea, nmea2000, ping1d, ping360, seabird, signalk
from wavesim_devices.sensor_selection import select_sensors
from wavesim_sdk import ais
from wavesim_sdk.broker import AsyncBroker, Step
from wavesim_sdk.errors import BrokerError
from wavesim_sdk.sensors import SENSORS, value_fields
from wavesim_sdk.wire.client import State
from wavesim_sdk.wire.items import FieldDescription, SensorDescription
from wavesim_sdk.wire.state import Layout, Sensors, Value
from wavesim_world.ocean import sound

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
    assert list(nmea.sentences("echosounder", value("echosounder", 0, [math.nan]))) == []
    assert list(nmea.sentences("imu", value("imu", 0, [1.0]))) == [], "there is no sentence for it"
    assert next(iter(nmea.sentences("speedlog", value("speedlog", 10**9, [1.0])))).startswith(b"$IIVHW,,T,,M,1.944,N")


def test_a_talker_says_each_value_once_and_takes_the_sensors_it_is_given() -> None:
    out: list[bytes] = []
    talker = nmea.NmeaDevice(out.append, {"gps": "gps-mast", "speedlog": "log", "ahrs": "ahrs"})
    sensors = {
        "gps-mast": value("gps", 5, [0.7, 0.1]),
        "gps-spare": value("gps", 5, [0.8, 0.1]),
        "log": value("speedlog", 5, [1.0]),
    }
    sensors["ahrs"] = value("ahrs", 5, [0.0, 0.0, math.pi / 2])
    step = Step(State(0, 5, sensors=Sensors(sensors)))
    talker.step(step)
    assert [line[3:6] for line in out] == [b"GGA", b"RMC", b"VTG", b"GSA", b"VHW", b"HDT", b"ROT", b"XDR"]
    assert b"4006.42" in out[0] and b"90.00,T" in out[4]
    out.clear()
    talker.step(step)
    assert out == []


def test_a_talker_is_that_of_all_sentences_but_the_satellite_receivers() -> None:
    out: list[bytes] = []
    device = nmea.NmeaDevice(out.append, {"gps": "gps", "ahrs": "ahrs"}, "HE")
    sensors = {"gps": value("gps", 5, [0.7, 0.1, 0, 0, 0, 0.9, 1.0, 9]), "ahrs": value("ahrs", 5, [0.0, 0.0, 1.0])}
    device.step(Step(State(0, 5, sensors=Sensors(sensors))))
    parsed = [pynmea2.parse(line.decode(), check=True) for line in out]
    assert [m.talker + m.sentence_type for m in parsed] == [
        "GPGGA", "GPRMC", "GPVTG", "GPGSA", "GPGSV", "GPGSV", "GPGSV", "HEHDT", "HEROT", "HEXDR",
    ]  # fmt: skip
    assert parsed[3].hdop == "0.9" and [m.num_sv_in_view for m in parsed[4:7]] == ["09"] * 3
    assert (parsed[6].sv_prn_num_1, parsed[6].elevation_deg_1, parsed[6].azimuth_1) == ("09", "75", "320")


def test_all_outputs_of_a_boat_can_state_the_machines_clock() -> None:
    out: list[bytes] = []
    picked = {"gps": "gps", "ais": "ais"}
    own = value("gps", 5 * 10**9, [0.7, 0.1])
    sensors = Sensors({"gps": own})
    now = nmea.CLOCKS["wall"]
    before = datetime.now(UTC)
    for device in (
        nmea.NmeaDevice(out.append, picked, clock=now),
        nmea2000.Nmea2000Device(out.append, {"gps": "gps"}, now),
        signalk.SignalKDevice(out.append, {"gps": "gps"}, now),
    ):
        device.step(Step(State(0, own.time_ns, sensors=sensors)))
    after = datetime.now(UTC)
    rmc = pynmea2.parse(next(line for line in out if b"RMC" in line).decode())
    stated = [datetime.combine(rmc.datestamp, rmc.timestamp)]
    days, tenths = struct.unpack(
        "<HI", bytes.fromhex(next(x for x in out if b"R 0DF010" in x).split(b" R ")[1].decode()[8:])[2:8]
    )
    stated.append(datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=days, milliseconds=tenths / 10))
    stated.append(datetime.fromisoformat(json.loads(out[-1])["updates"][0]["timestamp"]))
    assert all(before - timedelta(seconds=0.01) <= t <= after for t in stated), (before, stated)


@pytest.mark.parametrize(("angle", "upper"), [(30, 0x42), (20, 0x41), (15, 0x40), (25, 0x43)])
def test_pd0_says_that_the_instrument_has_four_beams_and_at_which_angle(angle: int, upper: int) -> None:
    ensemble = dvl.Ensemble(1, TIME, (0.0,) * 3, (0.0,) * 3, (20.0,) * 4, 20.0)
    data = dvl.pd0(ensemble, angle)
    leader = struct.unpack_from("<H", data, 6)[0]
    assert struct.unpack_from("<H", data, leader)[0] == 0 and data[leader + 5] == upper


SUITE = [
    SensorDescription(k, name, type_, 10**8, [])
    for k, (name, type_) in enumerate([("dvl-down", "dvl"), ("dvl-up", "dvl"), ("ahrs", "ahrs"), ("probe", "ctd")])
]


def test_a_device_takes_the_only_sensor_of_a_type_or_the_one_that_is_named() -> None:
    types = ("dvl", "ahrs", "ctd", "gps")
    assert select_sensors(SUITE, types, ["dvl-up"], "dvl") == {"dvl": "dvl-up", "ahrs": "ahrs", "ctd": "probe"}
    assert select_sensors(SUITE, ("ahrs", "ctd")) == {"ahrs": "ahrs", "ctd": "probe"}


@pytest.mark.parametrize(
    ("types", "named", "needs", "text"),
    [
        (("dvl",), [], "dvl", "several sensors of type 'dvl': dvl-down, dvl-up; select one with --sensor"),
        (("dvl",), ["dvl-down", "dvl-up"], "dvl", "several sensors of type 'dvl'"),
        (("ctd",), ["ctd"], "ctd", "no sensor 'ctd'; "),
        (("ctd",), ["ahrs"], "ctd", "sensor 'ahrs' is of type 'ahrs', which this device does not use; it uses ctd"),
        (("gps",), [], "gps", "no sensor of type 'gps'; it has dvl-down, dvl-up, ahrs, probe"),
    ],
)
def test_a_device_without_its_sensor(types: tuple[str, ...], named: list[str], needs: str, text: str) -> None:
    with pytest.raises(BrokerError, match=text):
        select_sensors(SUITE, types, named, needs)


def test_golden_frames_of_the_ping() -> None:
    assert ping1d.encode_frame(6, struct.pack("<H", 1211), 0).hex() == "4252020006000000bb045b01"
    assert ping1d.encode_frame(1211, struct.pack("<IB", 12345, 98), 0).hex() == "42520500bb04000039300000622302"


def test_the_ping_and_brpings_parser() -> None:
    out: list[bytes] = []
    ping = ping1d.Ping1DDevice(out.append, 1500.0)
    ping.measure(0.0, 12.345)
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
    ping.measure(1.0, 12.0)
    assert get(definitions.PING1D_DISTANCE).distance == 11600, "it measures times"
    refused = ask(definitions.PING1D_SET_SPEED_OF_SOUND, sos_mm_per_sec=5)
    assert refused.message_id == definitions.COMMON_NACK and refused.nacked_id == definitions.PING1D_SET_SPEED_OF_SOUND
    ask(definitions.PING1D_SET_MODE_AUTO, mode_auto=0)
    ask(definitions.PING1D_SET_RANGE, scan_start=0, scan_length=5000)
    ping.measure(2.0, 12.0)
    assert get(definitions.PING1D_DISTANCE).confidence == 0, "beyond the scan"
    ask(definitions.PING1D_SET_RANGE, scan_start=10_000, scan_length=4000)
    ping.measure(3.0, 12.0)
    profile = get(definitions.PING1D_PROFILE)
    assert profile.profile_data_length == 200
    peak = max(range(200), key=lambda k: profile.profile_data[k])
    assert 10_000 + (peak + 0.5) * 20 == pytest.approx(11_600, abs=20)


class Wire:
    """brping's socket, in the same process: what it sends is obeyed at once, and time goes on while it waits."""

    def __init__(self, ranges: dict[int, float]) -> None:
        self.out: list[bytes] = []
        self.sonar = ping360.Ping360Device(self.out.append, 1500.0)
        self.time, self.ranges = 0.0, ranges
        for angle in ranges:
            self.go_on(angle)

    def go_on(self, angle: int) -> None:
        """The scanner looks along this many gradians."""
        self.time += 0.01
        found = [angle * math.pi / 200.0, self.ranges.get(angle, math.nan)]
        self.sonar.step(step(self.time, scanner=found))

    def send(self, data: bytes) -> int:
        self.sonar.receive(bytes(data))
        return len(data)

    def recv(self, size: int) -> bytes:
        self.go_on(0)
        if not self.out:
            raise BlockingIOError
        return self.out.pop(0)


def driven(ranges: dict[int, float]) -> tuple[Ping360, Wire]:
    driver, wire = Ping360(), Wire(ranges)
    driver.iodev = wire
    assert driver.initialize() is True
    return driver, wire


def strongest(data: bytearray, sample_m: float) -> float:
    """Metres of the strongest echo beyond the ring-down."""
    first = round(1.5 / sample_m)
    return (max(range(first, len(data)), key=lambda k: data[k]) + 0.5) * sample_m


def test_brping_turns_our_ping360() -> None:
    driver, wire = driven({0: math.nan, 50: 7.5, 51: 8.0, 100: 12.0, 398: 3.0})
    information = driver.get_device_information()
    assert information["device_type"] == 2 and driver.get_protocol_version()["version_major"] == 1
    for setting, v in (
        ("transmit_frequency", 740),
        ("sample_period", 800),
        ("number_of_samples", 1200),
        ("transmit_duration", 40),
    ):
        assert getattr(driver, f"set_{setting}")(v).message_id == definitions.PING360_DEVICE_DATA
        assert getattr(driver, f"_{setting}") == v and len(driver._data) == 0, (
            "without a transmission there are no echoes"
        )
    sample = 0.5 * 1500.0 * 800 * 25e-9
    for angle, distance in ((50, 7.5), (51, 8.0), (100, 12.0), (398, 3.0), (53, 8.0)):
        assert driver.transmitAngle(angle).angle == angle
        assert len(driver._data) == 1200 and strongest(driver._data, sample) == pytest.approx(distance, abs=sample), (
            angle
        )
    for angle in (0, 200):  # no echo, nothing seen
        driver.transmitAngle(angle)
        assert max(driver._data[100:]) == 0
    assert driver.set_gain_setting(3).message_id == definitions.COMMON_NACK and driver.set_angle(400).nacked_id == 2601
    assert driver.set_mode(1).gain_setting == 0
    driver.set_gain_setting(2)
    assert driver.transmitAngle(50) and max(driver._data[100:]) > 150
    wire.sonar.receive(ping1d.encode_frame(ping360.SET_DEVICE_ID, bytes((9, 0)), 0))
    assert driver.wait_message([definitions.COMMON_ACK]).src_device_id == 9
    assert driver.request(1211, 0.05) is None, "a distance is another device's"
    driver.control_reset(0, 0)
    assert driver.wait_message([definitions.COMMON_ACK]).acked_id == ping360.RESET
    assert driver.get_device_data()["number_of_samples"] == 1024


def test_an_automatic_scan_of_a_sector() -> None:
    driver, _ = driven({k % 400: 5.0 for k in range(390, 410)})
    driver.control_auto_transmit(1, 0, 40, 800, 740, 600, 395, 5, 4, 0)
    seen = [driver.wait_message([definitions.PING360_AUTO_DEVICE_DATA], 5.0) for _ in range(5)]
    assert [m.angle for m in seen] == [395, 399, 3, 395, 399]
    assert {(m.start_angle, m.stop_angle, m.num_steps, m.number_of_samples) for m in seen} == {(395, 5, 4, 600)}
    assert strongest(seen[2].data, 0.015) == pytest.approx(5.0, abs=0.015)
    driver.control_motor_off()
    assert driver.wait_message([definitions.COMMON_ACK]).acked_id == ping360.MOTOR_OFF
    assert driver.wait_message([definitions.PING360_AUTO_DEVICE_DATA], 0.1) is None
    driver.control_auto_transmit(1, 0, 40, 800, 740, 600, 395, 5, 40, 0)
    assert driver.wait_message([definitions.COMMON_NACK]).nack_message.startswith(b"num_steps must be between 1 and 10")


@given(st.binary(max_size=200))
def test_foreign_bytes_do_no_harm(data: bytes) -> None:
    out: list[bytes] = []
    ping1d.Ping1DDevice(out.append, 1500.0).receive(data)
    for message in (0, 2300, 2301, 2600, 2601, 2602, 2903, 2000):
        ping360.Ping360Device(out.append, 1500.0).receive(ping1d.encode_frame(message, data) + data)
    parser = nanomodem.NanoModemParser()
    parser.feed(data)
    assert parser.feed(b"$?")[-1:] in ([b"?"], []) or parser.buffer, "a whole command is found, or belongs to another"


def test_commands_of_the_nanomodem_in_pieces() -> None:
    parser = nanomodem.NanoModemParser()
    assert [parser.feed(bytes((b,))) for b in b"xx$P005"][-1] == [b"P005"]
    assert parser.feed(b"$B03a$b$U00502$$$?") == [b"B03a$b", b"U00502$$", b"?"]
    assert parser.feed(b"$Pxyz$B99") == [None, None] and parser.feed(b"$B00") == [None]


def test_a_nanomodem_asked_before_the_time_is_known_waits_as_long() -> None:
    """A device that comes back late in a run is asked before its first state: the time of that is no time-out."""
    broker, sent = Mock(spec=AsyncBroker), list[bytes]()
    modem = nanomodem.NanoModemDevice(broker, 3, 1500.0, sent.append)
    modem.receive(b"$P004")
    modem.step(step(1000.0))
    modem.step(step(1000.0 + nanomodem.TIMEOUT_S - 0.1))
    assert sent == [b"$P004\r\n"]
    modem.step(step(1000.0 + nanomodem.TIMEOUT_S))
    assert sent[1:] == [b"#TO\r\n"]
    modem.receive(b"$P005")
    modem.step(step(1007.9))
    modem.step(step(1008.0))
    assert sent[2:] == [b"$P005\r\n", b"#TO\r\n"]


# ------------------------------------------------------------------ Sea-Bird


def step(time_s: float, **sensors: list[float]) -> Step:
    ns = round(time_s * 1e9)
    return Step(State(0, ns, sensors=Sensors({k: value(k, ns, v) for k, v in sensors.items()})))


def value(type_: str, time_ns: int, numbers: list[float]) -> Value:
    """A value of a sensor of WaVeSim, its last numbers left out or not."""
    fields = [FieldDescription(f.name, f.unit, math.prod(f.shape)) for f in value_fields(SENSORS[type_])]
    layout = Layout(SensorDescription(0, type_, type_, 10**8, fields))
    return Value(layout, time_ns, (*numbers, *[0.0] * (layout.count - len(numbers))))


CTD = [20.1325, 15.0, 4.2914, 35.0]  # absolute dbar, T68, S/m


def test_a_line_of_the_sbe37_is_that_of_its_manual() -> None:
    time = datetime(2000, 1, 7, 4, 51, 39)
    assert seabird.line37(time, 24.8339, 0.97795, -9.262) == b"24.8339,  0.97795,   -9.262, 07 Jan 2000, 04:51:39\r\n"


def test_the_sbe37_and_its_commands() -> None:
    out: list[bytes] = []
    microcat = seabird.SeaBirdDevice(37, out.append)

    def ask(text: str) -> bytes:
        out.clear()
        microcat.receive(text.encode())
        return b"".join(out)

    assert ask("TS\r") == b"TS\r\nS>", "no value yet: it comes when there is one"
    out.clear()
    microcat.step(step(3.0, ctd=CTD))
    assert b"".join(out) == b"14.9964,  4.29140,   10.000, 01 Jan 2026, 00:00:03\r\n"
    assert b"sample interval = 10 seconds" in ask("ds\r\n") and b"not logging" in ask("DS\r")
    assert ask("INTERVAL=0\r") == b"INTERVAL=0\r\ninvalid interval: use 1 to 21600 s\r\nS>"
    assert ask("SAMPLEINTERVAL=5\r") == b"SAMPLEINTERVAL=5\r\nS>"
    assert ask("FROBNICATE\r") == b"FROBNICATE\r\n?CMD\r\nS>"
    ask("STARTNOW\r")
    out.clear()
    for k in range(201):
        microcat.step(step(3.0 + 0.1 * k, ctd=CTD))
    assert [line[-10:-2] for line in out] == [b"00:00:03", b"00:00:05", b"00:00:10", b"00:00:15", b"00:00:20"]
    ask("STOP\r")
    out.clear()
    microcat.step(step(60.0, ctd=CTD))
    assert out == []
    ask("GO\r")
    out.clear()
    microcat.step(step(70.0))
    assert out == [], "out of the water"


def test_the_sbe45_and_its_outputs() -> None:
    out: list[bytes] = []
    tsg = seabird.SeaBirdDevice(45, out.append)
    tsg.step(step(1.0, ctd=CTD))
    t, c, s, v = (float(x) for x in out[-1].decode().split(","))
    assert (t, c, s) == pytest.approx((14.9964, 4.2914, 35.0), abs=1e-4)
    assert v == pytest.approx(float(sound.chen_millero(np.array(15.0), np.array(35.0), np.array(0.0))), abs=1e-3)
    tsg.receive(b"OUTPUTSV=N\rOUTPUTSAL=X\r")
    assert b"Y or N" in out[-1]
    tsg.step(step(2.0, ctd=CTD))
    assert len(out[-1].split(b",")) == 3


# ------------------------------------------------------------------ Doppler log

DVL = [1.0, 0.2, -0.1, 0.9, 0.1, 0.0, *[0.0] * 4, 23.0, 24.0, 25.0, 26.0, 21.0, 4.0]


def test_pd6_by_its_manual() -> None:
    out: list[bytes] = []
    log = dvl.DvlDevice(out.append, "PD6", 1493.0)
    log.step(step(1.0, dvl=DVL, ahrs=[0.0, 0.0, math.pi / 2, 0, 0, 0], ctd=CTD))
    log.step(step(1.0, dvl=DVL))
    assert len(out) == 1, "each value once"
    log.step(step(3.0, dvl=DVL, ahrs=[0.0, 0.0, math.pi / 2, 0, 0, 0], ctd=CTD))
    lines = dict(line.split(",", 1) for line in out[-1].decode().split("\r\n") if line)
    assert lines[":SA"] == "+00.00,+00.00,90.00"
    assert lines[":TS"] == "26010100000300,35.0,+15.0,0009.9,1493.0,000"
    assert lines[":BS"] == "+00200,+01000,+00100,A" and lines[":WS"] == "+00100,+00900,+00000,A"
    assert lines[":BI"] == "+00200,+01000,+00100,+00000,A"
    assert lines[":BE"] == "+01000,-00200,+00100,A", "heading east: forward is east, starboard south"
    assert lines[":BD"] == "+00000002.00,-00000000.40,+00000000.20,0021.00,000.00"
    nan = math.nan
    log.step(step(4.0, dvl=[nan, nan, nan, 0.9, 0.1, 0.0, *[nan] * 8, nan, 0.0]))
    lines = dict(line.split(",", 1) for line in out[-1].decode().split("\r\n") if line)
    assert lines[":BS"] == "-32768,-32768,-32768,V" and lines[":WS"].endswith(",A")
    assert lines[":BD"].endswith(",0000.00,001.00"), "a second since the last good one"


def test_pd4_and_pd0_by_their_manuals() -> None:
    out: list[bytes] = []
    log = dvl.DvlDevice(out.append, "PD4", 1493.0)
    log.step(step(1.0, dvl=DVL))
    data = out[-1]
    assert len(data) == 47 and data[:2] == b"\x7d\x00" and struct.unpack_from("<H", data, 2)[0] == 45
    assert struct.unpack("<H", data[-2:])[0] == sum(data[:-2]) & 0xFFFF
    assert struct.unpack_from("<4h", data, 5) == (200, 1000, 100, 0)
    cos = math.cos(math.radians(30))
    assert struct.unpack_from("<4H", data, 13) == tuple(round(100 * cos * DVL[k]) for k in (13, 11, 10, 12))
    assert struct.unpack_from("<4h", data, 22) == (100, 900, 0, 0)
    log.receive(b"===")
    assert out[-1].endswith(b">") and not log.pinging
    log.receive(b"PD0\rCS\r")
    log.step(step(2.0, dvl=DVL))
    data = out[-1]
    assert data[:2] == b"\x7f\x7f" and struct.unpack_from("<H", data, 2)[0] == len(data) - 2
    offsets = struct.unpack_from(f"<{data[5]}H", data, 6)
    ids = {struct.unpack_from("<H", data, o)[0]: o for o in offsets}
    assert set(ids) == {0, 0x80, 0x100, 0x200, 0x300, 0x400, 0x600}
    assert struct.unpack_from("<4h", data, ids[0x600] + 24) == (-200, -1000, -100, 0), "the bottom's velocity"
    assert struct.unpack("<H", data[-2:])[0] == sum(data[:-2]) & 0xFFFF


def test_commands_of_the_doppler_log() -> None:
    out: list[bytes] = []
    log = dvl.DvlDevice(out.append, "PD6")

    def ask(text: str) -> bytes:
        out.clear()
        log.receive(text.encode())
        return b"".join(out)

    assert ask("ES12\r") == b"ES12\r\n>" and ask("CK\r") == b"CK\r\n>" and ask("EX10111\r") == b"EX10111\r\n>"
    assert b"ERR" in ask("EX11111\r") and b"ERR" in ask("BX5\r") and b"ERR" in ask("XX\r") and b"ERR" in ask("PD9\r")
    ask("BX150\r")  # 15 m: the bottom is farther away
    log.step(step(1.0, dvl=DVL))
    assert b":BS,-32768,-32768,-32768,V" in out[-1]
    ask("CR1\r")
    log.step(step(2.0, dvl=DVL))
    assert out[-1][:2] == b"\x7f\x7f", "factory settings: PD0, all depths"


@given(st.lists(st.binary(max_size=150), max_size=6))
def test_foreign_bytes_do_no_harm_to_the_others(parts: list[bytes]) -> None:
    out: list[bytes] = []
    for device in (
        seabird.SeaBirdDevice(37, out.append),
        seabird.SeaBirdDevice(45, out.append),
        dvl.DvlDevice(out.append),
    ):
        for part in parts:
            device.receive(part)
        assert len(device.lines._buffer) <= device.lines.limit


def _ais(time_s: float, *stations: dict[str, float | str]) -> Value:
    """A value of the sensor `ais` with these stations, one's own first."""
    names = [f.name for f in value_fields(SENSORS["ais"])]
    columns = {name: [math.nan] * (48 if name == "called" else 16) for name in names}
    for i, station in enumerate(stations):
        for name, number in station.items():
            if name == "called":
                columns[name][3 * i : 3 * i + 3] = ais.packed(str(number))
            else:
                columns[name][i] = float(number)
    return value("ais", int(time_s * 1e9), [x for name in names for x in columns[name]])


STATION: dict[str, float | str] = {
    "mmsi": 257000001,
    "latitude": 0.7,
    "longitude": -0.15,
    "sog": 5.0,
    "cog": 1.0,
    "heading": 1.1,
    "turn": 0.01,
    "age": 0.0,
    "station": 1,
    "kind": 70,
    "status": 0,
    "length": 100,
    "width": 16,
    "called": "NORTH STAR",
}


def test_reports_become_sentences_once_and_names_every_six_minutes() -> None:
    out: list[bytes] = []
    talker = nmea.NmeaDevice(out.append, {"ais": "ais"})
    other = STATION | {"mmsi": 2, "station": 2, "called": "SMALL"}

    def step(time_s: float, age: float) -> list[bytes]:
        out.clear()
        v = _ais(time_s, STATION | {"age": age}, other | {"age": age})
        talker.step(Step(State(0, int(time_s * 1e9), sensors=Sensors({"ais": v}))))
        return list(out)

    first = step(10.0, 0.0)
    assert [line[:6] for line in first] == [b"!AIVDO"] * 3 + [b"!AIVDM"] * 3, (
        "1 and 5 in two parts; 18 and both parts of 24"
    )
    assert len(first[0].strip()) == 47
    assert pyais.decode(*first[1:3]).asdict()["shipname"] == "NORTH STAR"
    assert step(11.0, 1.0) == [], "the same reports"
    assert [pyais.decode(line).asdict()["msg_type"] for line in step(20.0, 0.0)] == [1, 18]
    assert len(step(370.0, 0.0)) == 6, "names again"


@given(
    st.floats(-1.57, 1.57),
    st.floats(-3.14, 3.14),
    st.floats(0.0, 50.0),
    st.floats(0.0, 6.2831),
    st.floats(-0.2, 0.2),
    st.sampled_from([1, 2, 3]),
    st.integers(1, 999_999_999),
)
def test_pyais_reads_every_report(
    latitude: float, longitude: float, sog: float, cog: float, turn: float, kind: int, mmsi: int
) -> None:
    report = ais.AisReport(mmsi, kind, latitude, longitude, sog, cog, cog, turn, 12.0)
    for own in (False, True):
        read = pyais.decode(*encoder.sentences(encoder.position_report(report), own)).asdict()
        assert read["mmsi"] == mmsi and read["second"] == 12
        assert math.radians(float(read["lat"])) == pytest.approx(latitude, abs=0.51 * ais.STEP_ANGLE + 1e-8)
        assert math.radians(float(read["lon"])) == pytest.approx(longitude, abs=0.51 * ais.STEP_ANGLE + 1e-8)
        assert float(read["speed"]) == pytest.approx(sog / ais.KNOT, abs=0.051)
        assert abs((float(read["course"]) - math.degrees(cog) + 180.0) % 360.0 - 180.0) < 0.051
        assert abs((float(read["heading"]) - math.degrees(cog) + 180.0) % 360.0 - 180.0) < 0.51


def test_what_a_station_does_not_know() -> None:
    read = pyais.decode(*encoder.sentences(encoder.position_report(ais.AisReport(5)))).asdict()
    assert (read["lat"], read["lon"], read["speed"], read["course"], read["heading"]) == (
        91.0,
        181.0,
        102.3,
        360.0,
        511,
    )
    assert int(read["turn"]) == -128
    assert ais.unpacked(ais.packed("A-Z 0@9, TWENTY CHARACTERS")) == "A-Z 09, TWENTY CHAR"


def test_radar_targets_in_sentences() -> None:
    names = [f.name for f in value_fields(SENSORS["radar"])]
    columns = {name: [math.nan] * 16 for name in names}
    for name, number in {
        "target": 7,
        "range": 3704.0,
        "bearing": 0.0,
        "course": math.pi,
        "speed": 5.0,
        "age": 0.0,
        "status": 2.0,
    }.items():
        columns[name][3] = number
    v = value("radar", 0, [x for name in names for x in columns[name]])
    gps = value("gps", 0, [math.radians(41.0), math.radians(-8.7), 0.0, 5.0, 0.0, 0.9, 1.0, 9.0])
    track, place = [pynmea2.parse(line.decode(), check=True) for line in nmea.target_sentences(v, gps)]
    assert (int(track.target_number), float(track.distance)) == (7, 2.0) and track.status == "T"
    assert float(track.speed) == pytest.approx(5.0 / nmea.KNOT, abs=0.05) and float(track.cog) == 180.0
    assert float(track.dist_cpa) == 0.0 and float(track.time_cpa) == pytest.approx(370.4 / 60.0, abs=0.01)
    assert place.data[1][:2] == "41" and float(place.data[1][2:]) == pytest.approx(2.0, abs=0.01), "two miles north"
    assert len(list(nmea.target_sentences(v, None))) == 1, "no place without one's own"
