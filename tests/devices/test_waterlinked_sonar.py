"""Virtual Sonar 3D-15: packets byte for byte, its HTTP interface, and the maker's package on a real server."""

from __future__ import annotations

import datetime
import json
import math
import socket
import struct
import subprocess
import time
import zlib
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import Server
from tests.devices.bench import device, processes
from tests.nursery import launch
from tests.sdk.test_devices import step
from wavesim_devices.ports import UdpTarget
from wavesim_devices.waterlinked_sonar import packets
from wavesim_devices.waterlinked_sonar.device import GROUP, HIGH, LOW, Sonar3D15
from wavesim_sdk.attach import SharedState
from wavesim_sdk.errors import BrokerError
from wavesim_sdk.imaging_frames import FRAME_KINDS, PIXEL_3D, RECORD, ImagingFrame
from wavesim_world.config import LoadedConfig

__all__ = ["processes"]
ROWS, COLUMNS = 4, 6
API = "/api/v1/integration/"
HEAD = packets.ImageHead((1_767_225_600, 250_000_000), 300, 1500.0, 15.0, 1_200_000, (3, 2), (90.0, 40.0))


def frame(name: str = "low", number: int = 1, kind: str = "3d", **fields: Any) -> ImagingFrame:
    """A frame: row k of the image at k + 1 m, with the last column empty; levels of k x 10 dB above the floor."""
    samples = np.zeros((ROWS, COLUMNS), PIXEL_3D)
    samples["range"] = np.rint((np.arange(ROWS)[:, None] + 1.0) / 15.0 * 65535.0)
    samples["level"] = np.rint(np.arange(ROWS)[:, None] * 10.0 / 66.0 * 65535.0)
    samples[:, -1] = 0
    record = np.zeros((), RECORD)
    for field, value in {
        "number": number, "ping_ns": 2_500_000_000, "name": name.encode(), "kind": FRAME_KINDS.index(kind), "beams": ROWS,
        "bins": COLUMNS, "sample_bytes": 4, "bytes": samples.nbytes, "range": 15.0, "sector": math.radians(90),
        "fan_height": math.radians(40), "frequency": 1.2e6, "sound_speed": 1500.0, "span": 66.0, **fields,
    }.items():  # fmt: skip
        record[field] = value
    return ImagingFrame(record, samples.tobytes())


class Eye:
    """A sonar with a host, and the frames that arrive at the vehicle."""

    def __init__(self, sonars: dict[str, str] | None = None, imu: str = "imu", protocol: str = "RIP1") -> None:
        self.frames: list[ImagingFrame] = []
        self.subscribed: list[str] = []
        broker: Any = SimpleNamespace(subscribe_frames=self.subscribed.append, take_frames=self.take)
        self.target, self.out = UdpTarget(), list[bytes]()
        self.device = Sonar3D15(broker, sonars or {LOW: "low"}, imu, self.target, protocol=protocol)
        self.device.connect("udp", self.out.append)

    def take(self) -> list[ImagingFrame]:
        found, self.frames = self.frames, []
        return found

    def get(self, path: str) -> Any:
        answer = self.device.handle("GET", API + path, None)
        assert answer.status == 200
        return answer.content

    def post(self, path: str, content: Any, status: int = 204) -> Any:
        answer = self.device.handle("POST", API + path, content)
        assert answer.status == status, answer
        return answer.content

    def ping(self, seconds: float = 3.0, *found: ImagingFrame) -> list[bytes]:
        self.out.clear()
        self.frames = list(found) or [frame()]
        self.device.step(step(seconds))
        return list(self.out)


@pytest.fixture
def eye() -> Eye:
    """A sonar that sends."""
    made = Eye()
    made.post("acoustics/enabled", True)
    made.post("udp", {"mode": "multicast"})
    return made


def parse(data: bytes) -> dict[int, list[Any]]:
    """The fields of a protobuf message: an independent reader of the wire format."""
    found: dict[int, list[Any]] = {}
    at = 0

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        tag = number()
        if tag & 7 == 0:
            value: Any = number()
        elif tag & 7 == 5:
            (value,) = struct.unpack_from("<f", data, at)
            at += 4
        else:
            assert tag & 7 == 2
            size = number()
            value = data[at : at + size]
            at += size
        found.setdefault(tag >> 3, []).append(value)
    return found


