"""Modem curves: the medium loses the share of packets that the curve states, for the energy, the delay spread and the
Doppler shift that follow from the paths; the curve of JANUS states the share that the receiver of samples loses.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.interpolate import RegularGridInterpolator

from tests.physics.sea import node, outcomes, run, sea
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.janus import JanusReceiver, Transmission, coding, message
from wavesim_sdk.tables import Outcome
from wavesim_server.acoustics import packet_losses
from wavesim_world import modem_curves
from wavesim_world.config import LoadedConfig

Make = Callable[..., LoadedConfig]
EAR = (
    'listen_low="8 kHz" listen_high="40 kHz" source_level="{level} dB" recharge="0 s" detection="snr" snr="{snr} dB"'
    ' bandwidth="4160 Hz"'
)
JANUS = (
    '<modem address="{a}" type="janus" frequency="11520 Hz" bandwidth="4160 Hz" bit_rate="160" preamble="0.2 s"'
    ' payload="64" modulation="janus"/>'
)
PLAIN = '<modem address="{a}" frequency="25 kHz" bandwidth="4 kHz" bit_rate="500" preamble="0.1 s" curve="{curve}"/>'
STILL = 'absorption="0 dB/m"'


@pytest.fixture
def own_curve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Write curves that replace those of the package."""

    def clear() -> None:
        modem_curves.curve_names.cache_clear()
        modem_curves._read.cache_clear()

    def write(name: str, **values: Any) -> None:
        plain = {"title": "", "origin": "computed", "source": "", "header_bits": 0, "block_bits": 64}
        axes = {"energies": [-30, 60], "spreads": [0], "shifts": [0], "header": [[[0]]], "block": [[[0]]]}
        (tmp_path / f"{name}.json").write_text(json.dumps(plain | axes | values))
        clear()

    monkeypatch.setattr(modem_curves, "FOLDER", tmp_path)
    yield write
    monkeypatch.undo()
    clear()


def _link(config: Make, modem: str, level: float, **sound: str) -> Any:
    ear = EAR.format(level=level, snr=30)
    return sea(config, "20 ms", *[(ear, modem.format(a=k)) for k in (7, 9)], extra=STILL, **sound)


# ------------------------------------------------------------------ the curves


@pytest.mark.parametrize("name", modem_curves.curve_names())
def test_a_curve_is_a_table_of_probabilities(name: str) -> None:
    curve = modem_curves.find_curve(name)
    assert curve.origin in (modem_curves.COMPUTED, modem_curves.QUOTED) and curve.source and curve.title
    axes = (curve.energies, curve.spreads, curve.shifts)
    for axis, most in zip(axes, modem_curves.MAX_LENGTHS, strict=True):
        assert (np.diff(axis) > 0).all() and len(axis) <= most
    assert curve.spreads[0] == 0
    for table in (curve.header, curve.block):
        assert ((table >= 0) & (table <= 1)).all() and (np.diff(table, axis=0) <= 0).all(), "more energy, fewer losses"
    assert curve.losses(curve.header_bits + 64)[0] > 0.95, "below the first energy, no packet is detected"
    assert curve.losses(curve.header_bits + 64)[-1] < 0.001


def test_plain_modulations_lose_what_the_theory_says() -> None:
    """Bit errors of 1/2 exp(-E/2N0) for FSK, and 1/2 exp(-E/N0) for DPSK, on a single path. The receivers of the curves
    find the time themselves, to a quarter of a symbol, which costs FSK some tenths of a dB.
    """
    for name, factor in (("fsk", 0.5), ("dpsk", 1.0)):
        curve = modem_curves.find_curve(name)
        wrong = 0.5 * np.exp(-factor * 10 ** (curve.energies / 10))
        assert curve.losses(256) == pytest.approx(1 - (1 - wrong) ** 256, abs=0.2)
        assert curve.required_energy(0.5, 256) == pytest.approx(
            10 * math.log10(math.log(0.5 / (1 - 0.5 ** (1 / 256))) / factor), abs=0.4
        )


