"""Inputs for the filter, read from the log of a vehicle. Values from instruments and true states are kept separate.

Instruments are assumed to have the accuracy that the configuration in the log declares. Without an IMU, the filter uses
the rates of the AHRS and random accelerations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk import frames
from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import ConfigError, LogError
from wavesim_sdk.geodesy import Origin
from wavesim_sdk.log import Log, Series
from wavesim_sdk.log_tables import UNKNOWN_TRUTH
from wavesim_sdk.tables import STATE
from wavesim_studies.navigation import measurement_models
from wavesim_studies.navigation import measurements as make
from wavesim_studies.navigation.acoustic_rows import DIRECTION_UNKNOWN, acoustic_input, current_walk
from wavesim_studies.navigation.attitude_motion import ahrs_motion
from wavesim_studies.navigation.filter import FilterDesign, FilterState, Track, estimate
from wavesim_studies.navigation.innovation_monitor import InnovationMonitor, judge
from wavesim_studies.navigation.metrics import NavigationScore, bounds
from wavesim_studies.navigation.metrics import score as judged
from wavesim_world.config import LoadedConfig
from wavesim_world.config.sensors import InstrumentConfig, UwbConfig
from wavesim_world.config.standalone_xml import load_standalone
from wavesim_world.instruments import HEADING_SIGMA, PRESSURE_SIGMA, RATE_SIGMA, SPEED_SIGMA, TILT_SIGMA, dvl_beams
from wavesim_world.ocean.water import depth_of_pressure

__all__ = ["EstimationCase", "Selection", "counts", "draw", "estimation_case", "instruments_of_type", "vehicles"]

#: types of inputs: types of instruments, and `sound` for acoustic measurements
TYPES = ("imu", "dvl", "speedlog", "ctd", "pressure", "ahrs", "gps", "uwb", "sound")
#: initial uncertainty of position in m, velocity in m/s and attitude in rad: the filter starts at the true state
BEGIN = (1e-3, 1e-3, 1e-4)


@dataclass(frozen=True)
class EstimationCase:
    """All inputs for a filter run over the log of a vehicle, and the true states with which the result is compared."""

    name: str
    design: FilterDesign
    start: FilterState
    imu: Floats
    rows: Floats  #: measurements (N, WIDTH)
    sensors: list[str]  #: name of the sensor for each sensor number in the rows
    lever: Floats  #: position of the body's origin in B, relative to the IMU
    time: Floats  #: times (T) of the true states in s
    p: Floats
    v: Floats
    q: Floats
    inertial: str  #: name of the IMU or AHRS that propagates the state
    #: for each instrument whose values are in the log but not used: the reason
    unused: dict[str, str]
    #: `depth` or `attitude`, if true states from another program lack it
    unknown: tuple[str, ...] = ()
    slow: tuple[str, ...] = ()  #: names of the sensors whose errors change slowly, so that their NIS is small

    def run(self, smooth: bool = False, say: Callable[[str], object] | None = None) -> Track:
        """Run the filter or the smoother, and return the estimated states at the times of the true states.

        ``say`` is called with warnings about sensors whose innovations do not fit the assumed noise.
        """
        monitor = InnovationMonitor(self.sensors, slow=self.slow, adaptive=self.design.adaptive)
        track = estimate(self.design, self.start, self.imu, self.rows, self.time, smooth, monitor, say)
        return track.smoothed() if smooth else track

    def covariance(self, track: Track) -> Floats:
        """Return the covariances (T, 2, 2) of the horizontal position."""
        return track.covariance[:, :2, :2]

    def score(self, track: Track) -> NavigationScore:
        """Score a track by comparison with the true states."""
        true_q = None if "attitude" in self.unknown else self.q
        p = self.p * (1.0, 1.0, np.nan) if "depth" in self.unknown else self.p
        return judged(track.at(self.lever), track.q, p, true_q, self.covariance(track))


def vehicles(log: Log) -> list[str]:
    """List the vehicles for which the log contains both true states and values from an IMU or an AHRS."""
    able = {body for kind in ("imu", "ahrs") for body, _ in log.by_type(kind)}
    return [b["name"] for b in log.bodies.values() if b["name"] in able and f"/state/{b['name']}" in log.series]


def valid_values(series: Series) -> Any:
    """Return the valid values from a sensor, without duplicates."""
    r = series.records
    keep = (r["valid"] == 1) & np.concatenate([[True], np.diff(r["sequence"]) > 0]) if len(r) else np.zeros(0, bool)
    return r[keep]


def instruments_of_type(log: Log, name: str, type_: str) -> dict[str, tuple[InstrumentConfig, Any]]:
    """Return the valid values of each instrument of one type on a vehicle, as a dict by the instrument's name."""
    found = _instruments(log, name, _configuration(log))
    return {i.name: (i, values) for i, values in found if i.type == type_ and len(values)}