def message(packet: bytes) -> tuple[str, dict[int, list[Any]]]:
    """Type and fields of the message in a RIP1 packet."""
    assert packet[:4] == b"RIP1" and struct.unpack("<I", packet[4:8])[0] == len(packet)
    assert zlib.crc32(packet[:-4]) == struct.unpack("<I", packet[-4:])[0]
    content = parse(parse(packet[8:-4])[1][0])
    return content[1][0].decode().rpartition(".")[2], parse(content[2][0])


#: what wlsonar 0.5.5 writes
IMAGE = (
    "0a100a0b0880f2d6ca061080e59a7710ac02" "150080bb44" "1d00007041" "20809f49" "2803" "3002" "3d0000b442" "4500002042"
    "4d0000003f" "520b00017f8001808001ffff03"
)  # fmt: skip
PACKET = (
    "524950318b000000" "0a7d" "0a39747970652e676f6f676c65617069732e636f6d2f77617465726c696e6b65642e736f6e61722e70726f746f636f"
    "6c2e52616e6765496d616765" "1240" + IMAGE + "2263fdca"
)  # fmt: skip


def test_vectors() -> None:
    image = packets.range_image(HEAD, 0.5, np.array([[0, 1, 127], [128, 16384, 65535]]))
    assert image.hex() == IMAGE
    assert packets.packet("RangeImage", image, "RIP1").hex() == PACKET
    shades = packets.bitmap(HEAD, packets.SIGNAL_STRENGTH, np.array([[0, 1, 255], [0, 0, 9]])).hex()
    assert shades.endswith("20809f4930033802450000b4424d0000204252060001ff000009"), "no type: it is 0"


def test_snappy_literals() -> None:
    data = bytes(range(256)) * 100
    coded = packets.snappy(data)
    assert coded[:3] == packets.varint(25_600) and coded[3] == 61 << 2 and coded[4:6] == (25_599).to_bytes(2, "little")
    assert coded[6:] == data
    assert packets.packet("X", data, "RIP2")[:4] == b"RIP2"


def test_the_maker_writes_the_same_bytes() -> None:
    rip = pytest.importorskip("wlsonar.range_image_protocol", reason="wlsonar is not installed")
    rng = np.random.default_rng(1)
    pixels = rng.integers(0, 65536, (64, 256))
    pixels[:10], pixels[10:20] = 0, pixels[10:20] % 200
    made = rip.RangeImage(
        speed_of_sound=1491.5, range=15.0, frequency=1_200_000, width=256, height=64, fov_horizontal=90.0,
        fov_vertical=40.0, image_pixel_scale=0.001, image_pixel_data=pixels.ravel().tolist(),
    )  # fmt: skip
    made.header.timestamp.seconds, made.header.timestamp.nanos, made.header.sequence_id = 1_767_225_600, 5, 77
    head = packets.ImageHead((1_767_225_600, 5), 77, 1491.5, 15.0, 1_200_000, (256, 64), (90.0, 40.0))
    ours = packets.range_image(head, 0.001, pixels)
    assert packets.packet("RangeImage", ours, "RIP1") == rip.packb(made, protocol=rip.ProtocolVersion.RIP1)
    assert rip.unpackb(packets.packet("RangeImage", ours)) == made
    bitmap = rip.BitmapImageGreyscale8(type=1, width=2, height=1, image_pixel_data=b"\0\xff")
    bitmap.header.SetInParent()
    bitmap.header.timestamp.SetInParent()
    empty = packets.ImageHead((0, 0), 0, 0.0, 0.0, 0, (2, 1), (0.0, 0.0))
    ours = packets.bitmap(empty, 1, np.array([0, 255]))
    assert packets.packet("BitmapImageGreyscale8", ours, "RIP1") == rip.packb(bitmap, protocol=rip.ProtocolVersion.RIP1)
    batch = rip.ImuBatch(batch_sequence_id=3, samples=2, specific_force=[1, 2, 3, 4, 5, 6], rate_of_turn=[0.5] * 6)
    for seconds in (7, 8):
        batch.timestamp.add(seconds=seconds)
    ours = packets.imu_batch(3, [((7, 0), (1, 2, 3), (0.5,) * 3), ((8, 0), (4, 5, 6), (0.5,) * 3)])
    assert packets.packet("ImuBatch", ours, "RIP1") == rip.packb(batch, protocol=rip.ProtocolVersion.RIP1)


