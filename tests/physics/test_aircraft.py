"""The aircraft: published trim, an independent NumPy twin, modes, glide, stall, turns, wind, and the end in the sea."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.optimize import brentq

from wavesim_sdk import frames
from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.guidance.control import LineOfSight, Waypoint
from wavesim_sdk.guidance.flight import FlightController, FlightState
from wavesim_server import Simulation
from wavesim_server.dynamics import block_rows as B
from wavesim_server.dynamics import effort, level_flight
from wavesim_server.dynamics.single_body import SingleBody
from wavesim_server.dynamics.sizes import SLOT_FIN, SLOTS
from wavesim_server.environment.weather import W_WIND
from wavesim_server.study import empty_sea
from wavesim_world.config import LoadedConfig, Model, library, load_text

Loader = Callable[..., LoadedConfig]
RHO, G = 1.2682, 9.81  #: density of the air in the book
CALM = f'<bed depth="500 m"/><wind air_density="{RHO} kg/m3"/>'


def without_drag() -> Model:
    """The aircraft of the book's course software, which has no drag at zero lift."""
    model = library()["aerosonde"]
    assert model.aerodynamics is not None
    return dataclasses.replace(model, aerodynamics=dataclasses.replace(model.aerodynamics, drag=0.0))


# -- an independent twin: the numbers and equations of the book ---------------------------------------------

M, J = 11.0, np.array([[0.8244, 0.0, -0.1204], [0.0, 1.135, 0.0], [-0.1204, 0.0, 1.759]])
S, SPAN, CHORD, E = 0.55, 2.8956, 0.18994, 0.9
DIAMETER = 20 * 0.0254


def coefficient_of_lift(alpha: float) -> float:
    """Of the wing without controls and rotation, with the book's blending of the stall."""
    m, a0 = 50.0, 0.47
    high, low = math.exp(-m * (alpha - a0)), math.exp(m * (alpha + a0))
    blend = (1 + high + low) / ((1 + high) * (1 + low))
    plate = 2 * math.copysign(1, alpha) * math.sin(alpha) ** 2 * math.cos(alpha)
    return (1 - blend) * (0.23 + 5.61 * alpha) + blend * plate


def twin_force(v: Floats, w: Floats, n: float, de: float, da: float, dr: float, cd0: float = 0.043) -> Floats:
    """Force and moment of the air for velocities through the air and angular rates (B), without gravity."""
    speed = float(np.linalg.norm(v))
    if speed == 0.0:
        return np.zeros(6)
    alpha, beta = math.atan2(v[2], v[0]), math.asin(v[1] / speed)
    m, a0 = 50.0, 0.47
    high, low = math.exp(-m * (alpha - a0)), math.exp(m * (alpha + a0))
    s = (1 + high + low) / ((1 + high) * (1 + low))
    p, q, r = w * np.array([SPAN, CHORD, SPAN]) / (2 * speed)
    linear, k = 0.23 + 5.61 * alpha, (1 - s) + s * math.cos(alpha)
    plate = 2 * math.copysign(1.0, alpha) * math.sin(alpha) ** 2
    cl = (1 - s) * linear + s * plate * math.cos(alpha) + 7.95 * q + k * 0.13 * de
    cd = cd0 + (1 - s) * linear**2 / (math.pi * E * SPAN**2 / S) + s * plate * math.sin(alpha) + k * 0.0135 * de
    cm = (1 - s) * (0.0135 - 2.74 * alpha) + s * -2.74 / 5.61 * plate - 38.21 * q - k * 0.99 * de
    cy = -0.98 * beta + k * (0.075 * da + 0.19 * dr)
    croll = -0.13 * beta - 0.51 * p + 0.25 * r + k * (0.17 * da + 0.0024 * dr)
    cn = 0.073 * beta + 0.069 * p - 0.095 * r + k * (-0.011 * da - 0.069 * dr)
    size = 0.5 * RHO * speed**2 * S
    along, down = math.cos(alpha), math.sin(alpha)
    force = size * np.array([cl * down - cd * along, cy, -cl * along - cd * down])
    moment = size * np.array([SPAN * croll, CHORD * cm, SPAN * cn])
    inflow = max(v[0], 0.0)
    thrust = RHO * DIAMETER**4 * (0.09357 * n**2 - 0.06044 * n * inflow / DIAMETER - 0.1079 * (inflow / DIAMETER) ** 2)
    torque = RHO * DIAMETER**5 * (0.00523 * n**2 + 0.00497 * n * inflow / DIAMETER - 0.01664 * (inflow / DIAMETER) ** 2)
    return np.array([force[0] + max(thrust, 0.0), *force[1:], moment[0] - max(torque, 0.0), *moment[1:]])


