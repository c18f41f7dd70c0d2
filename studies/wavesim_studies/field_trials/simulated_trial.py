"""The same trial simulated: a WaVeSim configuration from a reconstructed trial, and detections in the same form.

Every receiver is a body at its reconstructed position with its own clock, and every tag is a body with a pinger. Pings
have the recorded times of emission.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from xml.sax.saxutils import quoteattr

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_studies.field_trials.clock_solution import ClockSolution, add_changes
from wavesim_studies.field_trials.detection_files import DetectionTrial
from wavesim_studies.field_trials.medium_fit import FLUCTUATION, LATE_TIME, RESOLUTION, MediumFit
from wavesim_studies.field_trials.towed_track import TowedTrack

if TYPE_CHECKING:
    from wavesim_server import Simulation

FREQUENCY, PULSE = 69e3, 3.6  #: carrier in Hz, and assumed duration of a coded ping in s
SOURCE_LEVEL = 150.0  #: in dB; only its difference from the threshold matters
STEP = 0.1  #: tick in s
LEAD = 20.0  #: time in s before the first ping and after the last one
FIX_NOISE = 2.0  #: assumed standard deviation of a simulated GPS fix along each axis in m
TOW = 2.0  #: assumed distance in m of the tag behind the boat
BED = 3.0  #: assumed depth of the bed in m

MODEL = """    <model name="mooring" type="buoy"><sphere diameter="0.1 m"/><mass value="1000 kg"/><inertia xx="1" yy="1" zz="1"/>
      <buoyancy volume="1 m3"/><added-mass diagonal="0 0 0 0 0 0"/><linear-drag diagonal="0 0 0 0 0 0"/><quadratic-drag diagonal="0 0 0 0 0 0"/></model>"""


@dataclass(frozen=True)
class TrialModel:
    """A recorded trial with its reconstruction: what the simulation repeats."""

    trial: DetectionTrial
    clocks: ClockSolution
    track: TowedTrack
    tag: int  #: number of the towed tag
    medium: MediumFit

    def truth(self, seed: int) -> ClockSolution:
        """Return the true clocks, positions and sound speed of the simulation: a draw from the stated covariance.

        The errors of an analysis of the simulation are then as large as those of the recording should be.
        """
        clocks = self.clocks
        change = np.random.default_rng([seed, 1]).multivariate_normal(
            np.zeros(len(clocks.covariance)), clocks.covariance, method="eigh"
        )
        drawn = replace(
            clocks,
            coefficients=clocks.coefficients.copy(),
            positions=clocks.positions.copy(),
            tag_positions=clocks.tag_positions.copy(),
            sound_speed=clocks.sound_speed + float(change[-1]),
        )
        add_changes(drawn, change)
        return drawn

    @property
    def begin(self) -> float:
        """Common time in s at which the simulation starts."""
        return float(np.floor(min(self.clocks.ping_time.min(), self.track.time.min()) - LEAD))

    @property
    def duration(self) -> float:
        """Length of the simulation in s."""
        return float(np.ceil(max(self.clocks.ping_time.max(), self.track.time.max()) + LEAD)) - self.begin

    def linear_clock(self, receiver: int, truth: ClockSolution) -> tuple[float, float]:
        """Return the offset in s at the start and the drift of a receiver's clock, as the simulation uses them.

        The clock shows seconds since the start of the recorded trial. The curvature is left out.
        """
        (offset, drift), _ = truth.offset_and_drift(receiver, truth.middle)
        return self.begin + offset + drift * (self.begin - truth.middle), float(drift)


def _transducer(recorded: TrialModel, clock: tuple[float, float], times: Floats) -> str:
    fit = recorded.medium
    lines = [
        f'      <transducer listen_low="68 kHz" listen_high="70 kHz" source_level="{SOURCE_LEVEL:g} dB" '
        f'threshold="{SOURCE_LEVEL - fit.margin:.4f} dB" pulse="{PULSE:g} s" bandwidth="1 kHz" recharge="0 s" '
        f'fluctuation="{FLUCTUATION:g} dB" drop_out="{fit.drop_out:.6f}" timing_noise="{1e6 * fit.timing_noise:.3f} us" '
        f'timing_resolution="{1e3 * RESOLUTION:g} ms" outlier="{fit.late_share:.6f}" '
        f'outlier_time="{1e3 * LATE_TIME:g} ms">',
        f'        <clock offset="{clock[0]:.9f} s" drift="{1e6 * clock[1]:.9f} ppm"/>',
    ]
    if len(times):
        shown = " ".join(f"{t:.6f}" for t in times)
        lines.append(f'        <pinger frequency="{FREQUENCY / 1e3:g} kHz">{shown}</pinger>')
    return "\n".join([*lines, "      </transducer>"])


def _body(name: str, place: Floats, transducer: str) -> str:
    east, north, depth = place
    return (
        f'    <buoy name={quoteattr(name)} model="mooring" position="{north:.4f} {east:.4f} {depth:.4f} m">\n'
        f"{transducer}\n    </buoy>"
    )


def configuration(recorded: TrialModel, seed: int) -> str:
    """Return the WaVeSim configuration of the trial as text. North and east are measured from the trial's origin."""
    trial, clocks, track = recorded.trial, recorded.clocks, recorded.track
    tags = np.zeros(clocks.groups.count, np.int64)
    tags[clocks.groups.ping] = trial.tag[clocks.groups.rows]
    bodies, truth = [], recorded.truth(seed)
    for n, name in enumerate(trial.names):
        transducer = _transducer(recorded, recorded.linear_clock(n, truth), np.zeros(0))
        bodies.append(_body(name, truth.positions[n], transducer))
    exact = (recorded.begin, 0.0)
    for tag, n in trial.fixed_tags.items():
        sent = np.sort(clocks.ping_time[tags == tag])
        bodies.append(_body(f"tag-{tag}", truth.tag_positions[n], _transducer(recorded, exact, sent)))
    start = np.array([*track.position[0], track.depth])
    bodies.append(_body("towed", start, _transducer(recorded, exact, np.sort(track.time))))
    alpha = recorded.medium.extra_loss
    return "\n".join(
        [
            '<?xml version="1.0" encoding="utf-8"?>',
            "<!-- A recorded acoustic trial, written by `wavesim data ssu1`. The positions, clocks and times of pings come from the recording.",
            "     The towed tag stays at its first position, unless `wavesim data ssu1` moves it along its track. -->",
            f'<wavesim name="recorded-trial" seed="{seed}">',
            f'  <time step="{STEP:g} s" duration="{recorded.duration:g} s" pace="fast"/>',
            f'  <world density="1000 kg/m3"><bed depth="{BED:g} m"/></world>',
            f'  <acoustics sound_speed="{truth.sound_speed:.4f} m/s" absorption="{alpha:.8f} dB/m" ambient_noise="0 dB"/>',
            "  <models>",
            MODEL,
            "  </models>",
            "  <fleet>",
            *bodies,
            "  </fleet>",
            "</wavesim>",
            "",
        ]
    )


