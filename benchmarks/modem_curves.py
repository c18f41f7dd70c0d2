"""Compute the modem curves from waveforms: python -m benchmarks.modem_curves janus --spreads 0,0.02

The result is a part of a file in ``world/wavesim_world/modem_curves``. Each call takes at most about two minutes of one
core; ``join`` writes the files from the parts. docs/evidence/hydrophones.md describes the method.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from wavesim_sdk.janus import INITIAL_BAND, JanusReceiver, ParameterSet, Transmission, coding, message, waveform

ENERGIES = [*np.arange(1.0, 8.01, 0.5).tolist(), 9.0, 10.0, 11.0, 12.0, 14.0, 16.0, 18.0, 21.0, 24.0]
SPREADS = [0.0, 0.1, 0.3, 1.0, 10.0]
PATHS = 6
CARGO = 16  #: bytes
TRIALS = 60  #: packets at each point with fading; without, 200
FEW = 15  #: if as many packets are lost, no more are sent
SPEED = 5.0  #: the receiver searches speeds up to this one
SPEED_TRIALS = 20
C = 1500.0
PLAIN_BITS = 256
TRAINING = 32

Complex = npt.NDArray[np.complex128]
Floats = npt.NDArray[np.float64]


def channel(rng: np.random.Generator, spread: float) -> tuple[Floats, Complex]:
    """Return the delays and the complex amplitudes of random paths with a given rms delay spread. The sum of their
    powers is 1. The first path has delay 0.
    """
    if spread == 0.0:
        return np.zeros(1), np.exp(2j * np.pi * rng.random(1))
    while True:
        delays = np.concatenate([[0.0], rng.exponential(1.0, PATHS - 1)])
        powers = np.exp(-delays)
        powers /= powers.sum()
        rms = math.sqrt((powers * delays**2).sum() - (powers * delays).sum() ** 2)
        if rms > 0.2:
            return delays * (spread / rms), np.sqrt(powers) * np.exp(2j * np.pi * rng.random(PATHS))


# ------------------------------------------------------------------ JANUS


def baseband(t: Transmission, times: Floats) -> Complex:
    """Return the analytic signal of a transmission at any times, without its carrier. The amplitude is 1."""
    spacing, frequencies = t.parameters.spacing, waveform.tones(t.chips, t.parameters)
    position = times * spacing
    index = np.floor(position).astype(np.int64)
    inside = (index >= 0) & (index < len(frequencies))
    number, fraction = index[inside], (position - index)[inside]
    result = np.zeros(len(times), complex)
    turns = frequencies[number] * fraction / spacing
    result[inside] = waveform.envelope(fraction) * np.exp(2j * np.pi * turns)
    return result


def janus_trial(
    rng: np.random.Generator, energy: float, spread: float, speed: float, band: ParameterSet = INITIAL_BAND
) -> tuple[bool, bool]:
    """Send one packet through a random channel; return whether the packet and its cargo were received."""
    data = bytes(rng.integers(0, 256, CARGO, np.uint8))
    packet, cargo = message(data, station=int(rng.integers(256)))
    t = Transmission(packet, cargo, band)
    receiver = JanusReceiver(96_000, band, max_speed=SPEED)
    rate, stretch = receiver.rate, 1.0 + speed / C
    delays, amplitudes = channel(rng, spread)
    lead = 0.4 + 0.1 * rng.random()
    length = lead + t.end / stretch + 1.0
    times = np.arange(round(length * rate)) / rate
    clear: Complex = np.zeros(len(times), complex)
    for delay, a in zip(delays / t.parameters.spacing, amplitudes, strict=True):
        clear += a * baseband(t, (times - lead - delay) * stretch)
    clear *= np.exp(-2j * np.pi * t.parameters.centre * times)
    chip = 0.5 / t.parameters.spacing * (1 - 2 * waveform.EDGE * 5 / 8)
    deviation = math.sqrt(rate * chip / 10 ** (energy / 10))  # of each part of noise of the density 2 N0
    noise = deviation * (rng.standard_normal(len(times)) + 1j * rng.standard_normal(len(times)))
    signal = (clear + noise).astype(np.complex64)
    for r in receiver._process(signal, len(signal)):
        if r.packet == packet:
            return True, r.cargo == cargo
    return False, False


def janus_part(spreads: list[float]) -> Iterator[dict[str, Any]]:
    blocks = coding.chip_count(CARGO) / coding.PACKET_CHIPS
    for spread in spreads:
        clean = 0
        for energy in ENERGIES:
            if spread and (energy < 3.0 or energy % 1.0):
                continue  # the curves are less steep in fading; :func:`fitted` fills the gaps
            rng = np.random.default_rng([round(1000 * spread), round(10 * energy)])
            sent = found = read = 0
            while clean < 2 and sent < (TRIALS if spread else 200) and not (sent == FEW and found == 0):
                there, right = janus_trial(rng, energy, spread, rng.uniform(-SPEED, SPEED))
                sent, found, read = sent + 1, found + there, read + right
            if clean >= 2:
                header = block = 0.0
            else:
                header = 1 - found / sent
                block = 1 - (read / found) ** (1 / blocks) if found else 1.0
                clean = clean + 1 if read == sent else 0
            yield {"spread": spread, "energy": energy, "sent": sent, "header": header, "block": block}


def janus_speeds() -> Iterator[dict[str, Any]]:
    """Yield the share of packets that are lost at some speeds in little noise, for both bands."""
    for centre in (11_520, 25_000):
        band = ParameterSet(centre, 4160)
        for speed in (4.0, 5.0, 5.5, 6.0, 6.5, 7.0, 8.0):
            rng = np.random.default_rng([centre, round(10 * speed)])
            found = [janus_trial(rng, 15.0, 0.0, speed, band)[0] for _ in range(SPEED_TRIALS)]
            yield {"centre": centre, "speed": speed, "header": 1 - sum(found) / SPEED_TRIALS}


# ------------------------------------------------------------------ plain modulations

STEPS = 16  #: samples per symbol


def plain_losses(kind: str, rng: np.random.Generator, spread: float, shift: float, packets: int) -> list[float]:
    """Return the share of packets of PLAIN_BITS uncoded bits that are lost, for each energy.

    Times are in symbols. The receiver knows the first TRAINING symbols, and takes the start time for which they have
    the most energy. It knows neither the phase nor the frequency.
    """
    count = PLAIN_BITS + TRAINING
    lost = np.zeros(len(ENERGIES))
    span = math.ceil(8 * spread) + 2
    total = (count + 2 * span) * STEPS
    times = np.arange(total) / STEPS - span
    for _ in range(packets):
        bits = rng.integers(0, 2, count)
        values = np.concatenate([[0], np.cumsum(bits)]) % 2 if kind == "dpsk" else bits
        delays, amplitudes = channel(rng, spread)
        clear: Complex = np.zeros(total, complex)
        for delay, a in zip(delays, amplitudes, strict=True):
            position = times - delay
            index = np.floor(position).astype(np.int64)
            inside = (index >= 0) & (index < len(values))
            symbol = np.zeros(total, complex)
            if kind == "dpsk":
                symbol[inside] = 1.0 - 2.0 * values[index[inside]]
            else:
                tone = values[index[inside]] - 0.5
                symbol[inside] = np.exp(2j * np.pi * tone * (position - index)[inside])
            clear += a * symbol
        clear *= np.exp(2j * np.pi * shift * times)
        noise = (rng.standard_normal(total) + 1j * rng.standard_normal(total)) * math.sqrt(STEPS / 2)
        for k, energy in enumerate(ENERGIES):
            received = clear + noise * 10 ** (-energy / 20)
            lost[k] += not np.array_equal(plain_bits(kind, received, span, bits), bits[TRAINING:])
    result: list[float] = (lost / packets).tolist()
    return result


def plain_bits(kind: str, received: Complex, span: int, bits: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the decided bits after the training."""
    count = len(bits)
    ramp = np.arange(STEPS) / STEPS
    starts = np.arange(0, (2 * span - 1) * STEPS, STEPS // 4)
    whole = received[starts[:, None] + np.arange((TRAINING + 1) * STEPS)].reshape(len(starts), TRAINING + 1, STEPS)
    if kind == "dpsk":
        sums = whole.sum(axis=2)
        products = (sums[:, 1:] * sums[:, :-1].conj()).real
        scores = (products * (1 - 2 * bits[:TRAINING])).sum(axis=1)
    else:
        tones = np.exp(-2j * np.pi * np.outer(bits[:TRAINING] - 0.5, ramp))
        scores = (np.abs((whole[:, :TRAINING] * tones).sum(axis=2)) ** 2).sum(axis=1)
    start = int(starts[int(np.argmax(scores))])
    need = (count + 1) * STEPS
    found = np.concatenate([received[start:], np.zeros(need, complex)])[:need].reshape(count + 1, STEPS)
    if kind == "dpsk":
        sums = found.sum(axis=1)
        decided = (sums[1:] * sums[:-1].conj()).real < 0
    else:
        low, high = (np.abs(found[:count] @ np.exp(-2j * np.pi * tone * ramp)) for tone in (-0.5, 0.5))
        decided = high > low
    result: npt.NDArray[np.int64] = decided[TRAINING:].astype(np.int64)
    return result


def plain_part(kind: str, spreads: list[float], shifts: list[float], packets: int) -> Iterator[dict[str, Any]]:
    for spread in spreads:
        for shift in shifts:
            rng = np.random.default_rng([round(1000 * spread), round(1000 * shift)])
            yield {
                "spread": spread,
                "shift": shift,
                "packets": packets,
                "block": plain_losses(kind, rng, spread, shift, packets),
            }


# ------------------------------------------------------------------ files


def fitted(energies: Floats, lost: Floats, of: Floats) -> Floats:
    """Return smooth probabilities at ENERGIES for counts of lost packets: a logistic function of a quadratic polynomial,
    fitted by maximum likelihood. It never rises with the energy.
    """
    x, every = (np.vander((np.asarray(e) - 6.0) / 4.0, 3) for e in (energies, ENERGIES))
    beta = np.zeros(3)
    for _ in range(100):
        p = 1 / (1 + np.exp(-np.clip(x @ beta, -30, 30)))
        weight = of * p * (1 - p) + 1e-9
        step = np.linalg.solve((x.T * weight) @ x + 1e-3 * np.eye(3), x.T @ (lost - of * p) - 1e-3 * beta)
        beta += np.clip(step, -2, 2)
    result = 1 / (1 + np.exp(-np.clip(every @ beta, -30, 30)))
    return np.minimum.accumulate(result)


def janus_tables(folder: Path) -> tuple[list[float], Floats, Floats]:
    """Return the spreads, and the probabilities that a header and a block are lost: (energies, spreads)."""
    blocks = coding.chip_count(CARGO) / coding.PACKET_CHIPS
    every = [r for path in sorted(folder.glob("janus-*.json")) for r in json.loads(path.read_text())]
    spreads = sorted({r["spread"] for r in every})
    tables = np.ones((2, len(ENERGIES), len(spreads)))
    for k, spread in enumerate(spreads):
        rows = [r for r in every if r["spread"] == spread]
        sent = np.array([r["sent"] or TRIALS for r in rows], float)
        energies, header, block = (np.array([r[name] for r in rows], float) for name in ("energy", "header", "block"))
        found = sent * (1 - header)
        cargo = 1 - (1 - block) ** blocks
        tables[0, :, k] = fitted(energies, sent * header, sent)
        tables[1, :, k] = 1 - (1 - fitted(energies, found * cargo, found)) ** (1 / blocks)
    return spreads, tables[0], tables[1]


def write(folder: Path, name: str, **content: Any) -> None:
    """Write the file of a curve, with three digits after the point."""
    rounded = {k: np.round(v, 4).tolist() if isinstance(v, np.ndarray) else v for k, v in content.items()}
    lines = (f"{json.dumps(k)}: {json.dumps(v)}" for k, v in rounded.items())
    (folder / f"{name}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


def join(folder: Path, target: Path) -> None:
    """Write the files of the computed curves from the parts."""
    spreads, header, block = janus_tables(folder)
    fading = "packets of 16 bytes over random sets of six paths, speeds up to 5 m/s"
    for name, per_bit, sizes, title, source in (
        ("janus", 1, (144, 144), "JANUS, header and cargo of class 16", f"WaVeSim's JANUS receiver; {fading}"),
        (
            "umodem-fsk",
            2,
            (0, 64),
            "WHOI Micro-Modem, frequency-hopping FSK (rate 0)",
            "FH-FSK at 160 symbols/s with a code of rate 1/2 and constraint length 9, as in ns-3's model of the "
            f"Micro-Modem; assumed: tones, preamble and receiver of JANUS; {fading}",
        ),
    ):
        write(
            target,
            name,
            title=title,
            origin="computed",
            source=source,
            header_bits=sizes[0],
            block_bits=sizes[1],
            energies=np.array(ENERGIES) + 10 * math.log10(per_bit),
            spreads=np.array(spreads) / per_bit,
            shifts=[0.0],
            header=header[:, :, None],
            block=block[:, :, None],
        )
    for name, title in (
        ("fsk", "uncoded binary FSK, orthogonal tones, non-coherent"),
        ("dpsk", "uncoded binary DPSK"),
    ):
        rows = json.loads((folder / f"{name}.json").read_text())
        shifts, steps = (sorted({r[name] for r in rows}) for name in ("shift", "spread"))
        packets = rows[0]["packets"]
        table = np.ones((len(ENERGIES), len(steps), len(shifts)))
        for r in rows:
            lost = packets * np.array(r["block"])
            table[:, steps.index(r["spread"]), shifts.index(r["shift"])] = fitted(
                np.array(ENERGIES), lost, np.full(len(ENERGIES), packets)
            )
        write(
            target,
            name,
            title=title,
            origin="computed",
            source=f"packets of {PLAIN_BITS} bits after {TRAINING} known bits, without equaliser",
            header_bits=0,
            block_bits=PLAIN_BITS,
            energies=np.array(ENERGIES),
            spreads=np.array(steps),
            shifts=np.array(shifts),
            header=[[[0.0]]],
            block=table,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=["janus", "speeds", "fsk", "dpsk", "join"])
    parser.add_argument("--spreads", default=",".join(map(str, SPREADS)))
    parser.add_argument("--shifts", default="0,0.05,0.1,0.2,0.3,0.5")
    parser.add_argument("--packets", type=int, default=100)
    parser.add_argument("--parts", type=Path, default=Path(), help="folder of the parts")
    parser.add_argument("--out", type=Path, required=True, help="file of a part; for join, folder of the curves")
    chosen = parser.parse_args()
    spreads, shifts = ([float(v) for v in text.split(",")] for text in (chosen.spreads, chosen.shifts))
    if chosen.kind == "join":
        join(chosen.parts, chosen.out)
        return
    begun, rows = time.process_time(), []
    parts: dict[str, Callable[[], Iterator[dict[str, Any]]]] = {
        "janus": lambda: janus_part(spreads),
        "speeds": janus_speeds,
        "fsk": lambda: plain_part("fsk", spreads, shifts, chosen.packets),
        "dpsk": lambda: plain_part("dpsk", spreads, shifts, chosen.packets),
    }
    for row in parts[chosen.kind]():
        rows.append(row)
        print(f"{time.process_time() - begun:6.1f} s  {row}", flush=True)
    chosen.out.write_text(json.dumps(rows, indent=0))


if __name__ == "__main__":
    main()