def twin_slope(x: Floats, wind: Floats, commands: tuple[float, float, float, float]) -> Floats:
    """Newton and Euler about the centre of mass."""
    rot, v, w = frames.rotation(x[3:7] / np.linalg.norm(x[3:7])), x[7:10], x[10:13]
    f = twin_force(v - rot.T @ wind, w, *commands)
    e0, e = x[3], x[4:7]
    return np.concatenate(
        [
            rot @ v,
            [-0.5 * e @ w],
            0.5 * (e0 * w + np.cross(e, w)),
            f[:3] / M + G * rot[2] - np.cross(w, v),
            np.linalg.solve(J, f[3:] - np.cross(w, J @ w)),
        ]
    )


def twin_flight(
    x: Floats, wind: Floats, commands: tuple[float, float, float, float], seconds: float, h: float
) -> Floats:
    for _ in range(round(seconds / h)):
        a = twin_slope(x, wind, commands)
        b = twin_slope(x + 0.5 * h * a, wind, commands)
        c = twin_slope(x + 0.5 * h * b, wind, commands)
        d = twin_slope(x + h * c, wind, commands)
        x = x + h / 6 * (a + 2 * b + 2 * c + d)
        x[3:7] /= np.linalg.norm(x[3:7])
    return x


# -- helpers ---------------------------------------------------------------------------------------------


def airborne(world: str = CALM, step: float = 0.004, model: Model | None = None) -> tuple[Simulation, int]:
    sim = empty_sea(1, step, world)
    return sim, sim.enter("uav", position=(0.0, 0.0, -1000.0), variant=model or library()["aerosonde"])


def flown(sim: Simulation, row: int, commands: tuple[float, float, float, float]) -> None:
    sim.command(row, dict(zip(("propeller", "elevator", "aileron", "rudder"), commands, strict=True)))
    sim.fleet.settle_actuators(row)


def trimmed(speed: float, world: str = CALM, height: float = 1000.0, step: str = "4 ms") -> Simulation:
    """An aircraft that starts in level flight."""
    vehicle = f'<vehicle name="uav" model="aerosonde" position="0 0 {-height} m" speed="{speed} m/s"/>'
    sim = Simulation(
        load_text(f'<wavesim><time step="{step}"/><world>{world}</world><fleet>{vehicle}</fleet></wavesim>')
    )
    sim.enter_residents()
    return sim


def velocity_W(sim: Simulation) -> Floats:
    b = sim.fleet.body(0)
    return np.asarray(frames.rotation(b[B.QW : B.QW + 4]) @ b[B.NU : B.NU + 3])


# -- against published numbers -----------------------------------------------------------------------------