def test_it_sends_only_when_a_host_has_enabled_it() -> None:
    eye = Eye()
    assert eye.get("acoustics/enabled") is False and eye.get("udp")["mode"] == "disabled"
    assert eye.ping() == [] and eye.target.address is None
    eye.post("acoustics/enabled", True)
    eye.post("udp", {"mode": "multicast", "unicast_destination_ip": "", "unicast_destination_port": 0})
    assert eye.target.address == (GROUP, 4747) and len(eye.ping()) == 2
    eye.post("udp", {"mode": "unicast", "unicast_destination_ip": "127.0.0.1", "unicast_destination_port": 5000})
    assert eye.target.address == ("127.0.0.1", 5000) and len(eye.ping()) == 2
    eye.post("acoustics/enabled", False)
    assert eye.ping() == []
    eye.post("udp", {"mode": "disabled"})
    assert eye.target.address is None


def test_images_of_a_frame(eye: Eye) -> None:
    (kind, image), (other, shades) = map(message, eye.ping())
    assert (kind, other) == ("RangeImage", "BitmapImageGreyscale8")
    header = parse(image[1][0])
    stamp = parse(header[1][0])
    assert (stamp[1][0] - 1_767_225_600, stamp[2][0], header[2][0]) == (2, 500_000_000, 1)
    assert [image[k][0] for k in (2, 3, 4, 5, 6)] == [1500.0, 15.0, 1_200_000, COLUMNS, ROWS]
    assert [image[k][0] for k in (7, 8, 9)] == pytest.approx([90.0, 40.0, 0.001])
    pixels = [*image[10][0]]
    # the first row of the protocol looks down: it is the last of the frame. Two bytes per pixel: 4000 = a0 1f
    assert pixels[:12] == [0xA0, 0x1F] * 5 + [0, 0xB8]
    assert len(pixels) == ROWS * (2 * 5 + 1)
    assert [*shades[10][0]] == [150] * 5 + [0] + [100] * 5 + [0] + [50] * 5 + [0] + [1] * 5 + [0], "5 per dB"
    assert 5 not in shades, "the type of a strength image is 0"


def test_settings_take_effect(eye: Eye) -> None:
    def ranges(packet: bytes) -> set[int]:
        data, values = message(packet)[1][10][0], set[int]()
        at = 0
        while at < len(data):
            value = data[at] & 127
            if data[at] > 127:
                at += 1
                value |= data[at] << 7
            at += 1
            values.add(value)
        return values

    assert ranges(eye.ping()[0]) == {0, 1000, 2000, 3000, 4000}
    eye.post("acoustics/range", {"min": 1.5, "max": 3.5})
    image = eye.ping()
    assert ranges(image[0]) == {0, 2000, 3000} and message(image[0])[1][3] == [3.5]
    assert eye.get("acoustics/range") == {"min": 1.5, "max": 3.5}
    eye.post("acoustics/speed_of_sound", 1650)
    image = eye.ping()
    assert ranges(image[0]) == {0, 2200, 3300} and message(image[0])[1][2] == [1650.0]
    eye.post("acoustics/speed_of_sound", 0)
    assert ranges(eye.ping()[0]) == {0, 2000, 3000}, "0 = automatic"
    eye.post("acoustics/salinity", "fresh")
    assert eye.get("acoustics/salinity") == "fresh"


def test_the_range_is_limited_by_the_configured_sonar(eye: Eye) -> None:
    assert eye.get("acoustics/range") == {"min": 0.0, "max": 15.0}
    eye.ping(3.0, frame(range=10.0))
    assert eye.get("acoustics/range") == {"min": 0.0, "max": 10.0}
    assert "max must be at most 10 m" in eye.post("acoustics/range", {"min": 0, "max": 12}, 400)["error"]