def _row(simulation: Simulation, name: str) -> int:
    """Return the row of a body that the configuration contains."""
    row = simulation.row_of(name)
    assert row is not None
    return row


def simulate(recorded: TrialModel, seed: int) -> DetectionTrial:
    """Simulate the trial with WaVeSim's own medium, and return its detections in the form of the recorded ones.

    The towed tag is moved to its position before each of its pings. The receivers' positions in the result are those of
    the recorded survey, not the true ones, so an analysis knows as little as it knows of the recording.
    """
    from wavesim_sdk.tables import Outcome
    from wavesim_server import Simulation
    from wavesim_world.config import load_text

    trial, track = recorded.trial, recorded.track
    simulation = Simulation(load_text(configuration(recorded, seed)))
    simulation.enter_residents()
    towed = _row(simulation, "towed")
    rows = {_row(simulation, name): n for n, name in enumerate(trial.names)}
    tags = {_row(simulation, f"tag-{tag}"): tag for tag in trial.fixed_tags} | {towed: recorded.tag}
    found: list[Floats] = []

    def collect() -> None:
        receptions = simulation.take_signals()[1]
        heard = receptions[(receptions["outcome"] == Outcome.HEARD) & np.isin(receptions["receiver"], list(rows))]
        for r in heard:
            found.append(np.array([rows[int(r["receiver"])], tags[int(r["source"])], 1e-9 * int(r["reported_ns"])]))

    for k in np.argsort(track.time):
        ticks = math.floor((track.time[k] - recorded.begin) / STEP) - 1
        simulation.advance(max(ticks - simulation.tick, 0))
        collect()
        east, north = track.position[k]
        simulation.set_pose(towed, position=(north, east, track.depth))
    simulation.advance(round(recorded.duration / STEP) - simulation.tick)
    collect()
    table = np.array(found)
    table = table[np.argsort(table[:, 2], kind="stable")]
    return replace(
        trial,
        receiver=table[:, 0].astype(np.int64),
        tag=table[:, 1].astype(np.int64),
        time=table[:, 2],
        gps=_simulated_fixes(recorded, seed),
    )


def _simulated_fixes(recorded: TrialModel, seed: int) -> Floats:
    """Return GPS fixes of a boat ahead of the tag, at the recorded times."""
    random, times = np.random.default_rng(seed), recorded.trial.gps[:, 0]
    track = recorded.track
    fixes = [times]
    after = np.column_stack([np.interp(times + 10.0, track.time, track.position[:, k]) for k in (0, 1)])
    here = np.column_stack([np.interp(times, track.time, track.position[:, k]) for k in (0, 1)])
    ahead = after - here
    ahead *= TOW / np.maximum(np.linalg.norm(ahead, axis=1), 1e-9)[:, None]
    for k in (0, 1):
        fixes.append(here[:, k] + ahead[:, k] + random.normal(0.0, FIX_NOISE, len(times)))
    return np.column_stack(fixes)
