"""Allan deviations of IMUs at rest: planted noise is recovered, from logs and from CSV files; `allantools` is the judge."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import allantools
import numpy as np
import pytest
from click.testing import CliRunner

from wavesim_sdk.log import read
from wavesim_studies.navigation import allan, cli, lab_logs
from wavesim_world.config import load_text
from wavesim_world.config.sensors import IMU_GRADES, ImuConfig

pytestmark = [pytest.mark.compiled, pytest.mark.xdist_group("navigation")]
Array = Any


def planted(n: int, rate: float, noise: float, walk: float, seed: int) -> Array:
    """Three axes with white noise and a random walk of the bias."""
    rng = np.random.default_rng(seed)
    steps = walk / np.sqrt(rate) * rng.standard_normal((n, 3))
    return noise * np.sqrt(rate) * rng.standard_normal((n, 3)) + np.cumsum(steps, axis=0)


def invoke(*arguments: str | Path) -> Any:
    return CliRunner().invoke(cli.nav, ["allan", *map(str, arguments)])


@pytest.mark.parametrize("n", [64, 1000, 4097])
def test_deviations_are_those_of_allantools(n: int) -> None:
    x, sizes = planted(n, 20.0, 1e-3, 1e-4, n) + 9.81, allan.cluster_sizes(n)
    times, judged, _, _ = allantools.oadev(x[:, 1], rate=20.0, data_type="freq", taus=np.array(sizes) / 20.0)
    assert len(times) == len(sizes) and n / sizes[-1] >= allan.CLUSTERS
    assert allan.overlapping_deviation(x, sizes)[:, 1] == pytest.approx(judged, rel=1e-9)


def test_the_stated_uncertainty_is_that_of_repeated_recordings() -> None:
    """Of 60 axes, at least 85 % have the planted value within two standard deviations; the spread of the estimates is at most
    as stated, but not much smaller. The absent instability is found in few."""
    found: dict[str, list[allan.NoiseCoefficient]] = {k: [] for k in allan.COEFFICIENTS}
    for seed in range(20):
        x = planted(8000, 4.0, 3e-4, 4e-5, seed)
        for axis, c in allan.curves(allan.InertialRecording("x", 4.0, {"rates": x}))["rates"].items():
            for k in found:
                found[k] += [c.coefficients[k]] if axis != "mean" else []
    for name, true in (("noise", 3e-4), ("walk", 4e-5)):
        value, sigma = (np.array([getattr(c, k) for c in found[name]]) for k in ("value", "sigma"))
        assert np.mean(np.abs(value - true) < 2.0 * sigma) >= 0.85, name
        assert np.median(value) == pytest.approx(true, rel=0.06) and 0.3 < value.std() / np.median(sigma) < 2.0, name
    assert np.mean([c.resolved for c in found["instability"]]) < 0.1
    assert np.mean([c.limit for c in found["instability"]]) < 1e-4


LONG, DENSE = (4 * 3600.0, 1.0), (900.0, 10.0)  #: duration in s and rate in Hz


@pytest.fixture(scope="module")
def rest(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Logs of a boat at rest with an IMU of each grade, named after it. The random walk of the MEMS unit rules soon, so its log is
    shorter and denser."""
    folder, found = tmp_path_factory.mktemp("rest"), {}
    for grades in (["mems"], ["tactical", "navigation"]):
        seconds, rate = DENSE if "mems" in grades else LONG
        units = "".join(f'<imu name="{g}" grade="{g}" rate="{rate:g} Hz"/>' for g in grades)
        loaded = load_text(
            '<wavesim><time step="100 ms"/><world><bed depth="9 m"/></world><fleet><vehicle name="boat" model="sookshma" '
            f'position="0 0 0 m" client="none"><sensors>{units}</sensors></vehicle></fleet></wavesim>'
        )
        path = folder / f"{grades[0]}.mcap"
        lab_logs.record(loaded, "boat", path, seconds, 3, None, every=1.0 / rate, state=60.0)
        found |= dict.fromkeys(grades, path)
    return found


