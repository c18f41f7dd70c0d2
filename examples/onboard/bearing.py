"""On-board program that finds the bearing of a pinger with four hydrophones.

python bearing.py --vehicle rov --frequency 30000

It receives the samples of the hydrophone `ears`, detects each ping, and prints the direction from which it came. The
method is in `direction`: the phase of the ping at each element, relative to the first element, is the projection of the
direction on the line between both elements.
"""

from __future__ import annotations

import argparse
import math
import sys
import time

import numpy as np

from wavesim_sdk.broker import Broker, Step
from wavesim_sdk.errors import WaveSimError

SPACING = 0.02286  #: distance in m of the three other elements from the first one, along x, y and z
ELEMENTS = SPACING * np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
SOUND_SPEED = 1500.0  #: m/s
SMOOTHING_S = 0.25e-3  #: length of the moving average, which passes a band of some kHz around the pinger's frequency
BEGIN_S, END_S = 0.4e-3, 1.6e-3  #: part of the ping that is used: after its beginning, and before the first echo
QUIET_S = 0.2  #: time after a ping in which echoes are ignored
THRESHOLD = 8.0  #: a ping is louder than the median amplitude by this factor
PATIENCE_S = 2.0


def baseband(samples: np.ndarray, rate: float, first: int, frequency: float) -> np.ndarray:
    """Return the complex amplitude of all channels (channels, n) at a frequency. ``first`` is the number of the first
    sample: the phase refers to sample 0.
    """
    k = np.arange(first, first + samples.shape[1])
    mixed = samples * np.exp(-2j * np.pi * ((frequency / rate * k) % 1.0))
    width = max(round(SMOOTHING_S * rate), 1)
    sums = np.cumsum(np.pad(mixed, ((0, 0), (1, 0))), axis=1)
    return (sums[:, width:] - sums[:, :-width]) / width


def direction(amplitude: np.ndarray, frequency: float) -> np.ndarray:
    """Return the unit vector, in the frame of the hydrophone, that points to the source of a ping.

    ``amplitude`` (channels, n) is the part of the ping from :func:`baseband`. An element that is closer to the source by
    d has a phase that is larger by 2 pi d / wavelength. The spacing is less than half a wavelength, so the phase
    differences are unique.
    """
    phase = np.angle(np.sum(amplitude * np.conj(amplitude[0]), axis=1))
    closer = phase[1:] * SOUND_SPEED / (2.0 * np.pi * frequency)
    u = np.linalg.lstsq(ELEMENTS[1:], closer, rcond=None)[0]
    return u / np.linalg.norm(u)


class PingerFinder:
    """Detector of pings in a stream of blocks."""

    def __init__(self, frequency: float) -> None:
        self.frequency = frequency
        self._samples = np.zeros((len(ELEMENTS), 0))
        self._next = 0  # number of the sample after those in ``_samples``
        self._after = -math.inf  # number of the first sample in which a ping may begin

    def add(self, samples: np.ndarray, first: int, rate: float) -> list[tuple[float, np.ndarray]]:
        """Add a block that begins with sample ``first``. Return the time and the direction of each new ping."""
        if first != self._next:  # a block was lost, or the simulation was reset
            self._samples = self._samples[:, :0]
        if first < self._next:
            self._after = -math.inf
        self._samples = np.hstack([self._samples, samples])
        self._next = first + samples.shape[1]
        begin = self._next - self._samples.shape[1]
        used, delay = round(END_S * rate), round(BEGIN_S * rate)
        if self._samples.shape[1] < 4 * used:
            return []
        amplitude = baseband(self._samples, rate, begin, self.frequency)
        loud = np.abs(amplitude[0])
        candidates = np.flatnonzero(loud > THRESHOLD * np.median(loud))
        found = []
        for k in candidates.tolist():
            if begin + k >= self._after and k + used <= len(loud):
                found.append(((begin + k) / rate, direction(amplitude[:, k + delay : k + used], self.frequency)))
                self._after = begin + k + round(QUIET_S * rate)
        kept = round(SMOOTHING_S * rate) + used
        self._samples = self._samples[:, -kept:]
        return found


class Listener:
    """On-board software: it prints the bearing and the elevation of each ping."""

    def __init__(self, frequency: float) -> None:
        self._finder, self._seen = PingerFinder(frequency), 0

    def listen(self, broker: Broker, step: Step) -> None:
        """Process the blocks up to the newest one that the step announces."""
        if "ears" not in step.sensors or "ahrs" not in step.sensors:
            return
        limit, newest = time.monotonic() + PATIENCE_S, int(step.sensors.ears.frame)
        while self._seen < newest and time.monotonic() < limit:
            for block in broker.take_frames():
                self._seen = int(block.record["number"])
                pings = self._finder.add(np.asarray(block.pressures), block.first_sample, block.sampling_rate)
                for at, u in pings:
                    bearing = math.degrees(math.atan2(u[1], u[0]) + step.sensors.ahrs.heading) % 360.0
                    elevation = math.degrees(math.asin(-u[2]))
                    print(f"ping at {at:.4f} s: bearing {bearing:.1f} deg, elevation {elevation:.1f} deg", flush=True)
            if self._seen < newest:
                broker.poll(0.02)
        self._seen = max(self._seen, newest)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", default="config.xml")
    parser.add_argument("--vehicle", required=True)
    parser.add_argument("--port", type=int, default=9750)
    parser.add_argument("--frequency", type=float, default=30e3, help="Frequency of the pinger in Hz.")
    a = parser.parse_args()
    listener = Listener(a.frequency)
    try:
        with Broker(a.vehicle, ("127.0.0.1", a.port), lockstep=0.1) as broker:
            broker.subscribe_frames("ears")
            for step in broker.steps():
                listener.listen(broker, step)
                broker.answer({})
    except WaveSimError as error:
        print(f"{a.vehicle}: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
