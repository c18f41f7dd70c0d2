"""Compare levels with Bellhop (M. Porter, Acoustics Toolbox), which is built separately.

    python -m benchmarks.bellhop PATH/TO/bellhop.exe

It compares transmission loss, incoherent, as means over a window of range. The cases are the published `Munk` and
`sduct` of the toolbox with their launch angles (C-linear profile), and a thermocline over sand. Both trace the same
rays: Bellhop by steps and geometric hat beams, WaVeSim by closed forms. Near a caustic its beams and our bound differ;
such windows are marked.
"""

from __future__ import annotations

import argparse
import math
import struct
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_server.acoustics import eigenrays, image_paths, ray_tubes, rays
from wavesim_server.acoustics.eigenrays import EigenraySearch
from wavesim_server.acoustics.types import SoundSpeedProfile

BOUNCES, STEPS = 14, 41
NONE = 1e-20  #: where no ray comes


@dataclass(frozen=True)
class Case:
    """A case: profile (depths, speeds), fluid bottom (m/s, relative density, dB per wavelength), source depth, launch
    angles to either side (deg), and receivers (depth, range, half a window, m).
    """

    frequency: float
    z: Floats
    c: Floats
    bottom: tuple[float, float, float]
    source: float
    angles: float
    receivers: tuple[tuple[float, float, float], ...]


MUNK_Z = np.array([0.0, 200, 250, *range(400, 5001, 200)])
MUNK_C = np.array([
    1548.52, 1530.29, 1526.69, 1517.78, 1509.49, 1504.30, 1501.38, 1500.14, 1500.12, 1501.02, 1502.57, 1504.62, 1507.02,
    1509.69, 1512.55, 1515.56, 1518.67, 1521.85, 1525.10, 1528.38, 1531.70, 1535.04, 1538.39, 1541.76, 1545.14, 1548.52,
    1551.91,
])  # fmt: skip
DUCT_Z = np.array(
    [0.0, 250, 300, 375, 425, 500, 600, 700, 810, 900, 1000, 1100, 1180, 1340, 1600, 1800, 2500, 3000, 4000]
)
DUCT_C = np.array(
    [
        1497.0,
        1502,
        1485,
        1478,
        1477,
        1476,
        1476.5,
        1477,
        1478,
        1479,
        1480,
        1481,
        1482,
        1484,
        1487,
        1490,
        1498.7,
        1506.8,
        1523.9,
    ]
)
WARM_Z = np.array([0.0, 20, 30, 40, 50, 60, 200])
WARM_C = np.array([1520.0, 1519.5, 1512, 1503, 1497, 1495, 1493])
FAR = tuple((z, x, 1000.0) for z in (800.0, 2000.0, 3500.0) for x in (20e3, 35e3, 50e3, 65e3, 80e3, 95e3))
CASES = {
    "Munk": Case(50.0, MUNK_Z, MUNK_C, (1600.0, 1.8, 0.8), 1000.0, 20.3, FAR),
    "sduct": Case(
        200.0,
        DUCT_Z,
        DUCT_C,
        (1523.9, 1.0, 0.5),
        25.0,
        10.0,
        tuple((z, x, 1000.0) for z in (100.0, 1000.0) for x in (20e3, 40e3, 60e3)),
    ),
    "thermocline": Case(
        10e3,
        WARM_Z,
        WARM_C,
        (1650.0, 1.9, 0.8),
        10.0,
        40.0,
        tuple((z, x, 0.03 * x) for z in (80.0, 150.0) for x in (500.0, 1500.0, 3000.0)),
    ),
}