def test_the_kernel_interpolates_the_table() -> None:
    rng = np.random.default_rng(3)
    for name in modem_curves.curve_names():
        curve = modem_curves.find_curve(name)
        row = packet_losses.curve_row(curve)[None]
        axes = [np.append(axis, axis[-1] + 1) for axis in (curve.energies, curve.spreads, curve.shifts)]
        twins = [
            RegularGridInterpolator(axes, np.pad(table, ((0, 1),) * 3, "edge")) for table in (curve.header, curve.block)
        ]
        for _ in range(20):
            at = [rng.uniform(axis[0], axis[-1]) for axis in axes]
            bits = rng.integers(0, 2000)
            header, block = (float(twin(at)[0]) for twin in twins)
            blocks = max(bits - curve.header_bits, 0) / curve.block_bits
            expected = 1 - (1 - header) * max(1 - block, 0.0) ** blocks
            found = packet_losses.packet_loss(row, 0, at[0], at[1], at[2], float(bits))
            assert found == pytest.approx(expected, abs=1e-9)


# ------------------------------------------------------------------ the medium


@pytest.mark.compiled
def test_energy_spread_and_shift_follow_from_the_paths(config: Make, own_curve: Callable[..., None]) -> None:
    """Curves that lose nothing or everything, with a step 1 % below or above the value by hand."""
    rate, r, depth, speed = 500.0, 400.0, 40.0, -3.0
    echo = math.hypot(r, 2 * depth)
    powers, delay = np.array([1 / r**2, 1 / echo**2]), (echo - r) / 1500.0
    share = powers[1] / powers.sum()
    spread = delay * math.sqrt(share * (1 - share)) * rate
    energy = 170.0 + 10 * math.log10(powers.sum()) - 80.0 + 10 * math.log10(4000 / rate)
    shift = 25e3 * 3.0 / 1500.0 / rate
    steps = {
        "energies": (energy, lambda v: {"header": [[[1]], [[1]], [[0]]], "energies": [0, v - 1e-3, v + 1e-3]}),
        "spreads": (spread, lambda v: {"header": [[[0], [1]]] * 2, "spreads": [v - 1e-6, v + 1e-6]}),
        "shifts": (shift, lambda v: {"header": [[[0, 1]]] * 2, "shifts": [v - 1e-6, v + 1e-6]}),
    }
    for name, (value, axes) in steps.items():
        found = []
        for part in (0.99, 1.01):
            own_curve("step", **axes(value * part))
            sim = _link(
                config,
                PLAIN.replace("{curve}", "step"),
                170,
                noise="80 dB",
                inner='<multipath order="1"/>',
            )
            a = node(sim, "a", 0, 0.0, z=depth)
            moving = name == "shifts"
            b = node(sim, "b", 1, r, speed if moving else 0.0, z=depth)
            sim.send(a, b"0123456789", to=9)
            _, receptions = run(sim, 2.0)
            mine = receptions[receptions["receiver"] == b]
            assert len(mine) == 2, "the direct path and the surface path"
            found.append(Outcome(int(mine["outcome"][np.argmin(mine["arrival_ns"])])))
        want = [Outcome.HEARD, Outcome.CORRUPT]
        assert found == (want if name == "energies" else want[::-1]), name


@pytest.mark.compiled
def test_below_the_curve_nothing_is_detected_and_pulses_keep_their_threshold(
    config: Make, own_curve: Callable[..., None]
) -> None:
    own_curve("low", energies=[0, 60])
    own_curve("lower", energies=[-10, 60])
    # the medium computes receptions down to the lowest limit of all nodes, which is that of the third node
    ears = [
        (EAR.format(level=170, snr=30), PLAIN.format(a=k, curve=c)) for k, c in ((7, "low"), (9, "low"), (8, "lower"))
    ]
    sim = sea(config, "20 ms", *ears, extra=STILL, noise="20 dB")
    a, b, _ = (node(sim, name, k, r) for k, (name, r) in enumerate((("a", 0.0), ("b", 1000.0), ("c", 3000.0))))
    for excess, expected in ((0.5, Outcome.HEARD), (-0.5, Outcome.BELOW_THRESHOLD)):
        level = 60 + 20 - 10 * math.log10(4000 / 500) + excess
        sim.send(a, b"x", to=9, level=level)
        assert outcomes(run(sim, 2.0)[1], b) == [expected]
        sim.ping(a, 25e3, level=level)
        assert outcomes(run(sim, 2.0)[1], b) == [Outcome.BELOW_THRESHOLD], "30 dB are required for a pulse"