def test_modes_are_the_sonars_of_the_vehicle() -> None:
    eye = Eye()
    assert eye.get("acoustics/mode") == LOW
    assert "no 3D sonar for the mode high-frequency" in eye.post("acoustics/mode", HIGH, 400)["error"]
    both = Eye({LOW: "low", HIGH: "high"})
    both.post("acoustics/enabled", True)
    both.post("udp", {"mode": "multicast"})
    near = frame("high", 9, frequency=2.4e6, range=4.0)
    sent = both.ping(1.0, frame(), near, frame("other"))
    assert [message(p)[1][4] for p in sent] == [[1_200_000]] * 2
    both.post("acoustics/mode", HIGH)
    assert both.get("acoustics/range") == {"min": 0.0, "max": 4.0} and both.subscribed == ["low", "high"]
    assert [message(p)[1][4] for p in both.ping(2.0, frame(), near)] == [[2_400_000]] * 2
    assert Eye({HIGH: "high"}).get("acoustics/mode") == HIGH
    with pytest.raises(BrokerError, match="sonar 'high' is of type forward; a Sonar 3D-15 needs type 3d"):
        both.ping(3.0, frame("high", kind="forward"))
    with pytest.raises(BrokerError, match="at most 256 x 64 pixels; sonar 'high' has more"):
        both.ping(3.0, ImagingFrame(_wide(), b"\xf0" * (300 * 110 * 4)))


def _wide() -> Any:
    record = frame("high", range=4.0).record.copy()
    record["beams"], record["bins"] = 300, 110
    return record


def test_imu_batches(eye: Eye) -> None:
    eye.post("output/imu-batch/enabled", True)
    eye.out.clear()
    for k in range(1, 25):
        eye.device.step(step(0.01 * k, imu=[0.1, 0.2, -9.8, 0.01, 0.02, 0.03]))
    batches = [fields for kind, fields in map(message, eye.out) if kind == "ImuBatch"]
    assert [b.get(1, [0])[0] for b in batches] == [0, 1, 2] and [b[2][0] for b in batches] == [1, 8, 8]
    last = batches[-1]
    assert len(last[3]) == 8 and parse(last[3][-1])[2] == [170_000_000]
    assert struct.unpack("<24f", last[4][0])[:3] == pytest.approx((0.1, 0.2, -9.8))
    assert struct.unpack("<24f", last[5][0])[:3] == pytest.approx((0.01, 0.02, 0.03))
    without = Eye(imu="")
    assert "no imu sensor" in without.post("output/imu-batch/enabled", True, 400)["error"]
    without.post("output/imu-batch/enabled", False)


def test_the_clock(eye: Eye) -> None:
    eye.ping(3.0)
    assert eye.get("time/status") == {
        "system_time": "2026-01-01T00:00:03Z", "ntp_synced": False, "ntp_synced_to": "", "ntp_seconds_since_last_sync": None,
    }  # fmt: skip
    eye.post("time/manual", {"now": "2027-06-01T12:00:00+02:00"})
    assert eye.get("time/status")["system_time"] == "2027-06-01T10:00:00Z"
    stamp = parse(parse(message(eye.ping(3.0)[0])[1][1][0])[1][0])
    assert datetime.datetime.fromtimestamp(stamp[1][0], datetime.UTC).isoformat() == "2027-06-01T09:59:59+00:00"
    eye.post("time/ntp", {"ntp_address": "10.0.0.1"})
    assert eye.get("time/ntp") == {"ntp_address": "10.0.0.1"}
    assert eye.post("time/ntp/force-sync", {"timeout_seconds": 1.0}, 200)["success"] is False