def theirs(program: Path, case: Case) -> list[float]:
    """Return the transmission loss in dB at each receiver, computed by Bellhop."""
    depths = sorted({r[0] for r in case.receivers})
    ranges = np.unique(np.concatenate([np.linspace(x - w, x + w, STEPS) for _, x, w in case.receivers]))
    deep = case.z[-1]
    lines = ["'case'", f"{case.frequency}", "1", "'CVW'", f"0 0.0 {deep}"]
    lines += [f"{z} {c} /" for z, c in zip(case.z, case.c, strict=True)]
    speed, density, attenuation = case.bottom
    lines += ["'A' 0.0", f"{deep} {speed} 0.0 {density} {attenuation} /", "1", f"{case.source} /"]
    lines += [str(len(depths)), " ".join(map(str, depths)) + " /"]
    lines += [str(len(ranges)), " ".join(f"{x / 1e3:.9g}" for x in ranges) + " /", "'I'", "20001"]
    lines += [f"-{case.angles} {case.angles} /", f"{deep / 500} {deep * 1.1} {ranges[-1] / 1e3 * 1.02}"]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "case.env").write_text("\n".join(lines) + "\n")
        subprocess.run([str(program.resolve()), "case"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        raw = (Path(folder) / "case.shd").read_bytes()
    (words,) = struct.unpack_from("<i", raw)
    field = np.array([np.frombuffer(raw, np.complex64, len(ranges), 4 * words * (10 + k)) for k in range(len(depths))])
    found = []
    for z, x, w in case.receivers:
        near = np.abs(ranges - x) <= w * (1.0 + 1e-9)
        found.append(-10.0 * math.log10(max(float((np.abs(field[depths.index(z), near]) ** 2).mean()), NONE)))
    return found


def ours(case: Case, steps: int = STEPS) -> tuple[list[float], list[bool]]:
    """Return the transmission loss by the rays and tubes of the medium, and whether a caustic was bounded in the
    window.
    """
    z, c, none = case.z, case.c, np.zeros((0, 2))
    fan, found, out = (
        np.zeros(n, t.dtype).view(np.recarray)
        for t, n in ((eigenrays.FAN, eigenrays.fan_size(len(z))), (eigenrays.EIGENRAY, 256), (rays.RAY, 1))
    )
    water = SoundSpeedProfile(z, c)
    count = eigenrays.launch_fan(water, case.source, fan)
    losses, marked = [], []
    for depth, middle, w in case.receivers:
        total, bounded = 0.0, False
        for x in np.linspace(middle - w, middle + w, steps):
            link = rays.make_link(water, case.source, depth, float(x))
            some, _ = eigenrays.find_eigenrays(EigenraySearch(link, BOUNCES, True, fan, found, none, out), count)
            for angle, down, reversals, *_ in found[:some].tolist():
                if math.degrees(angle) > case.angles or not rays.trace_ray(
                    link, angle, down > 0, reversals, none, out[0], True
                ):
                    continue
                loss, _ = ray_tubes.tube_spreading(link, down > 0, reversals, out[0])
                bounded |= loss < 20.0 * math.log10(out[0].length) - 12.0
                if out[0].bottom:
                    speed, density, attenuation = case.bottom
                    loss += out[0].bottom * image_paths.bottom_loss(
                        out[0].sin_bottom, density, c[-1] / speed, attenuation
                    )
                total += 10.0 ** (-0.1 * loss)
        losses.append(-10.0 * math.log10(max(total / steps, NONE)))
        marked.append(bounded)
    return losses, marked


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=Path, help="path of bellhop.exe")
    program = parser.parse_args().program
    for name, case in CASES.items():
        a, (b, marked) = theirs(program, case), ours(case)
        clear = [abs(x - y) for x, y, m in zip(a, b, marked, strict=True) if not m and max(x, y) < 190.0]
        print(f"{name}: {case.frequency:g} Hz, source at {case.source:g} m, +-{case.angles:g} deg")
        print(f"{'depth m':>8} {'range km':>9} {'Bellhop dB':>11} {'here dB':>8} {'difference':>11}")
        for (z, x, _), p, q, m in zip(case.receivers, a, b, marked, strict=True):
            print(f"{z:8.0f} {x / 1e3:9.2f} {p:11.2f} {q:8.2f} {q - p:11.2f}{' near a caustic' if m else ''}")
        if clear:
            print(f"away from caustics: mean {np.mean(clear):.2f}, maximum {max(clear):.2f} dB\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