def _instruments(log: Log, name: str, loaded: LoadedConfig) -> list[tuple[InstrumentConfig, Any]]:
    """Return the instruments of a vehicle, and their valid values."""
    model = next((str(b.get("model", "")) for b in reversed(list(log.bodies.values())) if b["name"] == name), "")
    suite = {i.name: i for i in loaded.suite_by_name(name, model)}
    return [(suite[i], valid_values(series)) for i, series in log.sensors(name).items() if i in suite]


def _check_names(log: Log, wanted: Collection[str]) -> None:
    """Raise LogError if one of the names is neither a type of input nor an instrument of any vehicle."""
    known = [*TYPES, *sorted({i for name in vehicles(log) for i in log.sensors(name)} - set(TYPES))]
    if unknown := set(wanted) - set(known):
        raise LogError(f"unknown type or instrument '{sorted(unknown)[0]}'; use: {', '.join(known)}")


@dataclass(frozen=True)
class Selection:
    """Inputs for the filter, and assumptions about them. Each name is the name of an instrument or of a type of
    instruments.
    """

    use: Collection[str] = ()  #: names of the inputs to use; empty: all
    without: Collection[str] = ()  #: names of inputs that are not used
    noise: Mapping[str, float] = field(default_factory=dict)  #: factors for the assumed noise of instruments
    gated: bool = True  #: whether the filter rejects outliers
    adaptive: bool = False  #: whether the filter estimates the noise of the measurements

    def reason(self, instrument: InstrumentConfig, values: Any) -> str:
        """Return the reason why an instrument is not used, or an empty string if it is used."""
        names = {instrument.name, instrument.type}
        if instrument.type not in TYPES:
            return "the filter has no measurement model for this type"
        if names & set(self.without) or (self.use and not names & set(self.use)):
            return "excluded"
        return "" if len(values) else "no valid values"

    def sound(self) -> bool:
        """Return whether acoustic measurements are used."""
        return "sound" not in self.without and (not self.use or "sound" in self.use)

    def assumed(self, instrument: InstrumentConfig) -> InstrumentConfig:
        """Return an instrument with the noise that the filter assumes."""
        factor = self.noise.get(instrument.name, self.noise.get(instrument.type, 1.0))
        p = instrument.parameters
        return instrument if factor == 1.0 else replace(instrument, parameters=replace(p, noise=factor * p.noise))