def test_the_trim_of_the_book() -> None:
    """The course software of the book publishes, for 25 m/s: throttle 0.6768, elevator -0.1248, aileron 0.001836, rudder
    -0.0003026. It has no drag at zero lift. Its motor equation turns the throttle into a shaft speed."""
    sim, _ = airborne()
    trim = level_flight.find_trim(sim.fleet.vehicle_type(without_drag()), 25.0)
    shaft, elevator, aileron, rudder = trim.commands
    assert elevator == pytest.approx(-0.1248, rel=3e-3)
    assert aileron == pytest.approx(0.001836, rel=3e-3) and rudder == pytest.approx(-0.0003026, rel=0.05)
    constant, omega, u = 60 / (2 * math.pi * 145), 2 * math.pi * shaft, trim.velocity[0]
    torque = RHO * DIAMETER**5 * (0.00523 * shaft**2 + 0.00497 * shaft * u / DIAMETER - 0.01664 * (u / DIAMETER) ** 2)
    voltage = (torque / constant + 1.5) * 0.042 + constant * omega
    assert voltage / 44.4 == pytest.approx(0.6768, rel=2e-3)
    assert math.degrees(trim.alpha) == pytest.approx(2.87, abs=0.01)


def test_the_trim_flies_straight_and_level() -> None:
    for speed in (18.0, 25.0, 35.0):
        sim = trimmed(speed)
        sim.advance(2500)
        b = sim.fleet.body(0)
        assert b[B.PZ] == pytest.approx(-1000.0, abs=1e-4) and b[B.PX] == pytest.approx(10.0 * speed, abs=1e-3)
        assert np.abs(b[B.NU + 3 : B.NU + 6]).max() < 1e-6


def test_speeds_that_the_aircraft_cannot_hold(config: Loader) -> None:
    """One clear message each: too slow for the elevator, too fast for the propeller, a roll that `speed` would set."""
    for keys, message in (
        ('speed="15 m/s"', "'elevator' needs -0.5"),
        ('speed="40 m/s"', "'propeller' needs"),
        ('speed="25 m/s" attitude="5 0 0 deg"', "set only the heading"),
        ('position="0 0 3 m"', "would start 3 m under water"),
    ):
        place = "" if "position" in keys else 'position="0 0 -100 m" '
        with pytest.raises(ConfigError, match=message):
            Simulation(config(f'<fleet><vehicle name="uav" model="aerosonde" {place}{keys}/></fleet>'))


# -- against the twin --------------------------------------------------------------------------------------


def test_forces_of_the_twin_at_every_angle() -> None:
    """Forces agree to 1e-9 of the weight for flow from every direction, with rotation and controls."""
    sim, _ = airborne()
    body, rng = SingleBody(sim.fleet.vehicle_type(library()["aerosonde"])), np.random.default_rng(7)
    state, actuators = np.zeros((1, B.RIGID_ROWS)), np.zeros((1, SLOTS))
    state[0, B.PZ], state[0, B.QW] = -1000.0, 1.0
    for alpha in np.radians([*range(-180, 181, 15), 26.0, 27.5, -179.9]):
        beta, rates = rng.uniform(-0.6, 0.6), rng.uniform(-1.0, 1.0, 3)
        commands = (60.0, *rng.uniform(-0.4, 0.4, 3))
        v = 25.0 * np.array([math.cos(alpha) * math.cos(beta), math.sin(beta), math.sin(alpha) * math.cos(beta)])
        state[0, B.NU : B.NU + 6] = [*v, *rates]
        actuators[0, 0], actuators[0, SLOT_FIN : SLOT_FIN + 3] = commands[0], commands[1:]
        (out,) = body.efforts(state, actuators)
        found = out[effort.DRAG : effort.DRAG + 6] + out[effort.ACTUATORS : effort.ACTUATORS + 6]
        inertial = np.concatenate([M * np.cross(rates, v), np.cross(rates, J @ rates)])
        expected = twin_force(v, rates, *commands) - inertial
        assert np.isfinite(found).all() and np.abs(found - expected).max() < 1e-9 * M * G * 10, math.degrees(alpha)


