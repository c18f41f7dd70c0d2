"""Checks of the clocks in recordings from other programs. All formats use the same checks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import LogError

GAP_S = 60.0  #: minimum length in s of a gap that is reported
JUMP_S = 86400.0  #: minimum length in s of a gap that counts as a jump of the clock
STEP_S = 2.0  #: minimum step back in s that counts as a jump of the clock instead of delayed messages
DIFFER_S = 5.0  #: minimum change in s of the difference between two clocks that counts as a jump
STEADY = 10.0  #: smallest ratio of a jump to the usual change of this difference
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


def check_clock(where: str, name: str, own: Floats, received: Floats) -> None:
    """Compare the clock that stamped messages (T) with the clock of the program that received them. Raise LogError if
    one of them jumps, for example because the vehicle restarted.
    """
    delay = received - own
    width = WINDOW if len(delay) >= 2 * WINDOW else 1
    count = len(delay) // width
    middle = np.median(delay[: count * width].reshape(count, width), axis=1)
    steps = np.abs(np.diff(middle))
    if not len(steps):
        return
    limit = max(DIFFER_S, STEADY * float(np.median(steps)))  # a clock can also run faster, as that of a simulator
    for k in np.flatnonzero(steps > limit):
        # messages that wait on a stalled link arrive later, but the smallest delay remains that of the clocks
        change = float(middle[: k + 1].min() - middle[k + 1 :].min())
        if abs(change) > limit:
            at = float(own[(k + 1) * width])
            raise LogError(
                f"{where}: the clock of '{name}' jumps {'ahead' if change > 0.0 else 'back'} by "
                f"{duration_text(abs(change))} at about t = {at:.3f} s (the vehicle restarted, or its clock was set); "
                "split the file there"
            )


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
    gaps = np.flatnonzero(steps > GAP_S)
    if not len(gaps):
        return []
    longest = int(gaps[np.argmax(steps[gaps])])
    size, at = float(steps[longest]), float(time[longest])
    if size > JUMP_S:
        raise LogError(
            f"{where}: the clock jumps ahead by {duration_text(size)} after t = {at:.3f} s; split the file there"
        )
    some = f"{len(gaps)} times, the longest" if len(gaps) > 1 else "once,"
    return [
        f"nothing was recorded {some} for {duration_text(size)} after t = {at:.3f} s; errors after a gap contain those of "
        "dead reckoning across it"
    ]