def estimation_case(
    log: Log, name: str, without: Collection[str] = (), selection: Selection | None = None
) -> EstimationCase:
    """Return the inputs for one vehicle. ``without`` names inputs that are not used, as a short form of ``selection``.
    Raise LogError if the log lacks required data.
    """
    selection = selection or Selection(without=without)
    if name not in vehicles(log):
        raise LogError(
            f"{log.path} has no vehicle '{name}' with true states and values from an AHRS or IMU; vehicles: {', '.join(vehicles(log)) or 'none'}"
        )
    _check_names(log, {*selection.use, *selection.without, *selection.noise})
    loaded = _configuration(log)
    found: dict[str, list[tuple[InstrumentConfig, Any]]] = {}
    unused: dict[str, str] = {}
    for instrument, values in _instruments(log, name, loaded):
        if reason := selection.reason(instrument, values):
            unused[instrument.name] = reason
        elif instrument.type == "imu" and "imu" in found:
            unused[instrument.name] = "the filter uses one IMU"
        else:
            found.setdefault(instrument.type, []).append((selection.assumed(instrument), values))
    state = log.get(f"/state/{name}", STATE)
    t, s = np.asarray(state.time_ns * 1e-9, np.float64), state.records
    R = frames.rotation(s["q_WB"])
    v = np.asarray(np.einsum("tij,tj->ti", R, s["v_WB_B"]), np.float64)
    design, imu, unit = _inertial_input(found, loaded, float(t[-1] - t[0]))
    begin = float(imu[0, 0])
    first = int(np.searchsorted(t, begin - 1e-9))
    if first >= len(t) - 1:
        raise LogError(f"{log.path}: no true states for '{name}' in the period that its IMU or AHRS values cover")
    lever: Floats = np.asarray(-unit, np.float64)
    arm = R[first] @ unit
    turning = R[first] @ np.cross(s["w_WB_B"][first], unit)
    rows, sensors = _rows(found, loaded, unit)
    slow = tuple(i.name for i, _ in found.get("gps", ()))
    if selection.sound():
        heard = acoustic_input(log, loaded, name, unit, len(sensors), _depths(rows), selection.noise.get("sound", 1.0))
        if heard.rows:
            rows, sensors = [*rows, np.array(heard.rows)], [*sensors, "sound", "directions"]
            mooring = DIRECTION_UNKNOWN if heard.moored else 0.0
            slow += ("sound",) if heard.layered else ()
            design = replace(design, mooring=mooring, sound=heard.sound, sound_walk=heard.sound_walk)
    design = replace(design, adaptive=selection.adaptive)
    begun = design.start(
        float(t[first]),
        s["p_WB_W"][first] + arm,
        v[first] + turning,
        s["q_WB"][first],
        [*BEGIN, *_biases(found)],
    )
    now = slice(first + 1, int(np.searchsorted(t, imu[-1, 0] + 1e-9)))
    table = np.concatenate([np.zeros((0, measurement_models.WIDTH)), *rows])
    if not selection.gated:
        table[:, measurement_models.GATE] = np.finfo(float).max
    asked = np.where(
        table[:, measurement_models.KIND] == measurement_models.ROUND_TRIP,
        table[:, measurement_models.ID],
        table[:, measurement_models.T],
    )
    return EstimationCase(
        name,
        design,
        begun,
        imu[imu[:, 0] > t[first] + 1e-9],
        table[(table[:, measurement_models.T] > t[first]) & (asked > t[first])],
        sensors,
        lever,
        t[now],
        s["p_WB_W"][now],
        v[now],
        s["q_WB"][now],
        next(found[kind][0][0].name for kind in ("imu", "ahrs") if kind in found),
        unused,
        tuple(log.metadata.get(UNKNOWN_TRUTH, "").split()),
        slow,
    )


def _configuration(log: Log) -> LoadedConfig:
    """Return the configuration in the log. The files that it names are not read, because they may have moved."""
    try:
        return load_standalone(log.metadata.get("configuration", ""))[0]
    except ConfigError as error:
        raise LogError(f"{log.path}: invalid configuration: {error}") from None


def _mounting(instrument: InstrumentConfig) -> tuple[Floats, Floats]:
    """Return the rotation R_BS and the position in B of a sensor."""
    p = instrument.parameters
    return frames.rotation(frames.quaternion(*p.attitude)), np.array(p.position)


def _biases(found: dict[str, Any]) -> tuple[float, float]:
    if "imu" not in found:
        return 1e-6, 1e-4
    p = found["imu"][0][0].parameters.resolved
    k = max(found["imu"][0][0].parameters.noise, 1e-3)
    return k * (p.gyro_turn_on + p.gyro_instability), k * (p.accelerometer_turn_on + p.accelerometer_instability)


def _inertial_input(
    found: dict[str, Any], loaded: LoadedConfig, duration: float
) -> tuple[FilterDesign, Floats, Floats]:
    """Return the filter design, the samples from an IMU (expressed in B), and the position of the IMU."""
    gravity = loaded.config.world.gravity
    current, walk = (
        (0.3, current_walk(loaded, duration)) if "speedlog" in found else (0.0, 0.0)
    )  # it depends on the water
    if "imu" in found:
        instrument, values = found["imu"][0]
        p, (R_BS, place) = instrument.parameters.resolved, _mounting(instrument)
        k = max(p.noise, 1e-3)
        imu = np.concatenate(
            [values["time_ns"][:, None] * 1e-9, values["force"] @ R_BS.T, values["rates"] @ R_BS.T], axis=1
        )
        slow = (2.0 / p.instability_time) ** 0.5
        design = FilterDesign(
            gyro_noise=k * p.gyro_noise,
            gyro_walk=k * (p.gyro_walk + slow * p.gyro_instability),
            accelerometer_noise=k * p.accelerometer_noise,
            accelerometer_walk=k * (p.accelerometer_walk + slow * p.accelerometer_instability),
            gravity=gravity,
            current=current,
            current_walk=walk,
        )
        return design, imu, place
    if "ahrs" not in found:
        raise LogError("turn rates are missing: neither an IMU nor an AHRS has a valid value")
    instrument, values = found["ahrs"][0]
    p = instrument.parameters
    k = max(p.noise, 1e-3) / p.rate**0.5
    design, imu = ahrs_motion(
        values["time_ns"] * 1e-9,
        np.stack([values[name] for name in make.ANGLE], axis=1),
        values["rates"],
        _speed(found),
        rate_noise=k * RATE_SIGMA,
        tilt_noise=k * TILT_SIGMA,
        gravity=gravity,
        current=current,
        current_walk=walk,
    )
    return design, imu, np.zeros(3)


