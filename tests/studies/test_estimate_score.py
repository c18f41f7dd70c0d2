"""Estimates of other programs: every format gives the same score, and the usual mistakes are named."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from tests.studies.test_filter import voyage
from tests.studies.voyage import logged
from wavesim_sdk import frames
from wavesim_sdk.axes import attitude_enu, ned_to_enu
from wavesim_sdk.epoch import EPOCH
from wavesim_sdk.errors import LogError
from wavesim_sdk.log import Log, Series
from wavesim_sdk.tables import ESTIMATE, STATE
from wavesim_server.logbook.datasets import tum_lines
from wavesim_server.logbook.navigation_rosbag import write_rosbag
from wavesim_studies.navigation import cli, metrics
from wavesim_studies.navigation.estimate_score import score_estimate
from wavesim_studies.navigation.foreign_logs import ImportedLog, write_log
from wavesim_studies.navigation.pose_tracks import PoseTrack
from wavesim_studies.navigation.track_files import read_track
from wavesim_world.config.load import load_text

pytestmark = [pytest.mark.xdist_group("navigation")]
OFF = np.array([0.3, -0.4, 0.2])  #: error of every estimate here, m


def stored(log: Log, path: Path) -> Path:
    write_log(ImportedLog(log, "auv", [], load_text(log.metadata["configuration"])), path)
    return path


@pytest.fixture(scope="module")
def log() -> Log:
    return logged(voyage(120.0, 10.0, leg=40.0))


@pytest.fixture(scope="module")
def file(log: Log, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stored(log, tmp_path_factory.mktemp("log") / "run.mcap")


def poses(log: Log) -> tuple[Any, Any, Any]:
    s = log.series["/state/auv"]
    return s.time_ns, s.records["p_WB_W"] + OFF, s.records["q_WB"]


def nav(*arguments: Any) -> Result:
    return CliRunner().invoke(cli.nav, [*map(str, arguments)])


def scored(file: Path, *arguments: Any) -> dict[str, Any]:
    done = nav("score", file, *arguments, "--json")
    assert done.exit_code == 0, done.exception or done.output
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def csv(path: Path, **columns: Any) -> Path:
    rows = np.column_stack(list(columns.values()))
    np.savetxt(path, rows, delimiter=",", header=",".join(columns), comments="", fmt="%.12g")
    return path


def as_tum(log: Log, folder: Path) -> list[Any]:
    (folder / "a.tum").write_text("# a comment\n" + tum_lines(*poses(log)))
    return [folder / "a.tum"]


def as_enu(log: Log, folder: Path) -> list[Any]:
    t, p, q = poses(log)
    (folder / "enu.txt").write_text(tum_lines(t + round(EPOCH.timestamp()) * 10**9, ned_to_enu(p), attitude_enu(q)))
    return [folder / "enu.txt", "--layout", "frame=enu"]


def as_csv(log: Log, folder: Path) -> list[Any]:
    t, p, q = poses(log)
    r, h, y = np.degrees(frames.euler(q)).T
    path = csv(folder / "a.csv", t_ns=t, north=p[:, 0], east=p[:, 1], depth=p[:, 2], roll_deg=r, pitch_deg=h, psi=y)
    return [path, "--layout", "heading=psi:deg time=t_ns:ns"]


def as_enu_csv(log: Log, folder: Path) -> list[Any]:
    t, p, q = poses(log)
    e, (r, h, y) = ned_to_enu(p), frames.euler(attitude_enu(q)).T
    path = csv(folder / "e.csv", time=t * 1e-9, x=e[:, 0], y=e[:, 1], z=e[:, 2], roll=r, pitch=h, yaw=y)
    return [path, "--layout", "frame=enu"]


def as_bag(log: Log, folder: Path) -> list[Any]:
    moved = log.series["/state/auv"].records.copy()
    moved["p_WB_W"] += OFF
    other = replace(log, series={"/state/auv": replace(log.series["/state/auv"], records=moved)}, json=log.json)
    list(write_rosbag(other, folder / "bag"))
    return [folder / "bag", "--layout", "topic=/auv/odom"]


def as_log(log: Log, folder: Path) -> list[Any]:
    t, p, _ = poses(log)
    r = np.zeros(len(t), ESTIMATE.visible.dtype)
    r["p_WB_W"], r["sigma"] = p, 0.5
    series = {**log.series, "/estimate/auv": Series(t, r, "estimate")}
    return [stored(replace(log, series=series, json=log.json), folder / "own.mcap")]


@pytest.mark.parametrize("write", [as_tum, as_enu, as_csv, as_enu_csv, as_bag, as_log])
def test_every_format_gives_the_same_score(
    log: Log, file: Path, tmp_path: Path, write: Callable[[Log, Path], list[Any]]
) -> None:
    """Fails with an axis exchanged, a quaternion in another order, or degrees taken for radians."""
    (found,) = scored(file, "--estimate", *write(log, tmp_path), "--align").values()
    assert found["rms"] == pytest.approx(0.5, abs=1e-5) and found["depth_rms"] == pytest.approx(0.2, abs=1e-5)
    assert found["coverage"] == 1.0 and found["aligned_rms"] < 1e-5
    assert found["final"] == pytest.approx(0.5, abs=1e-5) and found["per_leg"]["100"] < 1e-5
    if write is as_log:  # neither attitudes nor depths' covariances are published
        assert found["heading_rms"] is None and found["nees"] == pytest.approx(1.0, abs=1e-3)
    else:
        assert found["heading_rms"] < 1e-7 and found["nees"] is None


def test_beside_the_reference_filter_and_against_another_truth(log: Log, file: Path, tmp_path: Path) -> None:
    (tmp_path / "true.tum").write_text(tum_lines(*poses(log)))
    found = scored(file, "--estimate", tmp_path / "true.tum", "--reference", "--without", "ahrs")
    alone = scored(file, "--without", "ahrs")["auv"]
    assert found["true.tum"]["rms"] == pytest.approx(0.5, abs=1e-5) and list(found) == ["true.tum", "reference filter"]
    assert found["reference filter"]["rms"] == pytest.approx(alone["rms"], rel=1e-6)
    assert found["reference filter"]["sensors"]["dvl"]["taken"] > 200
    done = nav("score", "--estimate", tmp_path / "true.tum", "--truth", tmp_path / "true.tum")
    assert done.exit_code == 0 and "covers 100 % of the track" in done.output
    against = scored(file, "--truth", tmp_path / "true.tum", "--without", "ahrs")["auv"]
    assert against["rms"] < 0.5, "the filter begins at this truth"
    t, p, _ = poses(log)  # of a truth without attitudes and depths, only the horizontal position is compared
    survey = csv(tmp_path / "survey.csv", time=t * 1e-9, north=p[:, 0], east=p[:, 1])
    flat = scored(file, "--truth", survey, "--without", "ahrs")["auv"]
    assert flat["rms"] == pytest.approx(against["rms"], abs=0.5)
    assert flat["heading_rms"] is None and flat["depth_rms"] is None and against["depth_rms"] is not None


def test_gaps_are_not_interpolated(log: Log, file: Path, tmp_path: Path) -> None:
    """The estimate is wrong around its gap, so that an interpolated gap would show."""
    t, p, q = poses(log)
    seconds = t * 1e-9
    keep = (seconds <= 40.0) | (seconds >= 60.0)
    p[(seconds == 40.0) | (seconds == 60.0)] += 1000.0
    (tmp_path / "a.tum").write_text(tum_lines(t[keep], p[keep], q[keep]))
    (found,) = scored(file, "--estimate", tmp_path / "a.tum").values()
    assert found["coverage"] == pytest.approx(keep.mean(), abs=1e-9) and found["coverage"] < 0.84
    (bridged,) = scored(file, "--estimate", tmp_path / "a.tum", "--gap", "30").values()
    assert bridged["coverage"] == 1.0 and bridged["rms"] > 5.0 * found["rms"]
    (sparse := tmp_path / "b.tum").write_text(tum_lines(t[::50] + 50_000_000, p[::50], q[::50]))
    done = nav("score", file, "--estimate", sparse)
    assert (
        isinstance(done.exception, LogError) and "5 s apart" in str(done.exception) and "--gap" in str(done.exception)
    )


def test_hints_name_the_mistake(log: Log, tmp_path: Path, file: Path) -> None:
    t, p, q = poses(log)

    def notes(p: Any, t: Any = t) -> str:
        (tmp_path / "a.tum").write_text(tum_lines(t, p, q))
        (found,) = scored(file, "--estimate", tmp_path / "a.tum").values()
        return " ".join(found["notes"])

    assert notes(p) == ""
    assert "frame=enu" in notes(ned_to_enu(p))
    assert "opposite sign" in notes(p * (1.0, 1.0, -1.0))
    assert "constant offset of 70.30 m north" in notes(p + (70.0, 0.0, 0.0))
    late = notes(p - OFF, t + 700_000_000)
    assert "--offset -0.70" in late and "ahead by about 0.70 s" in late
    (right,) = scored(file, "--estimate", tmp_path / "a.tum", "--offset", "-0.7").values()
    assert right["rms"] < 1e-5 and right["notes"] == []


@pytest.mark.parametrize(
    ("text", "options", "says"),
    [
        ("0 1 2 3 0 0 0\n", [], "line 1 has 7 numbers; expected 8 numbers: t x y z qx qy qz qw"),
        ("# t\n", [], "has no poses"),
        ("time,north\n1,2\n", [], "line 1 is not a pose"),
        ("0 1 2 3 0 0 0 1\n2 1 2 3 0 0 0 1\n1 1 2 3 0 0 0 1\n", [], "pose 3 (t = 1 s) follows t = 2 s; sort"),
        ("0 1 2 3 1 1 0 1\n1 1 2 3 0 0 0 1\n", [], "pose 1 has the norm 1.73"),
        ("900 1 2 3 0 0 0 1\n901 1 2 3 0 0 0 1\n", [], "901.000 s, but the true track covers 0.000 to 120.000 s"),
        ("0 1 2 3 0 0 0 1\n9e10 1 2 3 0 0 0 1\n", ["--layout", "unit=min"], "unknown unit of time 'min'"),
        ("1e10 1 2 3 0 0 0 1\n9e10 1 2 3 0 0 0 1\n", [], "if the times in the file are in ns, pass --layout unit=ns"),
        ("0 1 2 3 0 0 0 1\n1 1 2 3 0 0 0 1\n", ["--layout", "axes=enu"], "unknown name 'axes'"),
        ("0 1 2 3 0 0 0 1\n1 1 2 3 0 0 0 1\n", ["--layout", "time=t:s"], "'time=t:s' names a column, but"),
        ("0 1 2 3 0 0 0 1\n1 1 2 3 0 0 0 1\n", ["--vehicle", "aux"], "has no vehicle 'aux'; did you mean 'auv'?"),
    ],
)  # fmt: skip
def test_mistakes_in_a_track(file: Path, tmp_path: Path, text: str, options: list[str], says: str) -> None:
    (tmp_path / "a.tum").write_text(text)
    done = nav("score", file, "--estimate", tmp_path / "a.tum", *options)
    assert isinstance(done.exception, LogError) and says in str(done.exception), done.exception


@pytest.mark.parametrize(
    ("head", "layout", "says"),
    [
        ("t,north,east,down,yaw", "", "yaw reaches 200 rad in column 'yaw'; state its unit, for example yaw=yaw:deg"),
        ("t,north,east,down,roll", "", "roll reaches 200 rad"),
        ("t,north,depth,down,yaw", "", "no columns for the position"),
        ("when,north,east,down,yaw", "", "no column for the time"),
        ("t,north,east,down,yaw", "north=n", "no column 'n' for 'north'; columns: t, north, east, down, yaw"),
        ("t,north,east,down,yaw", "north=north:furlong", "unknown unit 'furlong'"),
        ("t,north,east,sigma_north,sigma_east", "", "must be positive definite"),
    ],
)
def test_mistakes_in_a_table(file: Path, tmp_path: Path, head: str, layout: str, says: str) -> None:
    (tmp_path / "a.csv").write_text(f"{head}\n0,0,0,0,200\n1,1,0,0,200\n")
    done = nav("score", file, "--estimate", tmp_path / "a.csv", *(["--layout", layout] if layout else []))
    assert isinstance(done.exception, LogError) and says in str(done.exception), done.exception


def test_mistakes_of_files(file: Path, tmp_path: Path) -> None:
    for arguments, says in (
        (("score", file, "--estimate", tmp_path / "absent.tum"), "cannot read"),
        (("score", file, "--estimate", tmp_path), "it has no metadata.yaml"),
        (("score", file, "--estimate", file), "has no estimates"),
        (("score", tmp_path), "contains neither a ROS 2 bag nor exported files of 'vehicle'"),
        (
            ("score", tmp_path / "a.csv"),
            "is not a log; to convert tables from another program, use `wavesim nav import`",
        ),
    ):
        done = nav(*arguments)
        assert isinstance(done.exception, LogError) and says in str(done.exception), done.exception
    (tmp_path / "text.mcap").write_text("0 1 2 3 0 0 0 1\n")
    assert isinstance(nav("score", file, "--estimate", tmp_path / "text.mcap").exception, LogError)
    assert "--gap has no effect without --estimate" in nav("score", file, "--gap", "3").output
    assert "give FILE" in nav("score").output
    done = nav("score", file, "--estimate", "a.tum", "--smooth")
    assert done.exit_code == 2 and "add --reference" in done.output


def test_bounds_of_one_run_hold_for_correlated_errors() -> None:
    """The mean NEES of a consistent run is within its bounds in 95 % of the runs, whether errors are white or change
    slowly. The bounds for white errors would contain it in less than half of the runs.
    """
    rng = np.random.default_rng(2)
    for a, least in ((0.0, 0.9), (0.95, 0.85)):
        inside = plain = 0
        for _ in range(200):
            e = rng.standard_normal((1000, 2))
            for k in range(1, len(e)):
                e[k] = a * e[k - 1] + np.sqrt(1.0 - a * a) * e[k]
            values = np.square(e).sum(axis=1)
            low, high = metrics.mean_bounds(e, np.tile(np.eye(2), (1000, 1, 1)))
            inside += low < values.mean() < high
            plain += metrics.bounds(2, 1000)[0] < values.mean() < metrics.bounds(2, 1000)[1]
        assert inside > least * 200, (a, inside)
        assert (plain < 100) == (a > 0.5)


def test_interpolation_is_exact_in_turns(log: Log) -> None:
    """An exact estimate at other times than the truth, on a curve, has no error."""
    s = log.series["/state/auv"]
    true = read_track(log, body="auv", true=True)
    coarse = true.part(slice(0, None, 5))
    between = PoseTrack("exact", *(x[2::5] for x in (true.time, true.p, true.q)))  # type: ignore[index]
    found = score_estimate(between, coarse)
    assert found.score.rms < 2e-3 and found.score.heading_rms < 2e-3
    assert len(s.records) == len(true.time) and s.records.dtype == STATE.visible.dtype


def test_velocities_of_a_track(tmp_path: Path) -> None:
    """Only body vectors under our own names are recognised; velocities that contradict the positions are not used."""
    t = np.arange(0.0, 60.0, 0.5)
    east = {"time": t, "north": 0.0 * t, "east": 2.0 * t, "down": 5.0 + 0.0 * t, "heading_deg": 90.0 + 0.0 * t}

    def vectors(name: str, *v: float) -> dict[str, Any]:
        return {f"{name}_{axis}": x + 0.0 * t for axis, x in zip("xyz", v, strict=True)}

    world = csv(tmp_path / "world.csv", **east, **vectors("velocity", 0.0, 2.0, 0.0), **vectors("rates", 0.0, 0.0, 1.0))
    track = read_track(world)
    assert track.v is None and track.w is None and track.notes == ()
    named = read_track(world, "velocity=velocity_x,velocity_y,velocity_z")
    assert named.v is None and "in the axes of the world instead of the body" in " ".join(named.notes)
    ours = read_track(csv(tmp_path / "ours.csv", **east, **vectors("v_WB_B", 2.0, 0.0, 0.0)))
    assert ours.v is not None and (ours.v[0] == (2.0, 0.0, 0.0)).all() and ours.notes == ()
    units = read_track(csv(tmp_path / "unit.csv", **east, **vectors("v_WB_B", 2000.0, 0.0, 0.0)))
    assert units.v is None and "wrong unit or axes?" in " ".join(units.notes)
    zero = read_track(csv(tmp_path / "zero.csv", **east, **vectors("v_WB_B", 0.0, 0.0, 0.0)))
    assert zero.v is None, "values of 0 are those of a program that does not know the velocity"
    enu = {"time": t, "x": 2.0 * t, "y": 0.3 * t, "z": -5.0 + 0.0 * t, "yaw": 0.0 * t}
    found = read_track(csv(tmp_path / "enu.csv", **enu, **vectors("v_WB_B", 2.0, 0.3, 0.0)), "frame=enu")
    assert found.v is not None and found.v[0] == pytest.approx((2.0, -0.3, 0.0)), "left is the opposite of starboard"
    rng = np.random.default_rng(1)
    noisy = east | {"north": 2.0 * rng.standard_normal(len(t)), "east": 2.0 * rng.standard_normal(len(t))}
    still = read_track(csv(tmp_path / "still.csv", **noisy, **vectors("v_WB_B", 0.01, 0.0, 0.0)))
    assert still.v is not None and still.notes == (), "position noise does not contradict a vehicle at rest"


def test_a_table_is_read_once_and_not_kept_as_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    t = np.arange(5000.0)
    others = {f"column{k}": np.full(len(t), 0.123456789012) for k in range(40)}
    path = csv(tmp_path / "a.csv", time=t, north=t, east=t, **others)
    times, ordinary = 0, Path.open

    def counted(self: Path, *arguments: Any, **more: Any) -> Any:
        nonlocal times
        times += self == path
        return ordinary(self, *arguments, **more)

    monkeypatch.setattr(Path, "open", counted)
    tracemalloc.start()
    track = read_track(path)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(track.time) == 5000 and times == 1
    assert most < path.stat().st_size / 2
