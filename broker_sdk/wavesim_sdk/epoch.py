"""Conversion of simulation time to civil time, for formats with a date."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)  #: civil time at simulation time 0
_SECONDS = round(EPOCH.timestamp())


def utc(time_ns: int | float) -> datetime:
    """Return the civil time that corresponds to a simulation time, to the microsecond."""
    return EPOCH + timedelta(microseconds=time_ns / 1e3)


def unix(time_ns: int) -> tuple[int, int]:
    """Return the civil time that corresponds to a simulation time as (whole seconds since 1970, ns)."""
    seconds, ns = divmod(int(time_ns), 10**9)
    return _SECONDS + seconds, ns