def test_a_curve_excludes_what_it_replaces(config: Make) -> None:
    wrong = {
        PLAIN.replace("{curve}", "jannus"): "unknown modem curve 'jannus'.*did you mean 'janus'",
        PLAIN.replace("{curve}", "fsk").replace("/>", ' bit_error="0.1"/>'): "remove `bit_error`",
        JANUS.replace('bit_rate="160"', 'bit_rate="80"'): "set `bit_rate` to 160",
    }
    for modem, text in wrong.items():
        with pytest.raises((ConfigError, ValueError), match=text):
            node(_link(config, modem, 170), "a", 0, 0.0)


# ------------------------------------------------------------------ JANUS as events and as samples


def _of_curve(ec_n0: float, cargo: int) -> float:
    curve = modem_curves.find_curve("janus")
    bits = coding.PACKET_CHIPS + (coding.chip_count(cargo) if cargo else 0)
    return float(np.interp(ec_n0, curve.energies, curve.losses(bits)))


def _event_loss(config: Make, ec_n0: float, packets: int, cargo: int) -> float:
    """Send packets as events over a single path, and return the lost share."""
    noise, r = 50.0, 300.0
    level = ec_n0 + noise - 10 * math.log10(4160 / 160) + 20 * math.log10(r)
    sim = _link(config, JANUS, level, noise=f"{noise} dB")
    a, b = node(sim, "a", 0, 0.0), node(sim, "b", 1, r)
    lost = 0
    for _ in range(packets):
        sim.send(a, bytes(cargo), to=9)
        sent, receptions = run(sim, 3.2)
        assert sent["duration"][0] == pytest.approx((32 + 144 + coding.chip_count(cargo)) / 160 if cargo else 1.1)
        lost += outcomes(receptions, b) != [Outcome.HEARD]
    return lost / packets


@pytest.mark.long
def test_the_receiver_of_samples_loses_the_share_of_the_janus_curve() -> None:
    """White noise, one path, any speed from -5 to 5 m/s; wrong cargo counts as a loss. The next test shows that events
    lose the same share.
    """
    sampling, packets, cargo, ec_n0 = 32_000, 300, 8, 4.25
    chip = 0.5 / 160 * (1 - 2 / 16 * 5 / 8)
    rng = np.random.default_rng(425)
    deviation = math.sqrt(chip * sampling / 2 / 10 ** (ec_n0 / 10))
    lost = 0
    for _ in range(packets):
        sent = message(rng.bytes(cargo), int(rng.integers(256)))
        signal, speed = Transmission(*sent), rng.uniform(-5, 5)
        times = np.arange(round(2.7 * sampling)) / sampling
        clear = signal.pressure((times - rng.uniform(0.3, 0.5)) * (1 + speed / 1500))
        receiver = JanusReceiver(sampling)
        found = receiver.push(clear + deviation * rng.standard_normal(len(times))) + receiver.finish()
        lost += not any((r.packet, r.cargo) == sent for r in found)
    assert lost / packets == pytest.approx(_of_curve(ec_n0, cargo), abs=0.05)


@pytest.mark.compiled
def test_the_medium_loses_the_share_of_the_janus_curve(config: Make) -> None:
    for ec_n0, cargo in ((3.5, 0), (4.25, 8)):
        expected = _of_curve(ec_n0, cargo)
        assert 0.1 < expected < 0.9
        assert _event_loss(config, ec_n0, 500, cargo) == pytest.approx(expected, abs=0.05)
