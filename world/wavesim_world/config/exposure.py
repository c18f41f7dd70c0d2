"""Declarations of the response of a model to wind and waves: wind drag, force operators and radiated waves.

This module is part of the configuration model. A configuration file may use any supported unit; the objects contain SI
values and radians.
"""

from __future__ import annotations

from dataclasses import dataclass

from wavesim_world.config.schema import Vector, children, choice, key, text


@dataclass(frozen=True)
class FluidMemory:
    """Fluid memory: a radiation force -mu on one degree of freedom due to motion in the same or another degree of
    freedom.

    The force mu of the fluid memory is the output of a linear system of order n: mu = c0 x0 + c1 x1 + ... The states
    follow x0' = x1, x1' = x2, ..., and finally x' = nu - a0 x0 - a1 x1 - ... Its transfer function is (c0 + c1 s +
    ...)/(a0 + a1 s + ... + s^n). A model may have up to 24 systems with 64 states in total.
    """

    source: str = choice("Velocity component of the body that causes the memory force.", ("u", "v", "w", "p", "q", "r"))
    force: str = choice(
        "Component of the force or moment that the fluid memory causes.", ("X", "Y", "Z", "K", "M", "N")
    )
    a: Vector = key(
        "Denominator coefficients a0 a1 ... of the memory system. Their number is the order of the system.", count=0
    )
    c: Vector = key("Numerator coefficients c0 c1 ... of the memory system, as many as in `a`.", count=0)


@dataclass(frozen=True)
class Oscillator:
    """One oscillator of the fluid-memory model in <radiation>."""

    frequency: float = key("Natural frequency w of the oscillator.", "angular rate", low=1e-6)
    damping: Vector = key(
        "Row of the damping matrix R for this oscillator, 1/s, with one value for each oscillator.", count=0
    )
    coupling: Vector = key(
        "Row b of the coupling matrix B for this oscillator, with six values for X Y Z K M N. The units are "
        "sqrt(kg)/s for forces and sqrt(kg) m/s for moments.",
        count=6,
    )


@dataclass(frozen=True)
class Radiation:
    """Radiated waves, modelled by up to 16 oscillators. The motion of the hull through the water drives the
    oscillators.

    The equations are q'' + R q' + diag(w^2) q = B nu_r and tau = -B^T q'. The transfer function is therefore K(s) = s
    B^T (s^2 + R s + diag(w^2))^-1 B. If R is symmetric without negative eigenvalues, the oscillators cannot supply
    energy, whatever the motion. <added-mass> must be the added mass at infinite frequency. `wavesim vehicles import`
    fits the oscillators to the tables of a panel code. Each oscillator uses two of the 64 states of fluid memory.
    """

    oscillator: tuple[Oscillator, ...] = children(Oscillator, "One oscillator of the fluid-memory model.", least=1)


@dataclass(frozen=True)
class WindDrag:
    """Wind forces on the part of the vehicle that is above the water.

    law=blendermann: the law of Blendermann (1994), with the longitudinal drag coefficients CD_l for wind from ahead and
    from astern, CD_t, delta (cross-force) and kappa. law=simple: X = -c_x cos g, Y = c_y sin g, N = c_n sin 2g, where g
    is the apparent wind angle. X, Y and N are multiplied by the dynamic pressure and an area: X by the frontal area, Y
    and N by the lateral area. N is also multiplied by the length.
    """

    frontal: float = key("Frontal projected area of the vehicle above the water.", "area", low=0.0)
    lateral: float = key("Lateral projected area of the vehicle above the water.", "area", low=0.0)
    length: float = key("Overall length of the vehicle, used for the yaw moment of the wind.", "length", low=1e-3)
    law: str = choice(
        "Law and coefficients of the wind forces: Blendermann (1994), or simple functions of the wind angle.",
        ("blendermann", "simple"),
        "blendermann",
    )
    drag: Vector = key(
        "Wind coefficients: CD_l for wind from ahead, CD_l for wind from astern, CD_t, delta and kappa "
        "(law=blendermann).",
        default=(0.55, 0.6, 0.9, 0.6, 1.1),
        count=5,
    )
    simple: Vector = key("Wind coefficients c_x, c_y and c_n (law=simple).", default=(0.7, 0.85, 0.125), count=3)
    height: float = key(
        "Height s_H of the lateral area's centroid above the water. The wind speed at this height determines "
        "the forces.",
        "length",
        low=0.01,
    )
    forward: float = key(
        "Distance s_L from the body's origin to the centroid of the lateral area, positive forward.", "length", 0.0
    )


@dataclass(frozen=True)
class WaveFilter:
    """First-order wave forces: white noise, filtered by K s/(s^2 + 2 l w_e s + w_e^2) for each degree of freedom.

    Here w_e is the encounter frequency of the spectral peak. The filters represent all effects of the waves, so the
    hull floats on the mean water level. Use them for hulls that have neither the buoyancy of a primitive shape nor
    <rao>.
    """

    gain: Vector = key(
        "Gains of the wave filters for the forces X Y Z and the moments K M N, at a significant wave height of 1 m.",
        count=6,
    )
    damping: float = key("Relative damping l of the wave filters.", default=0.1, low=1e-3, high=2.0)


@dataclass(frozen=True)
class Rao:
    """Wave forces from response amplitude operators in a file: MATLAB (as in the MSS toolbox) or CSV.

    The operators represent all effects of the waves, so the hull floats on the mean water level. If the file contains
    mean drift forces, they are applied by Newman's approximation.

    A CSV file has a header and one line for each heading and frequency. `heading_deg` runs in equal steps from 0 (a
    following sea) to 360, or to 180 for a hull that is symmetric about its centre plane. `frequency` is in rad/s. The
    columns `surge` to `yaw` are in N and N m, or in m and rad, per m of wave amplitude. The columns `surge_phase_deg`
    to `yaw_phase_deg` are the phases, as defined in MSS. `drift_surge`, `drift_sway` and `drift_yaw` (N, N m per m2)
    are optional, but a file must have all three or none.
    """

    file: str = text("Path of the file with the operators, relative to the file that contains this key.")
    group: str = text("Name of the structure in a MATLAB file with RAOs.", "vessel")
    speed: int = key(
        "Index (from 0) of the vessel speed in the tables of a MATLAB file with RAOs.", default=0, low=0, integer=True
    )
    use: str = choice(
        "Operators to read from the file. force: the force operators. motion: the motion operators, converted to forces "
        "that cause the same motion of this model at rest. The conversion uses the model's mass, added mass, linear "
        "drag, memory and <restoring>, which is required.",
        ("force", "motion"),
        "force",
    )