@pytest.mark.parametrize("grade", IMU_GRADES)
def test_the_noise_of_each_grade_is_recovered_from_a_log(rest: dict[str, Path], grade: str, tmp_path: Path) -> None:
    """White noise within 3 % and three standard deviations; bias instability or random walk, whichever rules the long times, within
    three standard deviations or (of those that the white noise hides) below the limit."""
    done = invoke(rest[grade], "--sensor", grade, "--json", "--picture", tmp_path / "a.png")
    assert done.exit_code == 0, done.output
    found, p = json.loads(done.output), ImuConfig(grade=grade).resolved
    assert (found["seconds"], found["rate"]) == pytest.approx(
        DENSE if grade == "mems" else LONG, rel=1e-3
    ) and not found["notes"]
    for group in ("gyro", "accelerometer"):
        mean = found[group]["mean"]
        for name in ("noise", "instability", "walk"):
            true, c = getattr(p, f"{group}_{name}"), mean[name]
            assert found[group]["declared"][name] == true
            if c["resolved"]:
                assert abs(c["value"] - true) < 3.0 * c["sigma"], (group, name, c, true)
            else:
                assert true < 1.2 * c["limit"], (group, name, c, true)
        assert mean["noise"]["value"] == pytest.approx(
            getattr(p, f"{group}_noise"), rel=0.03 if grade != "mems" else 0.1
        )
        declared = allan.declared_deviation(p, {"gyro": "rates"}.get(group, "force"), np.array(mean["times"]))
        off = np.array(mean["deviations"]) / declared - 1.0
        assert np.abs(off[:7]).max() < 0.06, "the curve, up to a minute, is the configured one"
    if grade != "mems":
        force = found["accelerometer"]["mean"]
        assert force["instability"]["resolved"] and 100.0 < force["instability_time"] < 900.0, "configured: 300 s"
    else:
        assert found["gyro"]["mean"]["walk"]["resolved"] and found["accelerometer"]["mean"]["walk"]["resolved"]
    assert (tmp_path / "a.png").stat().st_size > 10_000


def test_the_table_shows_configured_values_and_warns_of_motion(rest: dict[str, Path]) -> None:
    done = invoke(rest["tactical"])
    assert done.exit_code == 0 and "deg/sqrt(h)" in done.output and "configured" in done.output
    log = read(rest["tactical"])
    state = log.series["/state/boat"].records.copy()
    state["w_WB_B"][:, 2] = 0.3
    log.series["/state/boat"] = type(log.series["/state/boat"])(log.series["/state/boat"].time_ns, state, "state")
    assert "the deviations contain this motion" in allan.from_log(log, "boat").notes[0]


def test_columns_of_a_csv_file_in_other_units(tmp_path: Path) -> None:
    x = planted(4000, 50.0, 2e-4, 0.0, 7)
    lines = [f"{k * 20_000_000},{a[0]:.12g},{a[1]:.12g},{a[2]:.12g},x" for k, a in enumerate(np.degrees(x))]
    path = tmp_path / "imu.csv"
    path.write_text("\n".join(["t_ns,wx,wy,wz,note", *lines[:1000], *lines[1200:]]) + "\n")
    done = invoke(path, "--time", "t_ns:ns", "--rates", "wx,wy,wz:deg/s", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.output)
    assert found["rate"] == pytest.approx(50.0) and found["gyro"]["mean"]["noise"]["value"] == pytest.approx(
        2e-4, rel=0.05
    )
    assert "accelerometer" not in found and "2800 of 3800 samples" in found["notes"][0]
    assert invoke(path, "--rate", "50", "--rates", "wx,wy,wz:deg/s").exit_code == 0


def test_mistakes(rest: dict[str, Path], tmp_path: Path) -> None:
    path = tmp_path / "imu.csv"
    path.write_text("t,wx,wy,wz\n0,1,2,3\n1,1,2,nan\n")
    for message, *arguments in (
        ("requires --rates or --force", path),
        ("requires --time (a column) or --rate", path, "--rates", "wx,wy,wz"),
        ("apply only to .csv files", rest["mems"], "--rate", "5"),
        ("apply only to logs", path, "--rates", "wx,wy,wz", "--rate", "5", "--sensor", "x"),
        ("must name 3 column(s)", path, "--rates", "wx,wy", "--rate", "5"),
        ("unknown unit 'rpm'", path, "--rates", "wx,wy,wz:rpm", "--rate", "5"),
        ("must end in one of", path, "--picture", "x.txt"),
    ):
        done = invoke(*arguments)
        assert done.exit_code == 2 and message in done.output, (message, done.output)
    for message, *arguments in (
        ("has no column 'ax'; columns: t, wx, wy, wz", path, "--force", "ax,ay,az", "--rate", "5"),
        ("not finite numbers", path, "--rates", "wx,wy,wz", "--rate", "5"),
        ("cannot read", tmp_path / "absent.csv", "--rates", "wx,wy,wz", "--rate", "5"),
        ("no IMU 'other'; IMUs: mems", rest["mems"], "--sensor", "other"),
        ("'ship' has no values from an IMU; vehicles with an IMU: boat", rest["mems"], "--vehicle", "ship"),
    ):
        done = invoke(*arguments)
        assert message in str(done.exception), (message, done.output, done.exception)
    path.write_text("t,wx,wy,wz\n" + "0,1,2,3\n" * 5)
    done = invoke(path, "--rates", "wx,wy,wz", "--rate", "5")
    assert "at least 64 samples" in str(done.exception)
    path.write_text("t,wx,wy,wz\n0,1,2\n")
    assert "row 2 has no number" in str(invoke(path, "--rates", "wx,wy,wz", "--rate", "5").exception)
