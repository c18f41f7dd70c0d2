"""Instruments of many types on many bodies: which are computed when, faults of fields, states that survive a
replacement, and random streams.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tests.emulators.bench import Bench, Make, bench
from wavesim_emulators import motion, position, vessel, water
from wavesim_emulators.base import Batch, Emulator, Noise, NoiseStreams
from wavesim_emulators.sensor_bank import DROP, SIGN, SPIKE
from wavesim_kernels import randomness
from wavesim_sdk.errors import AttachError

FLEET = """<fleet><vehicle name="b0" model="lauv" position="0 0 5 m"><sensors><pressure name="bow" position="1 0 0.5 m" noise="0"/>
<pressure name="stern" position="-1 0 0 m" rate="25 Hz" noise="0"/></sensors></vehicle>
<vehicle name="b1" model="lauv" position="0 0 5 m"><sensors inherit="no"/></vehicle>
<vehicle name="b2" model="lauv" position="0 0 5 m"><sensors><pressure position="-1 0 0 m" rate="25 Hz" noise="0"/></sensors></vehicle></fleet>"""


def test_each_has_its_own_mounting_and_rate(config: Make) -> None:
    b = Bench(config(FLEET), water.PressureEmulator, bodies=3, period=0)
    for row, depth in enumerate((5.0, 7.0, 9.0)):
        b.put((0.0, 0.0, depth), row=row)
    counts = [b.at(tick)["sequence"][:3].tolist() for tick in range(1, 51)]
    assert counts[-1] == [2, 5, 5], "at 25 and 50; at each tenth tick"
    assert counts[9] == [0, 1, 1] and counts[24] == [1, 2, 2]
    assert b.out["depth"][:3] == pytest.approx([5.5, 5.0, 9.0])
    assert b.out["tick"][:3].tolist() == [50, 50, 50] and len(b.out) == 3, "b1 has none, and no row"
    assert len(b.station.groups) == 2, "b0's at the stern and b2's are computed together"


def test_nobody_is_an_empty_pass(config: Make) -> None:
    for of in (water.CtdEmulator, vessel.RpmEmulator, vessel.BatteryEmulator, motion.DvlEmulator, position.GpsEmulator):
        b = bench(config, of, bodies=0)
        assert not b.station.compute(b.view(0), 0) and not b.out["valid"].any()


def test_a_late_asker_gets_each_value_once(config: Make) -> None:
    """The engine goes on in real time: an emulator that is behind computes what was due, of the newest tick, and no value twice."""
    b = bench(config, water.PressureEmulator, 'rate="25 Hz"', period=0)
    assert b.at(10)["sequence"][0] == 1
    assert b.at(21, due=20)["sequence"][0] == 2 and b.out["tick"][0] == 21
    assert b.at(21, due=20)["sequence"][0] == 2, "asked again for the same"
    assert b.at(29, due=29)["sequence"][0] == 2, "nothing was due"
    assert b.at(45, due=40)["sequence"][0] == 3


def test_a_late_value_comes_out_at_its_time_however_rare_the_values_are(config: Make) -> None:
    b = bench(config, water.PressureEmulator, 'noise="0" rate="2 Hz" latency="50 ms"', period=0)
    b.put((0.0, 0.0, 5.0))
    assert b.at(125)["sequence"][0] == 0
    b.put((0.0, 0.0, 9.0))
    out = b.at(138)
    assert out["sequence"][0] == 1 and out["depth"][0] == pytest.approx(5.0) and out["tick"][0] == 125


def test_bodies_that_come_and_go_find_their_places(config: Make) -> None:
    b = bench(config, water.PressureEmulator, 'noise="0"', bodies=3)
    b.at(0)
    b.leave(1)
    assert b.at(1)["valid"][:3].tolist() == [1, 0, 1]
    b.enter(7, "late")
    b.put((0.0, 0.0, 33.0), row=7)
    assert b.out["generation"][1] == 1
    out = b.at(2)
    assert out["depth"][1] == pytest.approx(33.0) and out["valid"][1] == 1 and out["generation"][1] == 2
    assert out["sequence"][1] == 2, "it goes on: a log sees that it is a new one"


def test_a_value_of_a_predecessor_never_comes_out(config: Make) -> None:
    b = bench(config, water.PressureEmulator, 'noise="0" latency="12 ms"', bodies=1)
    b.put((0.0, 0.0, 5.0))
    b.at(0)
    b.leave(0)
    b.enter(0, "other")
    for tick in range(1, 4):
        b.put((0.0, 0.0, 50.0))
        assert not b.at(tick)["valid"][0]
    assert b.at(4)["depth"][0] == pytest.approx(50.0)


def test_a_server_with_another_suite_is_refused(config: Make) -> None:
    b = bench(config, water.PressureEmulator)
    b.instruments.rows["name"][0] = b"unknown"
    with pytest.raises(
        AttachError, match="the server's body 'b0' has a pressure 'unknown' that this configuration does not have"
    ):
        b.at(0)


# ------------------------------------------------------------------ faults of fields


def test_a_bias_on_a_field_leaves_the_others_alone(config: Make) -> None:
    good, bad = (bench(config, position.GpsEmulator, 'position="0 0 -2 m"') for _ in range(2))
    for b in (good, bad):
        b.put((100.0, 50.0, 0.0), v=(1.0, 0.5, 0.0))
    bad.fault(0, "bias", "5 deg", "cog")
    a, z = good.at(0)[0], bad.at(0)[0]
    assert z["cog"] - a["cog"] == pytest.approx(np.radians(5.0))
    for name in ("latitude", "longitude", "height", "sog", "hdop", "hacc", "satellites", "valid"):
        assert a[name] == z[name], name


def test_every_fault_of_one_number_of_a_field(config: Make) -> None:
    def run(kind: str, amount: float | str = 0.0) -> Any:
        b = bench(config, motion.SpeedLogEmulator, "")
        b.put((0.0, 0.0, 5.0), v=(1.0, 2.0, 3.0))
        b.at(0)
        b.fault(0, kind, amount, "v_FB_B.1")
        return np.array([b.at(t)["v_FB_B"][0].copy() for t in range(1, 60)]), b

    clean, _ = run("none")
    for kind, amount in (("lost", 0.0), ("frozen", 0.0), ("bias", "2 m/s"), ("spikes", 0.5), ("noisy", 50.0)):
        found, b = run(kind, amount)
        assert (found[:, [0, 2]] == clean[:, [0, 2]]).all(), kind
        assert b.out["valid"][0] == 1, "the instrument speaks"
        x = found[:, 1]
        assert {
            "lost": np.isnan(x).all(),
            "frozen": len(set(x)) == 1,
            "bias": x == pytest.approx(clean[:, 1] + 2.0),
            "spikes": 0.3 < (np.abs(x - clean[:, 1]) > 10.0).mean() < 0.7,
            "noisy": x - 2.0 == pytest.approx(50.0 * (clean[:, 1] - 2.0)),
        }[kind], kind


def test_a_fault_does_not_touch_the_state_behind_a_value(config: Make) -> None:
    """A battery that showed a wrong charge is as full as before when it is mended; noise on an IMU does not move its bias."""
    good, bad = (bench(config, vessel.BatteryEmulator, 'hotel="3600" capacity="1000"', model="vita1") for _ in range(2))
    imu, loud = (bench(config, motion.ImuEmulator, "") for _ in range(2))
    for tick in range(0, 2500, 250):
        if tick == 500:
            bad.fault(0, "bias", "-0.5", "charge")
            loud.fault(0, "noisy", 100.0)
        if tick == 2000:
            bad.fault(0, "none")
            loud.fault(0, "none")
        for b in (good, bad, imu, loud):
            b.at(tick)
        assert (bad.out["charge"][0] == good.out["charge"][0]) == (tick < 500 or tick >= 2000)
    assert bad.out["charge"][0] < 1.0 and (imu.out[0] == loud.out[0])


# ------------------------------------------------------------------ hot swap

STATEFUL = [
    motion.ImuEmulator,
    motion.NavigationEmulator,
    position.GpsEmulator,
    vessel.BatteryEmulator,
    vessel.RpmEmulator,
    motion.AhrsEmulator,
]


@pytest.mark.parametrize("attributes", ["", 'latency="20 ms" drop_out="0.2"'], ids=["prompt", "late"])
@pytest.mark.parametrize("of", STATEFUL, ids=lambda of: of.sensor)
def test_who_takes_over_goes_on_to_the_bit(config: Make, of: type[Emulator], attributes: str) -> None:
    """Bias, slow error, used energy and last motion stand in the table: a new process gives what the old one would have given."""
    world = '<world><tide amplitude="1 m" period="1 h"/></world>'
    loaded = config(f"{world}<fleet><sensors><{of.sensor} {attributes} position='0.3 0 -3 m'/></sensors></fleet>")
    one, other = (Bench(loaded, of, bodies=3, model="otter") for _ in range(2))
    rng, agreed = np.random.default_rng(4), 0
    for tick in range(0, 120, 5):
        for row in range(3):
            p, angles, v, w = rng.normal(size=(4, 3))
            n = rng.uniform(5.0, 20.0)
            for b in (one, other):
                b.put(0.3 * p, 0.2 * angles, v, 0.1 * w, row=row)
                b.drive(n, -n, row=row)
        if tick in (30, 70):
            other.replace(keep=True)
        one.at(tick)
        other.at(tick)
        same = one.out["time_ns"][:3] == other.out["time_ns"][:3]  # what waited for its time died with the process
        agreed += int(same.sum())
        a, z = (x.station._values(x.out)[:3][same] for x in (one, other))
        assert np.array_equal(a, z, equal_nan=True), tick
    assert agreed >= (72 if not attributes else 50)


def test_a_state_of_another_body_is_not_taken_over(config: Make) -> None:
    b = bench(config, vessel.BatteryEmulator, 'hotel="3600" capacity="1"', model="vita1")
    b.at(0)
    assert b.at(2500)["charge"][0] == 0.0
    b.leave(0)
    b.enter(0, "other")
    b.replace(keep=True)
    assert b.at(2750)["charge"][0] == 1.0


# ------------------------------------------------------------------ random numbers


def draws(count: int) -> dict[str, Any]:
    """Many numbers of each purpose that sensors draw, as uniform ones."""
    keys = np.array([randomness.key(1, f"b{k}", "imu") for k in range(count)], np.uint64)
    found: dict[str, Any] = {}
    for tick in (0, 1, 250):
        noise = Noise(NoiseStreams(keys), tick, 1.0)
        for purpose in ("value", "turn-on", "walk", "slow error", DROP, SPIKE, SIGN):
            of = noise.for_purpose(purpose)
            for index in (0, 1, 2, 100, 500, 501, 1000, 1001):
                found[f"{tick} {purpose} chance {index}"] = of.uniform(index)
        for purpose, index in itertools.product(("value", "turn-on", "walk", "slow error"), (0, 1, 5, 250, 500)):
            found[f"{tick} {purpose} normal {index}"] = noise.for_purpose(purpose)(index)
    return found


def test_no_draw_depends_on_another() -> None:
    """Every pair of draws of 4000 instruments, of every purpose: correlation of the numbers, and of their distances from the
    middle, by which two that share a uniform number give themselves away."""
    found = draws(4000)
    x = np.array(list(found.values()))
    for data in (x, np.abs(x - x.mean(axis=1, keepdims=True))):
        r = np.corrcoef(data) - np.eye(len(x))
        assert np.abs(r).max() < 5.5 / np.sqrt(4000), "as large as chance makes it, of so many pairs"
    assert len({v.tobytes() for v in found.values()}) == len(found)


@pytest.mark.parametrize("count", [3, 100])
def test_compiled_random_numbers_equal_those_of_numpy(count: int) -> None:
    streams = NoiseStreams(np.array([randomness.key(1, f"b{k}", "imu") for k in range(count)], np.uint64))
    scale = np.linspace(0.0, 2.0, count)
    for tick in (0, 7, 2**40):
        noise, keys = Noise(streams, tick, scale), streams("value")
        assert np.array_equal(noise(4), scale * randomness.normal(keys, tick, 4))
        singly = [scale * randomness.normal(keys, tick, k) for k in range(2, 8)]
        assert noise.normals(6, 2).tobytes() == np.stack(singly, axis=1).tobytes()
        assert np.array_equal(noise.uniform(1), randomness.uniform(streams("value chance"), tick, 1))
        singly = [randomness.uniform(streams("value chance"), tick, k) for k in range(5)]
        assert np.array_equal(noise.uniforms(5), np.stack(singly, axis=1))


def test_without_noise_all_numbers_are_positive_zeros() -> None:
    streams = NoiseStreams(np.arange(5, dtype=np.uint64))
    assert Noise(streams, 3, 0.0).normals(4).tobytes() == bytes(5 * 4 * 8)


def test_instruments_of_one_body_draw_for_themselves(config: Make) -> None:
    loaded = config(
        '<fleet><vehicle name="b0" model="lauv" position="0 0 5 m"><sensors><ahrs name="one"/><ahrs name="two"/></sensors></vehicle></fleet>'
    )
    b = Bench(loaded, motion.AhrsEmulator)
    out = np.array([b.at(t)["roll"][:2].copy() for t in range(400)])
    assert len(b.station.groups) == 1 and abs(np.corrcoef(out.T)[0, 1]) < 0.2


class Chance(Emulator):
    """A foreign emulator that draws both kinds of numbers with the same index."""

    sensor = "speedlog"

    def measure(self, now: Batch, out: Any) -> None:
        out["v_FB_B"] = np.column_stack([now.noise(0), now.noise.uniform(0), now.noise.uniform(1)])


def test_a_chance_is_no_part_of_a_normal_number(config: Make) -> None:
    x = bench(config, Chance, "", bodies=64).at(5)["v_FB_B"][:64]
    radius = np.sqrt(-2.0 * np.log(x[:, 1]))
    assert not np.allclose(x[:, 0], radius * np.cos(2.0 * np.pi * x[:, 2]))
