"""Measure how many packets the example modems in software lose against range: python -m benchmarks.sound_modems ofdm

All steps are those of a trial: the sender plays samples, the medium finds the paths, the hydrophone hears them in Wenz
noise, and the receiver reads its samples. Both bodies are moored.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_server.lab import Lab
from wavesim_world.modem_curves import energy_gain, find_curve

sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "onboard"))

soundmodem: Any = importlib.import_module("soundmodem")

SEA = """<wavesim name="range" seed="5"><time step="20 ms"/><world><bed depth="60 m"/></world>
<acoustics sound_speed="1500 m/s" noise_model="wenz" absorption_model="ainslie-mccolm">{echoes}</acoustics><fleet>
<buoy name="a" model="buoy" position="0 0 20 m"><transducer listen_low="8 kHz" listen_high="32 kHz"
 source_level="200 dB" recharge="0 s"/><mooring anchor="0 0 22 m" length="1.9 m" stiffness="1500 N/m" damping="150 N s/m"/></buoy>
<buoy name="b" model="buoy" position="{range} 0 30 m"><sensors><hydrophone name="ears" sampling="96 kHz" low="8 kHz"
 high="38 kHz" gain="40 dB"/></sensors><mooring anchor="{range} 0 32 m" length="1.9 m" stiffness="1500 N/m" damping="150 N s/m"/></buoy>
</fleet></wavesim>"""
ECHOES = '<multipath order="4" surface_loss="1 dB"/>'
PAYLOAD = 16  #: bytes
BAND = {"ofdm": (24e3, 8e3), "janus": (11.52e3, 4160.0)}


def lost_share(kind: str, distance: float, level: float, packets: int, echoes: bool) -> tuple[float, float]:
    """Return (share of lost packets, signal-to-noise ratio of the direct path in dB)."""
    lab = Lab(SEA.format(range=distance, echoes=ECHOES if echoes else ""), imaging=True)
    modem = soundmodem.MODEMS[kind]()
    rng = np.random.default_rng(round(distance))
    wanted = [rng.bytes(PAYLOAD) for _ in range(packets)]
    found: set[bytes] = set()
    lab.run(1.0)
    # two seconds more than the packets: the receivers work on whole windows
    for payload in [*wanted, b"", b"", b""]:
        samples = modem.samples(payload or bytes(PAYLOAD), 1, 2)
        if payload:
            lab.transmit("a", samples, modem.sampling, level)
        lab.run(len(samples) / modem.sampling + 0.2)
        for frame in lab.take_frames():
            for packet in modem.push(np.asarray(frame.pressures[0]), frame.first_sample):
                found.add(packet.payload)
    sent, _ = lab.take_signals()
    centre, band = BAND[kind]
    alpha, noise = lab.channel.carrier_conditions(centre, band)
    path = float(np.hypot(distance, 10.0))
    snr = level - 20 * np.log10(path) - alpha * path - noise
    assert len(sent) == packets
    return 1.0 - len(found & set(wanted)) / packets, float(snr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modem", choices=sorted(BAND))
    parser.add_argument("--level", type=float, default=150.0)
    parser.add_argument("--ranges", default="500,1000,1500,2000,2500,3000")
    parser.add_argument("--packets", type=int, default=40)
    parser.add_argument("--echoes", action="store_true")
    a = parser.parse_args()
    begun = time.process_time()
    for distance in map(float, a.ranges.split(",")):
        lost, snr = lost_share(a.modem, distance, a.level, a.packets, a.echoes)
        line = f"{distance:6.0f} m  SNR {snr:6.1f} dB  lost {100 * lost:5.1f} %"
        if a.modem == "janus":
            curve = find_curve("janus")
            bits = curve.header_bits + 2 * (8 * 24 + 8)  # 16 bytes, the address, the length and the check sum: 24 bytes
            energy = snr + energy_gain(4160.0, 160.0)
            line += f"  curve {100 * np.interp(energy, curve.energies, curve.losses(bits)):5.1f} %"
        print(f"{line}  ({time.process_time() - begun:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