def test_flight_of_the_twin_in_wind() -> None:
    """20 s with deflected controls in a wind of 8 m/s: position, attitude and velocity agree to 1e-9."""
    sim, row = airborne(f'<bed depth="500 m"/><wind air_density="{RHO} kg/m3" speed="8 m/s" direction="240 deg"/>')
    commands = (85.0, -0.15, 0.006, 0.01)
    flown(sim, row, commands)
    sim.set_pose(row, attitude=(0.3, -0.1, 1.0), velocity=(22.0, 1.5, 2.0, 0.2, -0.3, 0.1))
    sim.advance(1)
    b = sim.fleet.body(row)
    wind = np.array(b[B.V_AF_W : B.V_AF_W + 3])
    assert np.linalg.norm(wind) > 8.0, "stronger than at 10 m"
    start = np.array(b[: B.RIGID_ROWS])
    sim.advance(5000)
    end = twin_flight(start, wind, commands, 20.0, 0.004)
    assert np.abs(sim.fleet.body(row)[: B.RIGID_ROWS] - end).max() < 1e-9 * 1000.0


def test_the_order_of_convergence() -> None:
    ends = []
    for step in (0.02, 0.01, 0.005):
        sim, row = airborne(step=step)
        flown(sim, row, (85.0, -0.15, 0.006, 0.01))
        sim.set_pose(row, attitude=(0.3, -0.1, 1.0), velocity=(22.0, 1.5, 2.0, 0.2, -0.3, 0.1))
        sim.advance(round(4.0 / step))
        ends.append(np.array(sim.fleet.body(row)[: B.RIGID_ROWS]))
    first, second = (float(np.abs(ends[k] - ends[k + 1]).max()) for k in (0, 1))
    assert math.log2(first / second) == pytest.approx(4.0, abs=0.4)


# -- flight mechanics --------------------------------------------------------------------------------------


def longitudinal_modes() -> tuple[complex, complex]:
    """Short period and phugoid of the twin, linearised in u, w, q and pitch about level flight at 25 m/s."""
    sim, _ = airborne()
    trim = level_flight.find_trim(sim.fleet.vehicle_type(library()["aerosonde"]), 25.0)
    commands = tuple(trim.commands)

    def slope(y: Floats) -> Floats:
        q = frames.quaternion(trim.attitude[0], y[3], 0.0)
        x = np.array([0, 0, 0, *q, y[0], trim.velocity[1], y[1], 0, y[2], 0])
        d = twin_slope(x, np.zeros(3), commands)  # type: ignore[arg-type]
        return np.array([d[7], d[9], d[11], y[2]])

    at = np.array([trim.velocity[0], trim.velocity[2], 0.0, trim.attitude[1]])
    matrix = np.array([(slope(at + e) - slope(at - e)) / 2e-6 for e in 1e-6 * np.eye(4)]).T
    values = sorted((v for v in np.linalg.eigvals(matrix) if v.imag > 0), key=abs, reverse=True)
    return complex(values[0]), complex(values[1])


def test_phugoid_and_short_period() -> None:
    """The free response decays and oscillates with the eigenvalues; the phugoid is near Lanchester's pi sqrt(2) V/g."""
    short, phugoid = longitudinal_modes()
    period = 2 * math.pi / phugoid.imag
    assert period == pytest.approx(math.pi * math.sqrt(2) * 25.0 / G, rel=0.2), "Lanchester 1908, for constant energy"
    sim = trimmed(25.0)
    b = sim.fleet.body(0)
    b[B.NU] += 0.1
    surge = []
    for _ in range(round(2.2 * period / 0.04)):
        sim.advance(10)
        surge.append(b[B.NU] - sim_surge(sim))
    y = np.array(surge)
    peaks = [k for k in range(1, len(y) - 1) if y[k] > y[k - 1] and y[k] >= y[k + 1]]
    assert len(peaks) >= 2
    assert (peaks[1] - peaks[0]) * 0.04 == pytest.approx(period, rel=0.02)
    assert math.log(y[peaks[0]] / y[peaks[1]]) / (0.04 * (peaks[1] - peaks[0])) == pytest.approx(
        -phugoid.real, rel=0.05
    )
    sim = trimmed(25.0)
    b = sim.fleet.body(0)
    b[B.NU + 4] += 0.01
    rate, h = [], 0.004
    for _ in range(150):
        sim.advance(1)
        rate.append(float(b[B.NU + 4]))
    fit = np.linalg.lstsq(np.array([[rate[k + 1], rate[k]] for k in range(100)]), np.array(rate[2:102]), rcond=None)[0]
    found = np.log(np.roots([1.0, -fit[0], -fit[1]]).astype(complex)) / h
    assert max(found, key=lambda v: v.imag) == pytest.approx(short, rel=0.05)