@pytest.mark.parametrize(
    ("path", "content", "text"),
    [
        ("acoustics/enabled", 1, "must be true or false"),
        ("acoustics/range", {"min": 5, "max": 5}, "min must be less than max"),
        ("acoustics/range", {"min": 0, "max": 16}, "max must be at most 15 m"),
        ("acoustics/range", {"min": -1, "max": 5}, "min must be a number between"),
        ("acoustics/range", {"max": 5}, "'min' is missing"),
        ("acoustics/range", [0, 5], "must be a JSON object"),
        ("acoustics/speed_of_sound", 999, "between 1000 and 2000"),
        ("acoustics/speed_of_sound", False, "between 1000 and 2000"),
        ("acoustics/speed_of_sound", "1500", "between 1000 and 2000"),
        ("acoustics/mode", "medium", "mode must be one of low-frequency, high-frequency"),
        ("acoustics/salinity", None, "salinity must be one of salt, fresh"),
        ("udp", {"mode": "broadcast"}, "mode must be one of"),
        ("udp", {"mode": "unicast"}, "unicast needs unicast_destination_ip"),
        ("udp", {"mode": "unicast", "unicast_destination_ip": "127.0.0.1"}, "unicast needs"),
        (
            "udp",
            {"mode": "unicast", "unicast_destination_ip": "10.0.0.2", "unicast_destination_port": 5},
            "must be an IPv4 address on loopback",
        ),
        ("udp", {"mode": "multicast", "unicast_destination_port": 70000}, "between 0 and 65535"),
        ("time/manual", {"now": "tomorrow"}, "now must be a time"),
        ("time/manual", {"now": "2026-01-01T00:00:00"}, "now must be a time with a time zone"),
        ("time/manual", {"now": 5}, "the text 'now'"),
        ("time/ntp", {"ntp_address": ""}, "ntp_address must be"),
        ("time/ntp/force-sync", {"timeout_seconds": -1}, "timeout_seconds must be"),
    ],
)
def test_invalid_content_is_refused(eye: Eye, path: str, content: Any, text: str) -> None:
    before = len(eye.ping())
    assert text in eye.post(path, content, 400)["error"]
    assert eye.device.errors == 1 and len(eye.ping()) == before == 2


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["min", "max", "mode", "now", "ntp_address", "timeout_seconds"]), inner)
    ),
)


@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from(["GET", "POST", "PUT", ""]),
    st.sampled_from(["acoustics/range", "acoustics/mode", "acoustics/speed_of_sound", "udp", "time/manual", "time/ntp"])
    | st.text(max_size=12),
    JSON,
)
def test_any_request_is_answered(method: str, path: str, content: Any) -> None:
    made = Eye()
    answer = made.device.handle(method, API + path, content)
    assert answer.status in (200, 204, 400, 404)
    json.dumps(answer.content)
    made.post("acoustics/enabled", True)
    made.post("udp", {"mode": "multicast"})
    assert len(made.ping()) == 2


def test_two_hosts_have_their_own_answers_and_noise_ends_only_its_own_connection(eye: Eye) -> None:
    out: list[list[bytes]] = [[], [], []]
    hosts = [eye.device.connect("http", o.append) for o in out]
    hosts[0].receive(f"GET {API}temperature HTTP/1.1\r\nHost: a\r\n\r\n".encode())
    hosts[1].receive(b"\xff\x00" * 500_000)
    hosts[2].receive(f"POST {API}acoustics/enabled HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nfal".encode())
    hosts[2].receive(b"se")
    assert out[0][0].endswith(b"\r\n\r\n30.0") and out[2][0].startswith(b"HTTP/1.1 204 ")
    assert out[1][0].startswith(b"HTTP/1.1 431 ") and out[1][-1] == b""
    assert eye.ping() == []
    udp = eye.device.connect("udp", eye.out.append)
    udp.receive(b"?")
    udp.close()
    eye.post("acoustics/enabled", True)
    assert len(eye.ping()) == 2


# ------------------------------------------------------------------ the maker's package against a real server

SEA = """<time step="10 ms"/><network keepalive_timeout="20 s"/>
<world><bed depth="60 m"/><material name="matt" law="smooth" lambert="-20"/>
<obstacles><block position="13 0 20 m" size="2 60 60 m" material="matt"/></obstacles></world>
<fleet><vehicle name="boat" model="bluerov2-heavy" position="4 0 20 m" client="optional"><sensors>
<sonar name="low" preset="sonar-3d15-low" rate="5 Hz" speckle="no"/>
<sonar name="high" preset="sonar-3d15-high" rate="1 Hz" beams="32" rows="16"/>
<imu rate="50 Hz"/></sensors></vehicle></fleet>"""


@pytest.fixture
def receivers() -> Iterator[list[socket.socket]]:
    opened: list[socket.socket] = []
    yield opened
    for s in opened:
        s.close()