def _speed(found: dict[str, Any]) -> tuple[Floats, Floats, Floats] | None:
    """Return the velocities in B measured by a speed log or a Doppler log: times in s, velocities in m/s, and standard
    deviations (3) of the axes in m/s. Return None if there is no such instrument.
    """
    if "speedlog" in found:
        instrument, values = found["speedlog"][0]
        return values["time_ns"] * 1e-9, values["v_FB_B"], np.full(3, instrument.parameters.noise * SPEED_SIGMA)
    if "dvl" in found:
        instrument, values = found["dvl"][0]
        along, _ = dvl_beams(instrument.parameters)
        values = values[np.isfinite(values["bottom"]).all(axis=1)]
        R_BS = _mounting(instrument)[0]
        spread = np.diagonal(R_BS @ np.linalg.inv(along.T @ along) @ R_BS.T)
        noise = instrument.parameters.noise * instrument.parameters.bottom_sigma * np.sqrt(spread)
        return values["time_ns"] * 1e-9, values["bottom"] @ R_BS.T, noise
    return None


def _rows(found: dict[str, Any], loaded: LoadedConfig, unit: Floats) -> tuple[list[Floats], list[str]]:
    """Return the measurements (N, WIDTH) from each instrument, and the names of the instruments."""
    rows: list[Floats] = []
    sensors: list[str] = []
    for type_, instruments in found.items():
        for instrument, values in instruments:
            if type_ == "imu":
                continue
            p, (R_BS, place), at = instrument.parameters, _mounting(instrument), len(sensors)
            k, times = max(p.noise, 0.05), values["time_ns"] * 1e-9
            gate = 0.0 if "imu" in found else make.JOLT  # gate of speeds
            sensors.append(instrument.name)
            if type_ in ("ctd", "pressure"):
                row = make.depth(0.0, 0.0, k * PRESSURE_SIGMA, place - unit, at)
                measured = depth_of_pressure(loaded.config.world, values["pressure"])
            elif type_ == "dvl":
                along, _ = dvl_beams(p)
                spread = np.linalg.inv(along.T @ along) * (k * p.bottom_sigma) ** 2
                row = make.velocity(0.0, np.zeros(3), spread, place - unit, R_BS.T, sensor=at, gate=gate)
                seen = np.isfinite(values["bottom"]).all(axis=1)
                times, measured = times[seen], values["bottom"][seen]
            elif type_ in ("gps", "uwb"):
                sigma = k * _position_sigma(p)
                row = make.position(0.0, np.zeros(3), sigma, place - unit, at)
                measured = values["position"] if type_ == "uwb" else _local(values, loaded)
                high = np.isfinite(measured[:, 2])
                if not high.all():  # receivers of other vehicles need not measure the height
                    flat = make.position(0.0, np.zeros(2), sigma[:2], place - unit, at)
                    rows.append(make.each(flat, times[~high], measured[~high, :2]))
                    times, measured = times[high], measured[high]
            elif type_ == "speedlog":
                row = make.velocity(0.0, np.zeros(3), k * SPEED_SIGMA, -unit, water=True, sensor=at, gate=gate)
                measured = values["v_FB_B"]
            else:
                sigma = k * np.array([TILT_SIGMA, TILT_SIGMA, HEADING_SIGMA])
                row = make.angles(0.0, dict.fromkeys(make.ANGLE, 0.0), sigma, at)
                measured = np.stack([values[name] for name in make.ANGLE], axis=1)
            rows.append(make.each(row, times, measured))
    return rows, sensors


def _depths(rows: list[Floats]) -> Floats:
    """Return the measured depths in m."""
    kind, z = measurement_models.KIND, measurement_models.Z
    return np.concatenate([np.zeros(0), *(r[:, z] for r in rows if len(r) and r[0, kind] == measurement_models.DEPTH)])


def _position_sigma(p: Any) -> Any:
    """Return the standard deviations (3) in m of a position from GPS or UWB.

    The error of a GPS receiver varies slowly, but the filter assumes white noise. White noise carries the same
    information if its variance is larger by the factor (1 + a) / (1 - a), where a is the correlation of successive
    errors.
    """
    if isinstance(p, UwbConfig):
        return np.full(3, p.sigma)
    a = np.exp(-1.0 / (p.rate * p.correlation)) if p.correlation > 0.0 else 0.0
    return np.array([p.hacc * 0.5**0.5, p.hacc * 0.5**0.5, p.vacc]) * np.sqrt((1.0 + a) / (1.0 - a))