def sim_surge(sim: Simulation) -> float:
    """Surge speed of level flight at 25 m/s."""
    return 25.0 * math.cos(0.04970030)


def test_glide_without_power() -> None:
    """The glide angle is that of the polar: tan(gamma) = CD/CL."""
    sim, row = airborne()
    elevator = -0.12
    flown(sim, row, (0.0, elevator, 0.0, 0.0))
    sim.set_pose(row, attitude=(0.0, -0.05, 0.0), velocity=(24.5, 0.0, 1.2, 0.0, 0.0, 0.0))
    sim.advance(round(240.0 / 0.004))
    v = velocity_W(sim)
    alpha = brentq(lambda a: 0.0135 - 2.74 * a - 0.99 * elevator, 0.0, 0.2)
    linear = 0.23 + 5.61 * alpha
    cl, cd = linear + 0.13 * elevator, 0.043 + linear**2 / (math.pi * E * SPAN**2 / S) + 0.0135 * elevator
    ratio = math.hypot(v[0], v[1]) / v[2]
    assert ratio == pytest.approx(cl / cd, rel=0.01) and 9.0 < ratio < 12.0


def test_stall() -> None:
    """The lift drops beyond the stall angle; an aircraft that falls stalled lowers its nose and flies again."""
    peak = max(coefficient_of_lift(a) for a in np.radians(np.arange(10, 27, 0.25)))
    assert coefficient_of_lift(math.radians(32)) < 0.35 * peak
    sim = trimmed(20.0)
    form = sim.fleet.vehicle_type(library()["aerosonde"])
    assert 13.0 < level_flight.stall_speed(form) < 16.0
    sim.set_pose(0, attitude=(0.0, 0.0, 0.0), velocity=(12.0, 0.0, 10.0, 0.0, 0.0, 0.0))
    b = sim.fleet.body(0)
    assert math.atan2(b[B.NU + 2], b[B.NU]) > 0.6, "stalled"
    before = velocity_W(sim)[2]
    sim.advance(50)
    assert velocity_W(sim)[2] > before + 0.5, "the lift does not carry the weight"
    flown(sim, 0, (80.0, 0.0, 0.0, 0.0))
    sim.advance(5000)
    assert abs(math.atan2(b[B.NU + 2], b[B.NU])) < 0.2 and np.isfinite(b).all()


class Pilot:
    """The controller of the SDK on the true state."""

    def __init__(self, sim: Simulation) -> None:
        self.sim, self.flight = sim, FlightController()

    def state(self) -> FlightState:
        b = self.sim.fleet.body(0)
        rot = frames.rotation(b[B.QW : B.QW + 4])
        over_ground = rot @ b[B.NU : B.NU + 3]
        through = b[B.NU : B.NU + 3] - rot.T @ b[B.V_AF_W : B.V_AF_W + 3]
        roll, pitch, _ = frames.euler(b[B.QW : B.QW + 4])
        course = math.atan2(over_ground[1], over_ground[0])
        speed = float(np.linalg.norm(through))
        return FlightState(speed, -b[B.PZ], -over_ground[2], course, roll, pitch, *b[B.NU + 3 : B.NU + 6])

    def step(self, course: float, height: float, speed: float) -> FlightState:
        now = self.state()
        c = self.flight.commands(now, course, height, speed, 0.04)
        self.sim.command(0, {"propeller": c.shaft, "elevator": c.elevator, "aileron": c.aileron, "rudder": c.rudder})
        self.sim.advance(10)
        return now


