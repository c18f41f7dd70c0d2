"""The filter over a log: instruments as the configuration mounts them, the truth apart from them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.studies.test_filter import voyage
from wavesim_sdk import frames
from wavesim_sdk.errors import LogError
from wavesim_sdk.log import Log, Series
from wavesim_sdk.sensors import SENSORS
from wavesim_sdk.tables import STATE
from wavesim_studies.navigation import logs, metrics

pytestmark = [pytest.mark.xdist_group("navigation")]
CONFIG = """<wavesim><fleet><vehicle name="auv" model="lauv" position="0 0 20 m"><sensors inherit="no">
<imu rate="10 Hz" attitude="0 0 90 deg" position="0.2 0 0.1 m" grade="tactical"/><dvl rate="2 Hz" position="-0.3 0 0 m"/>
<ahrs rate="10 Hz"/></sensors></vehicle></fleet></wavesim>"""


@pytest.fixture(scope="module")
def log() -> Log:
    o, rng = voyage(120.0, 10.0, leg=40.0), np.random.default_rng(4)
    n = len(o.imu)
    mounted = frames.rotation(frames.quaternion(0.0, 0.0, np.pi / 2.0))

    def series(name: str, k: np.ndarray, **values: np.ndarray) -> Series:
        r = np.zeros(len(k), SENSORS[name].told.dtype)
        r["valid"], r["sequence"] = 1, np.arange(1, len(k) + 1)
        r["time_ns"] = np.round(o.t[k] * 1e9)
        for field, v in values.items():
            r[field] = v
        return Series(r["time_ns"].astype(np.int64), r, name)

    every, some = np.arange(1, n + 1), o.every(0.5)
    truth = np.zeros(n + 1, STATE.told.dtype)
    truth["q_WB"], truth["w_WB_B"] = o.q, o.w
    truth["p_WB_W"] = o.p - o.R @ np.array([0.2, 0.0, 0.1])  # the voyage is the inertial unit's
    truth["v_WB_B"] = o.along(np.arange(n + 1), (-0.2, 0.0, -0.1))
    made = Log(Path("made.mcap"), metadata={"configuration": CONFIG})
    made.series = {
        "/state/auv": Series(np.round(o.t * 1e9).astype(np.int64), truth, "state"),
        "/sensor/auv/imu": series("imu", every, force=o.imu[:, 1:4] @ mounted, rates=o.imu[:, 4:7] @ mounted),
        "/sensor/auv/dvl": series(
            "dvl", some, bottom=o.along(some, (-0.5, 0.0, -0.1)) + 0.004 * rng.standard_normal((len(some), 3))
        ),
        "/sensor/auv/ahrs": series("ahrs", every, heading=o.headings[1:], roll=0.0 * o.t[1:]),
    }
    made.json["/bodies"] = [(0, {"row": 0, "name": "auv", "model": "lauv", "present": True})]
    return made


def test_mountings_and_levers_are_those_of_the_configuration(log: Log) -> None:
    voyage_ = logs.voyage(log, "auv", without=("ahrs",))
    track = voyage_.run()
    found = metrics.score(track.at(voyage_.lever), track.q, voyage_.p, voyage_.q, track.covariance[:, :2, :2])
    assert found.rms < 0.5 and found.percent < 0.5 and found.distance > 150.0
    told = logs.counts(voyage_, track)
    assert list(told) == ["dvl"] and told["dvl"]["refused"] <= 5 and 1.5 < told["dvl"]["nis"] < 4.5


def test_the_unit_alone_is_right_where_it_is_mounted_and_knows_how_little_it_knows(log: Log) -> None:
    """Its samples are ideal: whoever turned or moved them wrongly would be metres off."""
    voyage_ = logs.voyage(log, "auv", without=("dvl", "ahrs"))
    track = voyage_.run()
    assert np.linalg.norm(track.at(voyage_.lever)[-1] - voyage_.p[-1]) < 0.01
    assert np.sqrt(np.trace(track.covariance[-1, :3, :3])) > 10.0


def test_mistakes(log: Log) -> None:
    with pytest.raises(LogError, match=r"no vehicle 'aux'.*it has: auv"):
        logs.voyage(log, "aux")
    with pytest.raises(LogError, match="there is no 'sonar' to leave out"):
        logs.voyage(log, "auv", without=("sonar",))
