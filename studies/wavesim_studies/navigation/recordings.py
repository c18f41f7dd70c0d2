"""Values recorded from one real instrument, and checks for common mistakes: wrong units, swapped columns and wrong
clocks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import LogError
from wavesim_studies.navigation.attitude_motion import rates_of_angles
from wavesim_studies.navigation.clock_checks import GAP_S, check_steps_back, duration_text
from wavesim_studies.navigation.columns import ColumnRole

#: minimum length of a gap that is reported, as a multiple of the median period, if this is longer than 5 s
PERIODS = 20.0
#: for each type of instrument: its values, with the usual names of columns
FIELDS: dict[str, dict[str, ColumnRole]] = {
    "imu": {
        "force": ColumnRole("acceleration", ("a", "acc", "accel", "linear_acceleration"), 3),
        "rates": ColumnRole("angular rate", ("w", "gyro", "angular_velocity"), 3),
    },
    "ahrs": {
        "roll": ColumnRole("angle", ("phi",)),
        "pitch": ColumnRole("angle", ("theta",)),
        "heading": ColumnRole("angle", ("yaw", "psi", "hdg")),
        "rates": ColumnRole("angular rate", ("w", "gyro", "angular_velocity"), 3),
    },
    "dvl": {"bottom": ColumnRole("speed", ("v", "vel", "velocity"), 3)},
    "speedlog": {"v_FB_B": ColumnRole("speed", ("v", "vel", "velocity"), 3)},
    "pressure": {"pressure": ColumnRole("pressure", ("p",)), "depth": ColumnRole("length")},
    "ctd": {"pressure": ColumnRole("pressure", ("p",)), "depth": ColumnRole("length")},
    "gps": {
        "latitude": ColumnRole("angle", ("lat",)),
        "longitude": ColumnRole("angle", ("lon", "lng")),
        "height": ColumnRole("length", ("altitude", "alt")),
    },
    "uwb": {"position": ColumnRole("length", ("p", "p_W"), 3)},
}
#: values that an instrument can lack, or that another value can replace
OPTIONAL = {"ahrs": {"rates"}, "gps": {"height"}, "pressure": {"pressure", "depth"}, "ctd": {"pressure", "depth"}}
#: values in the sensor frame S or the body frame B, which other programs often give with the axes forward, left, up
BODY_VECTORS = ("force", "rates", "bottom", "v_FB_B")


@dataclass(frozen=True)
class InstrumentRecording:
    """Values of one instrument over time, in SI units (pressures in dbar) and with the axes forward, starboard, down."""

    name: str
    type: str
    time: Floats  #: times (T) in s, on the clock of the recording
    values: dict[str, Floats]  #: values (T) or (T, 3)
    sigma: float = 0.0  #: standard deviation that the recording states; 0 = unknown
    source: str = ""  #: topic or file
    notes: list[str] = field(default_factory=list)

    @property
    def period(self) -> float:
        """Median interval in s."""
        return float(np.median(np.diff(self.time)))

    def checked(self) -> InstrumentRecording:
        """Return the recording in chronological order, without repeated times, with notes about gaps and suspicious
        values. Raise LogError if it cannot be used.
        """
        made = _in_order(self.complete())
        for check in (_check_rates, _check_angles, _check_force, _check_velocity, _check_pressure, _check_fix):
            check(made)
        return _with_rates(made) if made.type == "ahrs" else made

    def complete(self) -> InstrumentRecording:
        """Return the recording without the values that lack a required number. A Doppler log keeps values without bottom
        lock.
        """
        known = np.ones(len(self.time), bool)
        for name, x in self.values.items():
            if name not in OPTIONAL.get(self.type, ()) and name != "bottom":
                known &= _finite(x)
        if self.type in ("pressure", "ctd"):
            known &= np.any([np.isfinite(self.values[k]) for k in ("pressure", "depth") if k in self.values], axis=0)
        notes = list(self.notes)
        if "bottom" in self.values:
            locked = _finite(self.values["bottom"])
            known &= locked.any()
            if not locked.all():
                notes.append(f"{int((~locked).sum())} of {len(locked)} values have no velocity over the bottom")
        if not known.all():
            notes.append(f"{int((~known).sum())} of {len(known)} values were omitted: numbers are missing or invalid")
        return replace(self, time=self.time[known], values={k: x[known] for k, x in self.values.items()}, notes=notes)


def _finite(x: Floats) -> Any:
    """Return a mask (T) of the finite numbers or vectors."""
    return np.isfinite(x.reshape(len(x), -1)).all(axis=1)


def _in_order(r: InstrumentRecording) -> InstrumentRecording:
    if not np.isfinite(r.time).all():
        raise LogError(f"{r.source}: times must be finite numbers")
    if len(r.time) < 2:
        raise LogError(f"{r.source}: '{r.name}' has {len(r.time)} value(s); at least two are needed")
    notes, steps = list(r.notes), np.diff(r.time)
    if (backward := steps < 0.0).any():
        check_steps_back(r.source, r.name, r.time)
        back, most = int(backward.sum()), float(-steps.min())
        notes.append(f"{back} values were not in chronological order (by up to {most:.3f} s); they were sorted")
    order = np.argsort(r.time, kind="stable")
    time = r.time[order]
    keep = np.concatenate([np.diff(time) > 0.0, [True]])
    if not keep.all():
        notes.append(f"{int((~keep).sum())} values with a repeated time were omitted")
    time = time[keep]
    if len(time) < 2:
        raise LogError(f"{r.source}: all times of '{r.name}' are equal")
    steps = np.diff(time)
    limit = min(GAP_S, max(PERIODS * float(np.median(steps)), 5.0))
    gaps = steps[steps > limit]
    if len(gaps):
        where = float(time[int(np.argmax(steps))])
        notes.append(f"{len(gaps)} gap(s), the longest {duration_text(float(gaps.max()))} after t = {where:.3f} s")
    return replace(r, time=time, values={k: v[order][keep] for k, v in r.values.items()}, notes=notes)


def _most(x: Floats) -> float:
    """Return the largest absolute value; NaN values are ignored."""
    return float(np.nanmax(np.abs(x))) if np.isfinite(x).any() else 0.0


def _check_rates(r: InstrumentRecording) -> None:
    if "rates" in r.values and (most := _most(r.values["rates"])) > 17.5:
        raise LogError(f"{r.source}: turn rates of '{r.name}' reach {most:.3g} rad/s; state their unit (deg/s?)")


def _check_angles(r: InstrumentRecording) -> None:
    if r.type != "ahrs":
        return
    for name, limit in (("roll", math.pi), ("pitch", 0.5 * math.pi)):
        if (most := _most(r.values[name])) > limit + 1e-3:
            raise LogError(
                f"{r.source}: {name} of '{r.name}' reaches {most:.4g} rad; state its unit ({name}=COLUMN:deg)"
            )
    if (
        (most := _most(r.values["heading"])) > 2.0 * math.pi + 1e-3
        and most < 361.0
        and _wraps(r.values["heading"], 360.0)
    ):
        raise LogError(f"{r.source}: heading of '{r.name}' reaches {most:.4g} rad; state its unit (heading=COLUMN:deg)")


def _with_rates(r: InstrumentRecording) -> InstrumentRecording:
    """Return the recording of an AHRS in which turn rates that are missing are computed from the angles."""
    angles = np.stack([r.values[k] for k in ("roll", "pitch", "heading")], axis=1)
    rates = r.values.get("rates", np.full(angles.shape, np.nan))
    known = _finite(rates)
    if not known.all():
        rates = np.where(known[:, None], rates, rates_of_angles(r.time, angles))
        some = f"{int((~known).sum())} of {len(known)} " if known.any() else ""
        r.notes.append(f"{some}turn rates are missing; they are computed from the angles")
    r = replace(r, values={**r.values, "rates": rates})
    if known.any():
        _compare_rates(r)
    return r


def _wraps(angle: Floats, turn: float) -> bool:
    """Return whether an angle is wrapped: it jumps by about one turn, or stays within one turn although it moves by
    more than 2 pi.
    """
    jumps = np.abs(np.diff(angle))
    return bool((np.abs(jumps - turn) < 0.05 * turn).any() or np.ptp(angle) > 2.0 * math.pi)


def _compare_rates(r: InstrumentRecording) -> None:
    """Compare measured turn rates with the changes of the angles, which reveals swapped columns and axes."""
    step = max(round(0.5 / r.period), 1)
    lag = (r.time[step:] - r.time[:-step])[:, None]
    good = lag[:, 0] < 2.0 * step * r.period
    angles = np.unwrap(np.stack([r.values[k] for k in ("roll", "pitch", "heading")], axis=1), axis=0)
    change = ((angles[step:] - angles[:-step]) / lag)[good]
    sums = np.concatenate([np.zeros((1, 3)), np.cumsum(r.values["rates"], axis=0)])
    mean = ((sums[step + 1 : len(sums)] - sums[1 : len(sums) - step]) / step)[good]
    if len(change) < 20:
        return
    names, spread = ("roll", "pitch", "heading"), change.std(axis=0)
    for k, name in enumerate(names):
        if spread[k] < math.radians(0.2):
            continue
        match = [correlation(change[:, k], mean[:, j]) for j in range(3)]
        best = int(np.argmax(np.abs(match)))
        if abs(match[k]) < 0.5 < 0.8 < abs(match[best]):
            r.notes.append(f"{name} changes like the turn rate about {'xyz'[best]}: swapped columns?")
        elif match[k] < -0.8:
            r.notes.append(f"{name} and the turn rate about {'xyz'[k]} have opposite signs: frame FRD or FLU?")
        elif match[k] > 0.9:
            ratio = float(change[:, k] @ mean[:, k] / (change[:, k] @ change[:, k]))
            if not 0.2 < ratio < 5.0:
                r.notes.append(f"the turn rate about {'xyz'[k]} is {ratio:.3g} times the change of {name}: units?")


def correlation(a: Floats, b: Floats) -> float:
    """Return the correlation of two series."""
    spread = float(a.std() * b.std())
    return float(((a - a.mean()) * (b - b.mean())).mean() / spread) if spread > 0.0 else 0.0


def _check_force(r: InstrumentRecording) -> None:
    if r.type != "imu":
        return
    force = r.values["force"]
    size = float(np.nanmedian(np.linalg.norm(force, axis=1)))
    if 0.8 < size < 1.2:
        raise LogError(f"{r.source}: the specific force of '{r.name}' is about {size:.3g} m/s2; state its unit (g?)")
    if not 7.0 < size < 13.0:
        r.notes.append(f"the specific force is about {size:.3g} m/s2 instead of 9.8: gravity removed?")


def _check_velocity(r: InstrumentRecording) -> None:
    for name in ("bottom", "v_FB_B"):
        if name not in r.values:
            continue
        v = r.values[name]
        if (most := _most(v)) > 50.0:
            raise LogError(f"{r.source}: speeds of '{r.name}' reach {most:.4g} m/s; state their unit (mm/s? cm/s?)")
        if most > 15.0:
            r.notes.append(f"speeds reach {most:.3g} m/s: units?")
        ahead, across, down = (
            float(np.nanmedian(np.abs(v[:, k]))) if np.isfinite(v[:, k]).any() else 0.0 for k in range(3)
        )
        if across > max(2.0 * ahead, 0.2) or down > max(2.0 * ahead, 0.2):
            axis = "to starboard" if across > down else "down"
            r.notes.append(f"the vehicle moves mostly {axis}: swapped columns, or a mount that must be configured?")


def _check_pressure(r: InstrumentRecording) -> None:
    if "pressure" in r.values and np.isfinite(r.values["pressure"]).any():
        least = float(np.nanmin(r.values["pressure"]))
        if least < 8.0:
            r.notes.append(f"the pressure falls to {least:.3g} dbar; it must be absolute (10.13 dbar at the surface)")


def _check_fix(r: InstrumentRecording) -> None:
    if r.type != "gps":
        return
    for name, limit in (("latitude", 0.5 * math.pi), ("longitude", 2.0 * math.pi)):
        if (most := _most(r.values[name])) > limit + 1e-3:
            degrees = "; state its unit (deg?), or check whether the columns are swapped" if most <= 720.0 else ""
            degrees = "; state its unit (degE7?)" if 1e6 < most < 3.7e9 else degrees
            raise LogError(f"{r.source}: {name} of '{r.name}' reaches {most:.6g} rad{degrees}")


def names_of_values(type_: str, values: Sequence[str]) -> list[str]:
    """Return the names of the required values that a recording of this type of instrument lacks."""
    fields = FIELDS[type_]
    missing = [name for name in fields if name not in values and name not in OPTIONAL.get(type_, set())]
    if type_ in ("pressure", "ctd") and not {"pressure", "depth"} & set(values):
        missing.append("pressure (or depth)")
    return missing
