"""Checks of the clocks in recordings from other programs. All formats use the same checks."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import LogError

GAP_S = 60.0  #: minimum length in s of a gap that is reported
JUMP_S = 86400.0  #: minimum length in s of a gap that counts as a jump of the clock
STEP_S = 2.0  #: minimum step back in s that counts as a jump of the clock instead of delayed messages
DIFFER_S = 5.0  #: minimum change in s of the difference between two clocks that counts as a jump
STEADY = 10.0  #: smallest ratio of a jump to the usual change of this difference
PARTS = 50  #: number of parts of a file in which the rate of a clock is determined
PAUSE_STEPS = 5.0  #: largest step of a clock across a pause, in usual steps
GAPS = re.compile(r"1 gap of |\d+ gaps, the longest ")  #: beginning of the notes about gaps
WINDOW = 25  #: number of messages over which the difference between two clocks is averaged (median)


def duration_text(seconds: float) -> str:
    """Return a duration as text with a suitable unit."""
    for limit, factor, unit in (
        (120.0, 1.0, "s"),
        (7200.0, 60.0, "min"),
        (2.0 * JUMP_S, 3600.0, "h"),
        (4e7, JUMP_S, "days"),
    ):
        if seconds < limit:
            return f"{seconds / factor:.1f} {unit}"
    return f"{seconds / (365.25 * JUMP_S):.1f} years"


def gaps_text(time: Floats, limit: float = GAP_S) -> str:
    """Return the gaps longer than ``limit`` s in times (T) as text, such as `2 gaps, the longest 5.0 min after t = 12.000
    s`; empty if there are none.
    """
    steps = np.diff(time)
    count = int((steps > limit).sum())
    if not count:
        return ""
    k = int(np.argmax(steps))
    some = f"{count} gaps, the longest" if count > 1 else "1 gap of"
    return f"{some} {duration_text(float(steps[k]))} after t = {time[k]:.3f} s"


def _rate(own: Floats, received: Floats) -> float:
    """Return how many seconds pass for the receiver in one second of the stamping clock: 1, or the median over parts of the
    file if they agree that it is another number, as for a simulator that runs faster or slower than real time.
    """
    ends = np.arange(0, len(own), max(len(own) // PARTS, 5))
    steps, waits = np.diff(own[ends]), np.diff(received[ends])
    if (steps > 0.0).sum() < 5:
        return 1.0
    low, rate, high = np.percentile((waits / np.where(steps > 0.0, steps, 1.0))[steps > 0.0], [25.0, 50.0, 75.0])
    return float(rate) if high - low < 0.2 * abs(rate - 1.0) else 1.0


def _pauses(own: Floats, received: Floats) -> tuple[list[int], Floats]:
    """Return the messages after which the stamping clock stood still, and for how many seconds: the next message carries on
    at the usual step of this clock but was received much later, and all later messages are as late.
    """
    steps, rate = np.diff(own), _rate(own, received)
    usual = float(np.median(steps[steps > 0.0])) if (steps > 0.0).any() else 0.0
    waits, delay = np.diff(received) - rate * steps, received - rate * own
    still = (steps >= 0.0) & (steps <= PAUSE_STEPS * usual + 1e-3) & (waits > DIFFER_S)
    found: list[int] = []
    for k in np.flatnonzero(still).tolist():
        begin = found[-1] + 1 if found else 0
        # a link that stalls also delays messages, but not all later ones
        if delay[k + 1 :].min() - delay[begin : k + 1].min() > waits[k] - 0.5 * DIFFER_S:
            found.append(k)
    return found, waits[found]


def check_clock(where: str, name: str, own: Floats, received: Floats) -> list[str]:
    """Compare the clock that stamped messages (T) with the clock of the program that received them. Return a note if the
    stamping clock stood still, as that of a paused simulator does. Raise LogError if one of the clocks jumps, for example
    because the vehicle restarted.
    """
    notes = []
    pauses, waits = _pauses(own, received)
    if pauses:
        received = received.copy()
        for last, wait in zip(pauses, waits, strict=True):
            received[last + 1 :] -= wait
        some = f"{len(pauses)} times, together" if len(pauses) > 1 else "once,"
        notes.append(
            f"the clock of the messages stood still {some} for {duration_text(float(waits.sum()))}, first at t = "
            f"{own[pauses[0]]:.3f} s, and nothing was received meanwhile: a paused simulator? The stamps are used; if the "
            "vehicle moved meanwhile, split the file there"
        )
    delay = received - own
    width = WINDOW if len(delay) >= 2 * WINDOW else 1
    count = len(delay) // width
    middle = np.median(delay[: count * width].reshape(count, width), axis=1)
    steps = np.abs(np.diff(middle))
    if not len(steps):
        return notes
    limit = max(DIFFER_S, STEADY * float(np.median(steps)))  # a clock can also run faster, as that of a simulator
    for k in np.flatnonzero(steps > limit).tolist():
        # messages that wait on a stalled link arrive later, but the smallest delay remains that of the clocks
        change = float(middle[: k + 1].min() - middle[k + 1 :].min())
        if abs(change) > limit:
            at = float(own[(k + 1) * width])
            raise LogError(
                f"{where}: the clock of '{name}' jumps {'ahead' if change > 0.0 else 'back'} by "
                f"{duration_text(abs(change))} at about t = {at:.3f} s (the vehicle restarted, or its clock was set); "
                "split the file there"
            )
    return notes


def check_steps_back(where: str, name: str, time: Floats) -> None:
    """Raise LogError if times (T) jump back and stay behind, in contrast to single messages that were delayed."""
    steps = np.diff(time)
    if not len(steps) or float(-steps.min()) <= STEP_S:
        return
    k = int(np.argmin(steps))
    most, repeated = float(-steps[k]), int((time[k + 1 :] < time[k]).sum())
    if most > GAP_S or repeated > 5:
        raise LogError(
            f"{where}: the clock of '{name}' jumps back by {most:.1f} s after t = {time[k]:.3f} s; split the file there"
        )


def common_gaps(where: str, times: Sequence[Floats]) -> list[str]:
    """Return notes about the gaps that the times (T) of all instruments share. Raise LogError if such a gap can only be a jump of
    the clock.
    """
    time = np.unique(np.concatenate(times))
    steps = np.diff(time)
    if not (text := gaps_text(time)):
        return []
    longest = int(np.argmax(steps))
    if steps[longest] > JUMP_S:
        raise LogError(
            f"{where}: the clock jumps ahead by {duration_text(float(steps[longest]))} after t = {time[longest]:.3f} s; "
            "split the file there"
        )
    return [f"all instruments have {text}; errors after a gap contain those of dead reckoning across it"]