def test_steady_turn() -> None:
    """A coordinated turn at the bank limit of 35 deg: the rate is g tan(roll)/V, without height loss or sideslip."""
    sim = trimmed(25.0)
    pilot, now = Pilot(sim), None
    for _ in range(800):
        now = pilot.step(pilot.state().course + 1.5, 1000.0, 25.0)
    turned, course = 0.0, pilot.state().course
    for _ in range(250):
        now = pilot.step(pilot.state().course + 1.5, 1000.0, 25.0)
        turned, course = turned + math.remainder(pilot.state().course - course, 2 * math.pi), pilot.state().course
    assert now is not None
    rate = turned / 10.0
    assert math.degrees(now.roll) == pytest.approx(35.0, abs=3.0)
    assert rate == pytest.approx(G * math.tan(now.roll) / now.airspeed, rel=0.02)
    assert now.height == pytest.approx(1000.0, abs=1.0) and now.airspeed == pytest.approx(25.0, abs=0.2)
    b = sim.fleet.body(0)
    assert abs(math.asin(b[B.NU + 1] / now.airspeed)) < math.radians(1.5)


def test_ten_minutes_in_wind_with_gusts() -> None:
    """A square of 1.5 km at three heights, in a mean wind of 8 m/s at 10 m with gusts."""
    gusts = 'speed="8 m/s" direction="240 deg" gusts="40" slow_deviation="1.5 m/s"'
    sim = trimmed(25.0, f'<bed depth="500 m"/><wind {gusts}/>', 100.0)
    corners = [(1500, 0, 100, 25), (1500, 1500, 150, 28), (0, 1500, 80, 22), (0, 0, 100, 25)]
    los = LineOfSight([Waypoint(n, e, -h, v) for n, e, h, v in corners], (0.0, 0.0), 150.0, 80.0)
    pilot, worst, winds, reached = Pilot(sim), np.zeros(3), [], set()
    since, last = 0.0, 0
    for _ in range(15_000):
        b = sim.fleet.body(0)
        course, number = los.course(b[0], b[1]), los.target_number
        since, last = (since, last) if number == last else (sim.time_s, number)
        reached.add(number)
        now = pilot.step(course, -los.target.depth, los.target.speed)
        winds.append(float(sim.weather_model.weather.state[W_WIND]))
        if sim.time_s - since > 30.0:  # on the leg
            worst = np.maximum(
                worst, np.abs([now.height + los.target.depth, now.airspeed - los.target.speed, los.cross_track])
            )
        assert 13.0 < now.airspeed < 40.0 and now.height > 60.0
    assert sim.time_s == pytest.approx(600.0) and reached == {1, 2, 3, 4}
    assert np.std(winds) > 0.5, "gusts"
    assert worst[0] < 5.0 and worst[1] < 3.0 and worst[2] < 15.0, worst


# -- the sea -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["1 ms", "4 ms", "20 ms"])
@pytest.mark.parametrize(("pitch", "speed"), [(-90.0, 48.0), (-30.0, 40.0), (-5.0, 25.0), (90.0, 30.0)])
def test_a_crash_into_the_sea(step: str, pitch: float, speed: float) -> None:
    """The aircraft stops within a few metres, comes up and floats: no numbers without meaning, no flight under water."""
    waves = '<waves height="0.5 m" peak="1.5 rad/s"/>'
    sim = empty_sea(1, float(step.split()[0]) / 1000, f'<bed depth="500 m"/>{waves}')
    row = sim.enter("uav", position=(0.0, 0.0, -5.0), variant=library()["aerosonde"])
    flown(sim, row, (100.0, 0.0, 0.0, 0.0))
    sim.set_pose(row, attitude=(0.2, math.radians(pitch), 0.0), velocity=(speed, 0.0, 2.0, 0.1, 0.1, 0.0))
    b, deepest, ticks = sim.fleet.body(row), 0.0, round(0.02 / sim.step_ns * 1e9)
    start, wet_at = sim.time_s, math.inf
    while sim.time_s - start < 60.0:
        sim.advance(ticks)
        deepest = max(deepest, float(b[B.PZ]))
        if b[B.PZ] > 0.2 and wet_at == math.inf:
            wet_at = sim.time_s
        if sim.time_s - wet_at > 2.0:
            assert np.abs(b[B.NU : B.NU + 3]).max() < 3.0, "it does not fly on"
    assert np.isfinite(b[: B.RIGID_ROWS]).all() and deepest < 3.0
    assert abs(b[B.PZ]) < 1.0, "it floats; the propeller does not drive it"
    assert float(np.hypot(b[0], b[1])) < 120.0


