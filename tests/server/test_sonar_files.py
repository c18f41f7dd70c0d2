"""Sonar frames from a log as files for survey software, read with independent readers."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pymap3d
import pytest

from tests.conftest import wavesim
from wavesim_sdk.epoch import EPOCH
from wavesim_sdk.imaging_frames import FRAME_KINDS, PIXEL_3D, RECORD, SOUNDING_COLUMNS, ImagingFrame
from wavesim_server.logbook import sonar_rosbag
from wavesim_server.logbook.writer import LogWriter
from wavesim_world.config import LoadedConfig

LATITUDE, LONGITUDE = 41.159804, -8.693256
HEADING = 0.5
BEAMS = 16
DEPTHS = np.arange(24, dtype="<f4").reshape(4, 6) / 2
FLEET = f"""<world latitude="{LATITUDE} deg" longitude="{LONGITUDE} deg"/><fleet>
<vehicle name="auv" model="lauv" position="0 0 5 m"/></fleet>"""


def record(name: bytes, number: int, payload: bytes, **fields: Any) -> ImagingFrame:
    made = np.zeros((), RECORD)
    common = {"frequency": 400e3, "bandwidth": 80e3, "sound_speed": 1500.0, "range": 40.0, "source_level": 215.0}
    pose = {"p_WS_W": (100.0 + number, 20.0, 5.0), "euler": (0.02, -0.01, HEADING), "v_WS_W": (1.5, 0.8, 0.0)}
    times = {"ping_ns": number * 10**8 + 7, "time_ns": number * 10**8 + 53_000_000}
    given = {"body": b"auv", "name": name, "number": number, "bytes": len(payload), "absorption": 0.1, **common, **pose}
    for field, value in {**given, **times, **fields}.items():
        made[field] = value
    return ImagingFrame(made, payload)


def soundings(number: int) -> Any:
    """A flat bed 15 m below the sonar; the third beam has no echo."""
    angle = np.linspace(-1.0, 1.0, BEAMS)
    table = np.full((BEAMS, len(SOUNDING_COLUMNS)), np.nan)
    columns = {
        "angle": angle,
        "time": 2.0 * 15.0 / np.cos(angle) / 1500.0,
        "x": np.full(BEAMS, 0.25),
        "y": 15.0 * np.tan(angle),
        "z": np.full(BEAMS, 15.0 + 0.01 * number),
        "sigma_z": np.full(BEAMS, 0.03),
        "sigma_r": np.full(BEAMS, 0.02),
        "level": np.full(BEAMS, 120.0),
        "snr": np.full(BEAMS, 30.0),
        "detection": np.where(np.abs(angle) > 0.3, 2.0, 1.0),
    }
    for name, values in columns.items():
        table[:, SOUNDING_COLUMNS.index(name)] = values
    table[2, 1:9], table[2, 9] = np.nan, 0.0
    return table


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from wavesim_world.config import load

    folder = tmp_path_factory.mktemp("sonars")
    (folder / "a.xml").write_text(f"<wavesim>{FLEET}</wavesim>")
    writer = LogWriter(folder / "run.mcap", load(folder / "a.xml"), 1)
    bed = {
        "kind": 2,
        "beams": BEAMS,
        "bins": len(SOUNDING_COLUMNS),
        "sample_bytes": 8,
        "sector": 2.0,
        "beam_width": 0.01,
    }
    for n in range(1, 6):
        writer.frame(record(b"bed", n, soundings(n).tobytes(), fan_height=0.02, **bed))
        line = np.random.default_rng(n).integers(0, 256, (2, 60), np.uint8)
        for name in (b"side", b"low"):
            writer.frame(record(name, n, line.tobytes(), kind=1, beams=2, bins=60, sample_bytes=1, altitude=15.0))
    for n in range(1, 9):  # six steps a turn
        line = np.zeros((1, 60), np.uint8)
        line[0, 0], line[0, 10 + n] = 255, 100 + n
        turn = {"kind": 3, "beams": 1, "bins": 60, "sample_bytes": 1, "azimuth": -math.pi + (n - 1) % 6 * math.pi / 3}
        writer.frame(record(b"head", n, line.tobytes(), **turn))
    seen = {"kind": 4, "beams": 4, "bins": 18, "sample_bytes": 1, "labels": 1}
    writer.frame(record(b"eye", 1, bytes(range(72)) + DEPTHS.tobytes(), **seen))
    writer.close()
    return folder / "run.mcap"


def test_soundings_as_kmall_are_read_by_pykmall(log: Path, tmp_path: Path) -> None:
    """Every sounding, where and when: the point that it tells is the one that was sounded, by the reader's own
    arithmetic.
    """
    from KMALL import kmall

    result = wavesim("log", "export", log, "--kmall", tmp_path / "a.kmall")
    assert (result.returncode, result.stdout.strip()) == (0, f"{tmp_path / 'a.kmall'}: 5 pings")
    reader = kmall(str(tmp_path / "a.kmall"))
    reader.index_file()
    kinds = [str(k) for k in reader.Index["MessageType"]]
    assert [kinds.count(f"b'#{k}'") for k in ("IIP", "IOP", "SVP", "SKM", "SPO", "MRZ")] == [1, 1, 1, 5, 5, 5]
    at = {
        k: [int(o) for o, m in zip(reader.Index["ByteOffset"], kinds, strict=True) if k in m]
        for k in ("IIP", "IOP", "SKM", "SPO", "MRZ", "SVP")
    }

    def read(kind: str, n: int, by: Callable[[], Any]) -> Any:
        reader.FID.seek(at[kind][n])
        found = by()
        assert reader.FID.tell() == at[kind][n] + found["header"]["numBytesDgm"], "it ends where it says"
        return found

    for n in range(5):
        mrz, wanted = read("MRZ", n, reader.read_EMdgmMRZ), soundings(n + 1)
        when = EPOCH.timestamp() + 0.1 * (n + 1)
        assert mrz["header"]["dgtime"] == pytest.approx(when, abs=1e-6)
        assert (mrz["cmnPart"]["pingCnt"], mrz["rxInfo"]["numSoundingsMaxMain"]) == (n + 1, BEAMS)
        info, s = mrz["pingInfo"], {k: np.array(v) for k, v in mrz["sounding"].items()}
        assert mrz["rxInfo"]["numSoundingsValidMain"] == BEAMS - 1
        assert s["detectionType"].tolist() == [2 if k == 2 else 0 for k in range(BEAMS)]
        good = s["detectionType"] == 0
        for column, name in (
            ("x_reRefPoint_m", "x"),
            ("y_reRefPoint_m", "y"),
            ("z_reRefPoint_m", "z"),
            ("detectionUncertaintyVer_m", "sigma_z"),
            ("twoWayTravelTime_sec", "time"),
            ("detectionMethod", "detection"),
        ):
            assert s[column][good] == pytest.approx(wanted[good, SOUNDING_COLUMNS.index(name)], rel=1e-5), column
        assert s["qualityFactor"][good] == pytest.approx(
            100.0 * 0.03 / wanted[good, SOUNDING_COLUMNS.index("z")], rel=1e-5
        )
        assert (info["soundSpeedAtTxDepth_mPerSec"], info["txTransducerDepth_m"], info["frequencyMode_Hz"]) == (
            1500.0,
            5.0,
            400e3,
        )
        assert info["pingRate_Hz"] == pytest.approx(10.0)
        lat, lon = (
            info["latitude_deg"] + s["deltaLatitude_deg"][good],
            info["longitude_deg"] + s["deltaLongitude_deg"][good],
        )
        north, east, _ = pymap3d.geodetic2ned(lat, lon, 0.0, LATITUDE, LONGITUDE, 0.0)
        x, y = s["x_reRefPoint_m"][good], s["y_reRefPoint_m"][good]
        assert north == pytest.approx(101.0 + n + math.cos(HEADING) * x - math.sin(HEADING) * y, abs=0.001)
        assert east == pytest.approx(20.0 + math.sin(HEADING) * x + math.cos(HEADING) * y, abs=0.001)
        skm = read("SKM", n, reader.read_EMdgmSKM)["sample"]["KMdefault"]
        attitude = [skm[k][0] for k in ("roll_deg", "pitch_deg", "heading_deg")]
        assert attitude == pytest.approx(np.degrees([0.02, -0.01, HEADING]), rel=1e-5)
        spo = read("SPO", n, reader.read_EMdgmSPO)["sensorData"]
        place = pymap3d.ned2geodetic(101.0 + n, 20.0, 5.0, LATITUDE, LONGITUDE, 0.0)
        assert (spo["correctedLat_deg"], spo["correctedLong_deg"]) == pytest.approx(place[:2], abs=1e-9)
        assert spo["speedOverGround_mPerSec"] == pytest.approx(1.7)
    assert "EM2040" in str(read("IIP", 0, reader.read_EMdgmIIP)["install_txt"])
    assert "Max angle Port: 57.3" in read("IOP", 0, reader.read_EMdgmIOP)["runtime_txt"]
    assert read("SVP", 0, reader.read_EMdgmSVP)["sensorData"]["soundVelocity_mPerSec"] == [1500.0, 1500.0]
    reader.closeFile()


def test_side_scan_from_a_log_as_xtf(log: Path, tmp_path: Path) -> None:
    import pyxtf

    result = wavesim("log", "export", log, "--xtf", tmp_path / "a.xtf")
    assert result.returncode == 6
    assert (
        "several sonars of this kind: select one with --vehicle and --sonar; available: auv low, auv side"
        in result.stderr
    )
    result = wavesim("log", "export", log, "--xtf", tmp_path / "a.xtf", "--vehicle", "auv", "--sonar", "side")
    assert result.returncode == 0, result.stderr
    header, packets = pyxtf.xtf_read(str(tmp_path / "a.xtf"))
    pings = packets[pyxtf.XTFHeaderType.sonar]
    lines = [np.random.default_rng(n).integers(0, 256, (2, 60), np.uint8)[1] for n in range(1, 6)]
    assert (pyxtf.concatenate_channel(pings, header, channel=1)[::-1] == lines).all()
    place = pymap3d.ned2geodetic(101.0, 20.0, 5.0, LATITUDE, LONGITUDE, 0.0)
    assert (pings[0].SensorYcoordinate, pings[0].SensorXcoordinate) == pytest.approx(place[:2], abs=1e-9)


def test_what_cannot_be_exported_is_said_in_a_line(
    log: Path, tmp_path: Path, config: Callable[..., LoadedConfig]
) -> None:
    for arguments, code, text in (
        (
            [],
            2,
            "select at least one output: --csv, --parquet, --netcdf, --tum, --rosbag, --dataset, --xtf, --kmall, --ros, --coco, --png or --numpy",
        ),
        (
            ["--kmall", tmp_path / "b.kmall", "--vehicle", "rov"],
            6,
            "no matching sonar of this kind: select one with --vehicle and --sonar; available: auv bed",
        ),
        (["--kmall", tmp_path / "none" / "b.kmall"], 6, "cannot write"),
    ):
        result = wavesim("log", "export", log, *arguments)
        assert (result.returncode, result.stderr.splitlines()[-1].count(text)) == (code, 1), result.stderr
    empty = io.BytesIO()
    writer = LogWriter(empty, config(FLEET), 1)
    writer._part.finish()
    (tmp_path / "empty.mcap").write_bytes(empty.getvalue())
    result = wavesim("log", "export", tmp_path / "empty.mcap", "--xtf", tmp_path / "c.xtf")
    assert (result.returncode, "available: none" in result.stderr) == (6, True)


def test_frames_as_ros_messages_are_read_by_two_readers(log: Path, tmp_path: Path) -> None:
    from mcap_ros2.reader import read_ros2_messages
    from rosbags.highlevel import AnyReader

    result = wavesim("log", "export", log, "--ros", tmp_path / "a.mcap")
    assert (result.returncode, result.stdout.strip()) == (0, f"{tmp_path / 'a.mcap'}: 39 messages"), result.stderr
    with (tmp_path / "a.mcap").open("rb") as file:
        by_topic: dict[str, list[Any]] = {}
        for m in read_ros2_messages(file):
            by_topic.setdefault(m.channel.topic, []).append(m.ros_msg)
    with AnyReader([tmp_path / "a.mcap"]) as reader:
        again: dict[str, list[Any]] = {}
        for connection, _, raw in reader.messages():
            again.setdefault(connection.topic, []).append(reader.deserialize(raw, connection.msgtype))
    assert {k: len(v) for k, v in by_topic.items()} == {
        "/auv/bed": 5,
        "/auv/bed/points": 5,
        "/auv/side": 5,
        "/auv/low": 5,
        "/auv/head": 8,
        "/auv/head/echo": 8,
        "/auv/head/scan": 1,
        "/auv/eye": 1,
        "/auv/eye/depth": 1,
    }
    for found in (by_topic, again):
        for n, image in enumerate(found["/auv/side"], 1):
            line = np.random.default_rng(n).integers(0, 256, (2, 60), np.uint8)
            data = np.frombuffer(bytes(image.image.data), np.uint8).reshape(60, 2)
            assert (data == line.T).all(), "all beams of one range, then the next"
            assert (image.image.beam_count, image.image.dtype, image.image.is_bigendian) == (2, 0, False)
            assert [(b.x, round(b.y, 9), round(b.z, 9)) for b in image.beam_directions] == [(0, -1, 0), (0, 1, 0)]
            assert np.asarray(image.ranges) == pytest.approx((np.arange(60) + 0.5) * 40.0 / 60)
            assert image.header.stamp.nanosec == n * 10**8 + 7 and image.header.stamp.sec == EPOCH.timestamp()
            assert image.header.frame_id == "auv/side" and image.ping_info.frequency == 400e3
        for n, sounded in enumerate(found["/auv/bed"], 1):
            wanted = soundings(n)
            flags = [f.flag for f in sounded.flags]
            assert flags == [int(k == 2) for k in range(BEAMS)]
            good = np.array(flags) == 0
            times, angles = np.asarray(sounded.two_way_travel_times), np.asarray(sounded.rx_angles)
            assert times[good] == pytest.approx(wanted[good, SOUNDING_COLUMNS.index("time")])
            assert angles == pytest.approx(wanted[:, SOUNDING_COLUMNS.index("angle")])
            assert sounded.ping_info.sound_speed == 1500.0 and len(sounded.ping_info.rx_beamwidths) == BEAMS
        for n, cloud in enumerate(found["/auv/bed/points"], 1):
            good = np.arange(BEAMS) != 2
            x, y, z = (soundings(n)[good, SOUNDING_COLUMNS.index(k)] for k in "xyz")
            assert (cloud.width, cloud.height, cloud.point_step, cloud.row_step) == (BEAMS - 1, 1, 16, 16 * (BEAMS - 1))
            assert [(f.name, f.offset, f.datatype) for f in cloud.fields] == [
                ("x", 0, 7),
                ("y", 4, 7),
                ("z", 8, 7),
                ("intensity", 12, 7),
            ]
            east, north, up, level = np.frombuffer(bytes(cloud.data), "<f4").reshape(-1, 4).T
            assert north == pytest.approx(100.0 + n + math.cos(HEADING) * x - math.sin(HEADING) * y, abs=1e-4)
            assert east == pytest.approx(20.0 + math.sin(HEADING) * x + math.cos(HEADING) * y, abs=1e-4)
            assert up == pytest.approx(-(5.0 + z), abs=1e-4)
            assert (level == 120.0).all() and cloud.header.frame_id == "map"
        for n, step in enumerate(found["/auv/head/echo"], 1):
            assert step.angle == pytest.approx(-math.pi + (n - 1) % 6 * math.pi / 3, abs=1e-6)
            assert (step.number_of_samples, step.transmit_frequency, step.speed_of_sound, step.range) == (
                60,
                400,
                1500,
                40,
            )
            assert list(step.intensities) == [255, *(0 for _ in range(9 + n)), 100 + n, *(0 for _ in range(49 - n))]
        (photo,), (depth,) = found["/auv/eye"], found["/auv/eye/depth"]
        assert (photo.height, photo.width, photo.encoding, photo.step) == (4, 6, "rgb8", 18)
        assert bytes(photo.data) == bytes(range(72))
        assert (depth.height, depth.width, depth.encoding, depth.step) == (4, 6, "32FC1", 24)
        assert (np.frombuffer(bytes(depth.data), "<f4").reshape(4, 6) == DEPTHS).all()
        (scan,) = found["/auv/head/scan"]
        angles = scan.angle_min + scan.angle_increment * np.arange(6)
        assert angles == pytest.approx(-(-math.pi + np.arange(5, -1, -1) * math.pi / 3), abs=1e-6)
        assert np.asarray(scan.ranges) == pytest.approx((np.arange(16, 10, -1) + 0.5) * 40.0 / 60), (
            "the strongest, not the ring-down"
        )
        assert list(scan.intensities) == [106.0, 105.0, 104.0, 103.0, 102.0, 101.0]
        assert (scan.scan_time, scan.time_increment) == pytest.approx((0.5, -0.1)) and scan.range_max == 40.0


def test_a_3d_sonar_as_ros_messages() -> None:
    """A range image, and the points of its echoes: 6 m north of the sonar, which looks ahead."""
    from rosbags.typesys import Stores, get_typestore

    pixels = np.zeros((3, 3), PIXEL_3D)
    pixels["range"][1, 1:] = 65535 * 6 // 15
    record = np.zeros((), RECORD)
    for field, value in {
        "kind": FRAME_KINDS.index("3d"), "beams": 3, "bins": 3, "sample_bytes": 4, "bytes": 36, "range": 15.0,
        "sector": math.radians(90), "fan_height": math.radians(40), "body": b"rov", "name": b"eye", "floor": 110.0,
        "span": 66.0, "p_WS_W": (100.0, 20.0, 5.0), "hold": math.inf,
    }.items():  # fmt: skip
        record[field] = value
    made = ImagingFrame(record, pixels.tobytes())
    (topic, kind, image), (more, cloud_kind, cloud) = sonar_rosbag.frame_messages(made, {})
    assert (topic, kind) == ("/rov/eye", sonar_rosbag.PICTURE)
    assert (more, cloud_kind) == ("/rov/eye/points", sonar_rosbag.POINTS)
    store = get_typestore(Stores.ROS2_HUMBLE)
    seen: Any = store.deserialize_cdr(image, kind)
    assert (seen.height, seen.width, seen.encoding, seen.step) == (3, 3, "32FC1", 12)
    ranges = np.frombuffer(bytes(seen.data), "<f4").reshape(3, 3)
    assert ranges[1, 1] == pytest.approx(6.0, abs=1e-3) and np.isnan(ranges[0]).all()
    points: Any = store.deserialize_cdr(cloud, cloud_kind)
    east, north, up, level = np.frombuffer(bytes(points.data), "<f4").reshape(-1, 4).T
    assert (points.width, points.header.frame_id) == (2, "map")
    assert north == pytest.approx([106.0, 100.0 + 6.0 * math.cos(math.pi / 4)], abs=1e-3)
    assert east == pytest.approx([20.0, 20.0 + 6.0 * math.sin(math.pi / 4)], abs=1e-3)
    assert up == pytest.approx(-5.0) and level == pytest.approx(110.0)
