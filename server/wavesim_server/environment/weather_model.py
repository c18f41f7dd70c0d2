"""Weather of a run. It is read from the configuration and can be changed during the run."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from wavesim_kernels import randomness
from wavesim_sdk import units
from wavesim_sdk.arrays import Floats
from wavesim_sdk.names import shorten
from wavesim_server.dynamics.fleet import FleetDynamics
from wavesim_server.environment import exposure, flow, spectra
from wavesim_server.environment import weather as w
from wavesim_server.identity_map import IdentityMap
from wavesim_server.row_pool import RowPool, grown_to
from wavesim_world.config import LoadedConfig, Model
from wavesim_world.config.primitives import shape_of
from wavesim_world.config.schema import Key, keys
from wavesim_world.config.world import Current, Waves, Wind
from wavesim_world.ocean import surface
from wavesim_world.ocean.bed import mean_depth
from wavesim_world.ocean.water import Water

#: element in <world> and key in that element, for each value that may change during a run
CHANGEABLE = {
    "current_north": ("current", "north"),
    "current_east": ("current", "east"),
    "current_down": ("current", "down"),
    "wind_speed": ("wind", "speed"),
    "wind_direction": ("wind", "direction"),
    "wave_height": ("waves", "height"),
    "wave_peak": ("waves", "peak"),
    "wave_direction": ("waves", "direction"),
}


class WeatherModel:
    """Flow, wind, waves and tide, and the exposure of each body to them."""

    def __init__(self, loaded: LoadedConfig, water: Water, capacity: int, seed: int) -> None:
        world = self.world = loaded.config.world
        self.seed = seed
        self.current: Current = world.current
        self._bed = mean_depth(loaded)
        self.wind: Wind = world.wind
        self.waves: Waves = world.waves
        self.flow = flow.make_flow(loaded, water)
        #: for each model: row, operators, number of users
        self._operators: IdentityMap[Model, tuple[int, exposure.ResponseOperators, int]] = IdentityMap()
        self._tables = RowPool()
        d = world.current.drift
        self.weather = w.WeatherArrays(
            np.zeros(w.WEATHER),
            np.zeros(w.WIND),
            np.zeros((0, 3)),
            np.array(
                [d.speed, d.speed_deviation, d.speed_minimum, d.speed_maximum, d.direction, d.direction_deviation]
                + [d.direction_range, d.time_constant]
                if d
                else [0.0] * 7 + [1.0]
            ),
            np.array([world.tide.amplitude, world.tide.period, world.tide.phase]),
            np.zeros((0, surface.SEA_COLUMNS)),
            np.array(
                [randomness.key(seed, "weather", p) for p in ("wind", "drift speed", "drift direction")], np.uint64
            ),
            np.zeros((capacity, w.EXPOSURE)),
            np.zeros(capacity, np.uint64),
            np.zeros((capacity, 6, 2)),
            np.zeros((1, 1, 0, 6, 2)),
            np.zeros((1, 1, 0, 3)),
            np.zeros((capacity, w.VOLUMES)),
        )
        self._make_components()
        w.advance_weather(self.weather, 0, 0.0, 0.0)  # wind and level at the start

    def _make_components(self) -> None:
        """Compute the components of gusts and sea, and the force operators at the frequencies of these components."""
        height, peak = surface.sea_state(self.waves)
        a = self.wind
        self.weather.wind[:] = (
            a.mean,
            a.direction,
            a.slow_deviation,
            a.slow_time,
            a.minimum,
            a.maximum,
            a.air_density,
            self.world.gravity,
            peak,
            height,
            self.waves.direction,
        )
        sea = surface.wave_components(self.waves, self.world.gravity, self.seed, self.waves.depth or self._bed)
        self.weather = self.weather._replace(gusts=spectra.gust_components(a, self.seed), sea=sea)
        self._reserve_tables(0, 0)
        for row, operators, _ in self._operators.values():
            self._tabulate(row, operators)

    # -- bodies ------------------------------------------------------------------------------

    def operators(self, model: Model) -> exposure.ResponseOperators | None:
        """Return the force operators of a model, or None. Raises ConfigError if their file cannot be used."""
        if model.rao is None:
            return None
        known = self._operators.get(model)
        return known[1] if known else exposure.read_operators(model, model.rao)

    def add(self, row: int, name: str, model: Model, operators: exposure.ResponseOperators | None) -> None:
        """Add the exposure of a newly added body."""
        e = exposure.exposure_row(model, self.world.wind.drag, shape_of(model))
        self.weather.streams[row] = randomness.key(self.seed, name, "waves")
        self.weather.filters[row] = 0.0
        if operators is not None:
            place, _, users = self._operators.get(model, (-1, operators, 0))
            if place < 0:
                place = self._tables.acquire()
                self._reserve_tables(place + 1, operators.headings)
                self._tabulate(place, operators)
            self._operators[model] = place, operators, users + 1
            e[w.E_RAO], e[w.E_HEADINGS] = place, operators.headings
        if self.world.is_stratified and model.restoring is None:
            e[w.E_FLAGS] += w.HAS_WATER
        self.weather.exposure[row] = e

    def remove(self, row: int, model: Model) -> None:
        """Remove the exposure of a removed body."""
        self.weather.exposure[row] = 0.0
        if model in self._operators:
            place, operators, users = self._operators[model]
            self._operators[model] = place, operators, users - 1
            if users == 1:
                del self._operators[model]
                self._tables.release(place)

    def _reserve_tables(self, tables: int, headings: int) -> None:
        """Allocate the given number of operator tables and headings for the components of the sea."""
        old = self.weather.rao
        headings, components = max(headings, old.shape[1]), len(self.weather.sea)
        if (headings, components) != old.shape[1:3]:
            wider = np.zeros((len(old), headings, components, 6, 2))
            slow = np.zeros((len(old), headings, components, 3))
            if components == old.shape[2]:
                wider[:, : old.shape[1]] = old
                slow[:, : old.shape[1]] = self.weather.drift_rao
            self.weather = self.weather._replace(rao=wider, drift_rao=slow)
        w0 = self.weather
        self.weather = w0._replace(rao=grown_to(w0.rao, tables), drift_rao=grown_to(w0.drift_rao, tables))

    def _tabulate(self, place: int, operators: exposure.ResponseOperators) -> None:
        frequencies = self.weather.sea[:, surface.S_FREQUENCY]
        self.weather.rao[place, : operators.headings] = operators.force_at(frequencies)
        self.weather.drift_rao[place, : operators.headings] = operators.drift_at(frequencies)

    def refresh(self, row: int, fleet: FleetDynamics, tick: int, time: float) -> None:
        """Apply the wind, waves and flow of this tick to one body, so that its published state is consistent."""
        kept = self.weather.filters[row].copy()
        w.apply_to_bodies(self.weather, self.flow, fleet.arrays, np.array([row]), 1, tick, time, fleet.step)
        self.weather.filters[row] = kept

    # -- changes -----------------------------------------------------------------------------

    def with_changes(self, **values: float | None) -> tuple[Current, Wind, Waves]:
        """Return the mean current, wind and sea with some values replaced; None keeps a value. Raises ValueError if a
        value is invalid.

        The current is given in m/s; the wind in m/s, with the direction in rad from which it blows; and the sea by the
        significant height in m, the peak frequency in rad/s and the direction of travel in rad.
        """
        new: dict[str, Any] = {"current": self.current, "wind": self.wind, "waves": self.waves}
        height, peak = surface.sea_state(self.waves)
        for name, value in values.items():
            if name not in CHANGEABLE:
                raise ValueError(f"'{name}' cannot be changed during a run; allowed: {', '.join(CHANGEABLE)}")
            if value is None:
                continue
            element, key = CHANGEABLE[name]
            number = _in_range(name, value, next(k for n, k in keys(type(new[element])) if n == key))
            changes: dict[str, float] = {key: number}
            if element == "wind" and key == "speed":
                changes["beaufort"] = -1
            elif element == "waves" and key != "direction":
                changes = {"height": height, "peak": peak} if new["waves"].beaufort >= 0 else {}
                changes |= {"beaufort": -1, key: number}
            new[element] = dataclasses.replace(new[element], **changes)
        if self.world.gravity == 0.0 and surface.sea_state(new["waves"])[0] > 0.0:
            raise ValueError("surface waves cannot exist in a world without gravity")
        return new["current"], new["wind"], new["waves"]

    def set_weather(self, time: float, current: Current, wind: Wind, waves: Waves) -> None:
        """Change the weather from now on.

        The components of a changed sea depend on the seed but not on the time of the change, so that runs are
        repeatable. The water surface jumps at the time of the change.
        """
        self.current = current
        self.flow.uniform[: flow.F_DOWN + 1] = current.north, current.east, current.down
        if (wind, waves) != (self.wind, self.waves):
            self.wind, self.waves = wind, waves
            self._make_components()
        w.update_weather(self.weather, time)

    # -- state for others --------------------------------------------------------------------

    def uniform_flow(self, time: float) -> Floats:
        """Return the uniform part of the flow in W, including its drift."""
        north, east, down = flow.uniform_flow(self.flow, time)
        state = self.weather.state
        return np.array([north + state[w.W_NORTH], east + state[w.W_EAST], down])


def _in_range(name: str, value: Any, key: Key) -> float:
    number = units.to_real(value)
    low = -1e3 if key.low is None else key.low
    high = 1e3 if key.high is None else key.high
    if not low <= number <= high:
        raise ValueError(f"{name} {shorten(value, 20)} is out of range ({low:g} to {high:g})")
    return number