def test_the_wreck_stays_at_rest_in_calm_water() -> None:
    sim, row = airborne()
    sim.set_pose(row, position=(0.0, 0.0, -3.0), attitude=(0.0, -0.1, 0.0), velocity=(25.0, 0.0, 1.0, 0.0, 0.0, 0.0))
    flown(sim, row, (100.0, -0.1, 0.0, 0.0))
    sim.advance(30_000)
    b = sim.fleet.body(row)
    assert np.abs(b[B.NU : B.NU + 6]).max() < 1e-3 and -0.15 < b[B.PZ] < 0.15
    thrust = sim.efforts()[0]["actuators"] if hasattr(sim, "efforts") else np.zeros(6)
    assert np.abs(thrust).max() < 1e-6


def test_models_of_aircraft_that_are_refused(config: Loader) -> None:
    """A user's mistake gets one message that names the part."""
    text = (library()["aerosonde"].place.rpartition(":")[0], "aerosonde")
    from pathlib import Path

    source = Path(text[0]).read_text().replace('name="aerosonde"', 'name="own"').partition("?>")[2]
    world = '<fleet><vehicle name="uav" model="own" position="0 0 -50 m"/></fleet>'
    assert Simulation(config(source + world))
    changes: tuple[tuple[str, str, str], ...] = (
        ('fin="rudder"', 'fin="ruder"', "no fin 'ruder'; did you mean 'rudder'"),
        ('type="aircraft"', 'type="surface"', "require each other"),
        ('law="shaft"', 'law="force"', 'law="shaft"'),
        ('lift="0.23 5.61 7.95"', 'lift="0.23 0 7.95"', "slope of `lift`"),
        ('valid_speed="40 m/s"', "", "needs `valid_speed`"),
        (
            "<linear-drag",
            '<wind-drag frontal="1 m2" lateral="1 m2" length="1 m" height="1 m"/><linear-drag',
            "cannot have <wind-drag>",
        ),
    )
    for old, new, message in changes:
        assert old in source
        with pytest.raises(ConfigError, match=message):
            Simulation(config(source.replace(old, new) + world))
    with pytest.raises(ConfigError, match="needs gravity"):
        Simulation(config('<world gravity="0 m/s2"/>' + source + world))


def test_only_aircraft_fly(config: Loader) -> None:
    """Other vehicles start at most 2 m above the water, and have no waypoints in the air."""
    for vehicle, message in (
        ('<vehicle name="a" model="lauv" position="0 0 -50 m"/>', "above the water"),
        (
            '<vehicle name="a" model="lauv" position="0 0 5 m" client="optional"><waypoint north="9 m" east="0 m" depth="-5 m"/></vehicle>',
            "only aircraft have negative depths",
        ),
    ):
        with pytest.raises(ConfigError, match=message):
            config(f"<fleet>{vehicle}</fleet>")


def test_a_step_that_is_too_long_for_the_aircraft(config: Loader) -> None:
    with pytest.raises(ConfigError, match="'aerosonde' is unstable with a time step of 100 ms"):
        Simulation(
            config('<time step="100 ms"/><fleet><vehicle name="uav" model="aerosonde" position="0 0 -50 m"/></fleet>')
        )