def _local(values: Any, loaded: LoadedConfig) -> Floats:
    """Return the positions (N, 3) in W of GPS fixes. The down coordinate of a fix without a height is NaN."""
    origin = Origin(loaded.config.world.latitude, loaded.config.world.longitude)
    fixes = zip(values["latitude"], values["longitude"], np.nan_to_num(values["height"]), strict=True)
    p = np.array([origin.ned(*map(float, fix)) for fix in fixes])
    p[np.isnan(values["height"]), 2] = np.nan
    return p


def counts(voyage: EstimationCase, track: Track) -> dict[str, dict[str, Any]]:
    """Return, for each instrument, the numbers of accepted and rejected measurements, and the mean and expected NIS.

    ``low`` and ``high`` are the bounds of the mean NIS of a consistent filter (95 %). ``noise`` is the factor by which
    an adaptive filter multiplies the assumed noise at the end of the run, and ``advice`` describes any inconsistency
    and its remedy. Instruments that measure a position also have ``raw``: the RMS horizontal error of their
    measurements in m.
    """
    found: dict[str, dict[str, Any]] = {}
    measured = track.events[:, measurement_models.M] > 0
    for k, sensor in enumerate(voyage.sensors):
        mine = measured & (track.events[:, measurement_models.SENSOR] == k)
        if mine.any():
            outcomes = track.event_outcomes[mine]
            events, numbers = track.events[mine], float(track.events[mine, measurement_models.M].mean())
            low, high = bounds(numbers, int(mine.sum()))
            known = outcomes[outcomes[:, 0] >= 0.0]
            found[sensor] = {
                "taken": int((outcomes[:, 0] >= 1.0).sum()),
                "refused": int((outcomes[:, 0] == 0.0).sum()),
                "nis": float(known[:, 1].mean()) if len(known) else math.nan,
                "numbers": numbers,
                "low": low,
                "high": high,
                "noise": track.final_state.noise_factor(k),
                "advice": judge(
                    known[:, 1], known[:, 0] == 0.0, numbers, sensor in voyage.slow, voyage.design.adaptive
                ).advice,
            }
            if (events[:, measurement_models.KIND] == measurement_models.POSITION).all():
                found[sensor]["raw"] = _raw_error(voyage, events)
    return found


def _raw_error(voyage: EstimationCase, events: Floats) -> float:
    """Return the RMS horizontal error in m of positions that one instrument measured."""
    lever = events[0, measurement_models.LEVER : measurement_models.LEVER + 3] - voyage.lever
    true = voyage.p + frames.rotation(voyage.q) @ lever
    off = [
        events[:, measurement_models.Z + k] - np.interp(events[:, measurement_models.T], voyage.time, true[:, k])
        for k in (0, 1)
    ]
    return float(np.sqrt(np.mean(np.square(off).sum(axis=0))))


def draw(voyages: list[tuple[EstimationCase, Track]], out: Path) -> None:
    """Plot the tracks on a map, and the horizontal errors over time with the 3-sigma bound reported by the filter."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.8), layout="constrained")
    chart, errors = figure.subplots(1, 2)
    for voyage, track in voyages:
        p = track.at(voyage.lever)
        (line,) = chart.plot(voyage.p[:, 1], voyage.p[:, 0], lw=2.5, alpha=0.35)
        chart.plot(p[:, 1], p[:, 0], lw=0.8, color=line.get_color(), label=voyage.name)
        off = np.linalg.norm((p - voyage.p)[:, :2], axis=1)
        sure = np.sqrt(np.trace(voyage.covariance(track), axis1=1, axis2=2))
        errors.plot(voyage.time, off, color=line.get_color(), lw=1.0, label=voyage.name)
        errors.plot(voyage.time, 3.0 * sure, color=line.get_color(), lw=0.8, ls="--")
    chart.set_aspect("equal", adjustable="datalim")
    chart.set(xlabel="east (m)", ylabel="north (m)", title="true track (thick line) and estimated track")
    errors.set(xlabel="time (s)", ylabel="m", title="horizontal error; dashed: 3 sigma", ylim=(0.0, None))
    chart.legend(fontsize=8)
    try:
        figure.savefig(out, dpi=110)
    except OSError as error:
        raise LogError(f"cannot write {out}: {error.strerror}") from None