@pytest.mark.system
@pytest.mark.xdist_group("acoustics")
@pytest.mark.timeout(200)
@pytest.mark.parametrize("protocol", ["RIP2", "RIP1"])
def test_the_package_of_the_maker(
    config: Callable[..., LoadedConfig],
    serve: Callable[..., Server],
    processes: list[subprocess.Popen[str]],
    receivers: list[socket.socket],
    protocol: str,
) -> None:
    """wlsonar, unmodified: it configures the sonar, and receives the wall over multicast and unicast."""
    wlsonar = pytest.importorskip("wlsonar", reason="wlsonar is not installed")
    import wlsonar.range_image_protocol as rip

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    path = config(SEA).path
    server = serve(path)
    processes.append(launch("emulate", "all", path, "-s", server.name))
    options = ["--sensor", "low", "--high-frequency", "high", "--http", "tcp:0", "--multicast-port", str(port)]
    ports = device(processes, server, "waterlinked-sonar", *options, "--protocol", protocol)
    http = ports.split(", ")[0].rpartition(":")[2]
    server.send("start")
    sonar = wlsonar.Sonar3D("127.0.0.1", int(http))
    assert sonar.about().product_id == 21045 and sonar.get_status().api.operational
    assert sonar.get_acoustics_enabled() is False and sonar.get_udp_config().mode == "disabled"
    group = wlsonar.open_sonar_udp_multicast_socket(udp_port=port, iface_ip="127.0.0.1")
    receivers.append(group)
    sonar.set_udp_multicast()
    sonar.set_output_imu_batch_enabled(True)
    sonar.set_acoustics_enabled(True)
    assert sonar.get_udp_config().mode == "multicast" and sonar.get_output_imu_batch_enabled()

    def receive(s: socket.socket, count: int, kind: Any = None) -> list[Any]:
        found: list[Any] = []
        s.settimeout(60.0)
        while len(found) < count:
            made = rip.unpackb(s.recvfrom(wlsonar.UDP_MAX_DATAGRAM_SIZE)[0])
            if isinstance(made, kind or rip.RangeImage):
                found.append(made)
        return found

    images = receive(group, 3)
    assert [i.header.sequence_id - images[0].header.sequence_id for i in images] == [0, 1, 2]
    image = images[-1]
    assert (image.width, image.height, image.frequency) == (256, 64, 1_200_000)
    state = SharedState(server.name)
    truth = state.snapshot().state[state.row("boat")]
    assert abs(truth["p_WB_W"][0] - 4.0) < 0.2, "it hangs where it was put"
    points = np.array([p or (np.nan,) * 3 for p in wlsonar.range_image_to_xyz(image)]).reshape(64, 256, 3)
    middle = points[22:42, 96:160]
    assert np.isfinite(middle).mean() > 0.99
    assert np.median(middle[..., 0]) == pytest.approx(12.0 - truth["p_WB_W"][0], abs=0.05)
    # rows grow upwards, columns to starboard
    assert np.nanmean(points[0, :, 2]) > 1.0 > -1.0 > np.nanmean(points[-1, :, 2])
    assert np.nanmean(points[:, 250, 1]) > 1.0
    (strength,) = receive(group, 1, rip.BitmapImageGreyscale8)
    assert len(wlsonar.bitmap_image_to_strength_linear(strength)) == 256 * 64
    batch = receive(group, 1, rip.ImuBatch)[0]
    assert 1 <= batch.samples == len(batch.timestamp) == len(batch.specific_force) // 3
    assert batch.specific_force[2] == pytest.approx(-9.8, abs=0.5)

    alone = wlsonar.open_sonar_udp_unicast_socket(udp_port=0, iface_ip="127.0.0.1")
    receivers.append(alone)
    sonar.set_udp_unicast("127.0.0.1", alone.getsockname()[1])
    sonar.set_range(0.5, 9.0)
    deadline = time.monotonic() + 60.0
    while (image := receive(alone, 1)[0]).range != 9.0:
        assert time.monotonic() < deadline
    assert 8.0 < max(wlsonar.range_image_to_distance(image)) < 9.0001
    assert sonar.get_range() == (0.5, 9.0)
    sonar.set_mode("high-frequency")
    while (image := receive(alone, 1)[0]).frequency != 2_400_000:
        assert time.monotonic() < deadline
    assert (image.width, image.height, image.fov_horizontal) == (32, 16, pytest.approx(40.0))
    assert sonar.get_speed_of_sound() == 0.0 and not sonar.force_sync_ntp(0.1).success
    with pytest.raises(Exception, match="400"):
        sonar.set_range(0.0, 20.0)
    sonar.set_udp_disabled()
