"""Vehicles of Fossen's simulators are read from their source code: an imported model accelerates like the source code,
which is run here only because the test wrote it.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wavesim_sdk.errors import ConfigError
from wavesim_server.importers import read
from wavesim_world.config.build import read_models

TUG = '''
import math
import numpy as np
from somewhere.lib.gnc import sat


class tug:
    """A tug given by matrices, with two propellers and a tunnel thruster."""

    def __init__(self, controlSystem="stepInput", r=0.0, V_current=0.0):
        if controlSystem == "autopilot":
            self.text = "autopilot " + str(r)
        else:
            self.text = "steps"
        L = 20.0
        m = 9.0e4
        self.T_n = 2.0
        self.n_max = np.array([120, 120, 300], float)
        self.u_actual = np.zeros(3)
        MRB = np.diag([m, m, m, m * (0.3 * 7) ** 2, m * (0.25 * L) ** 2, m * (0.25 * L) ** 2])
        MRB[1][5] = MRB[5][1] = -1.2 * m
        MA = np.diag([0.1 * m, 0.8 * m, 0.9 * m, 1.0e5, 1.5e6, 1.2e6])
        for k in range(2):
            MA[4 - k, 4 - k] += 1.0e5
        self.D = np.diag([3.0e3, 2.0e4, 1.2e5, 1.5e5, 2.0e6, 6.0e5])
        self.G = np.diag([0.0, 0.0, 9.0e5, 8.0e5, 2.0e7, 0.0])
        self.Minv = np.linalg.inv(MRB + MA)
        K = np.diag([9.0, 9.0, 0.5])
        T = np.array([[1, 1, 0], [0, 0, 1], [-3, 3, 8]], float)
        self.B = T @ K
        EXTRA

    def dynamics(self, eta, nu, u_actual, u_control, sampleTime):
        n = u_actual
        square = np.zeros(3)
        for i in range(0, 3):
            n[i] = sat(n[i], -self.n_max[i], self.n_max[i])
            square[i] = abs(n[i]) * n[i]
        tau3 = np.matmul(self.B, square)
        tau = np.array([tau3[0], tau3[1], 0, 0, 0, tau3[2]], float)
        nu_dot = np.matmul(self.Minv, tau - np.matmul(self.D, nu) - np.matmul(self.G, eta)TERM)
        nu = nu + sampleTime * nu_dot
        return nu, u_actual
'''
SIZE = {"size": "20 7 4"}


def source(tmp_path: Path, text: str, name: str = "tug.py") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def tug(extra: str = "pass", term: str = "") -> str:
    return TUG.replace("EXTRA", extra).replace("TERM", term)


def test_a_python_vehicle_is_imported_as_it_computes(tmp_path: Path) -> None:
    """The coefficients, and the comparison of all accelerations with the source code."""
    found = read(source(tmp_path, tug()), None, SIZE, None)
    assert any("accelerations equal those of the source code" in note for note in found.notes)
    (tmp_path / "m.xml").write_text(found.xml)
    model = read_models(tmp_path / "m.xml")["tug"]
    assert [t.position for t in model.thruster] == [(0.0, 3.0, 0.0), (0.0, -3.0, 0.0), (8.0, 0.0, 0.0)]
    assert model.thruster[2].coefficients[1] == pytest.approx(0.5 * 3600.0)
    assert model.thruster[0].maximum == 2.0


@pytest.mark.parametrize(
    ("extra", "term", "fragments"),
    [
        ("pass", " - 500.0 * np.abs(nu) * nu", ["accelerations differ by up to", "surge", "yaw"]),
        ("self.G = self.G * load_tables()", "", ["line 31", "load_tables()", "--set value."]),
        ("while True: pass", "", ["line 31", "while True"]),
        ("self.G = np.zeros((10**6, 10**6))", "", ["too large"]),
        ("for k in range(10**9): pass", "", ["range(10 ** 9)"]),
    ],
)
def test_what_is_not_understood_is_named(tmp_path: Path, extra: str, term: str, fragments: list[str]) -> None:
    """A term without a counterpart shows in the accelerations; an unknown value is named with its line."""
    with pytest.raises(ConfigError) as error:
        read(source(tmp_path, tug(extra, term)), None, SIZE, None)
    for fragment in fragments:
        assert fragment in str(error.value)


def test_the_source_code_is_never_run(tmp_path: Path) -> None:
    """Calls that are not in the table of functions have no effect."""
    mark = tmp_path / "mark"
    found = read(source(tmp_path, tug(f"open({str(mark)!r}, 'w').write('run')")), None, SIZE, None)
    assert found.xml and not mark.exists()


BARGE = """
function [xdot, U] = barge(x, ui, V_c)
% a barge with two propellers, [u v w p q r x y z roll pitch yaw]
if nargin == 0, x = zeros(12,1); end
if (length(x) ~= 12), error('x must have 12 elements'); end
if (length(ui) ~= 2), error('two propellers'); end
g = 9.81; rho = 1000;   % water
nu = x(1:6); eta = x(7:12);
m = 400; rg = [0.1 0 -0.05]';
Ig = m * diag([0.4^2, 0.9^2, 0.9^2]) - m * Smtrx(rg)^2 * 0;
MRB = Hmtrx(rg)' * [ m*eye(3)   zeros(3,3)
                     zeros(3,3)  Ig ] * Hmtrx(rg);
MA = -diag([-0.1*m, -0.9*m, ...
   -1.1*m, -20 -80 -70]);
M = MRB + MA;
C = m2c(MRB, nu) + m2c(MA, nu);
G = diag([0 0 2.2e4 3.0e3 9.0e3 0]);
k_pos = 0.02; k_neg = 0.015;
l1 = -0.8; l2 = 0.8;
n_max = 100; n_min = -90;
n = satlim(ui, n_min, n_max);
Thrust = zeros(2,1);
for i = 1:2
    if n(i) > 0
        Thrust(i) = k_pos * n(i) * abs(n(i));
    else
        Thrust(i) = k_neg * n(i) * abs(n(i));
    end
end
tau = [Thrust(1)+Thrust(2) 0 0 0 0 -l1*Thrust(1)-l2*Thrust(2)]';
tau_damp = -[40*nu(1) 300*nu(2) 2000*nu(3) 200*nu(4) 900*nu(5) 250*(1+2*abs(nu(6)))*nu(6)]';
J = eulerang(eta(4), eta(5), eta(6));
xdot = [ M \\ (tau + tau_damp - C * nu - G * eta)
         J * nu ];
end
"""


def test_a_matlab_vehicle_is_imported_as_it_computes(tmp_path: Path) -> None:
    """MATLAB's syntax: transposes, brackets over several lines, ranges, elements, continued lines, divisions."""
    found = read(source(tmp_path, BARGE, "barge.m"), None, {"size": "4 1.6 0.8"}, None)
    assert any("accelerations equal those of the source code" in note for note in found.notes)
    (tmp_path / "m.xml").write_text(found.xml)
    model = read_models(tmp_path / "m.xml")["barge"]
    assert model.quadratic_drag is not None and model.added_mass is not None
    assert model.thruster[0].coefficients[1] == pytest.approx(0.02 * (2.0 * math.pi) ** 2)
    assert model.thruster[0].maximum == pytest.approx(100.0 / (2.0 * math.pi))


def test_a_matlab_line_that_is_not_understood_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"line 10.*magic\(3.*--set value.Ig="):
        read(
            source(tmp_path, BARGE.replace("m * Smtrx(rg)^2 * 0", "magic(3)"), "barge.m"), None, {"size": "4 1 1"}, None
        )
    with pytest.raises(ConfigError, match="while"):
        read(source(tmp_path, BARGE.replace("for i = 1:2", "while i < 2"), "barge.m"), None, {"size": "4 1 1"}, None)


def torpedo(p: dict[str, Any], f: dict[str, Any], nu: Any, fins: Any, rpm: float) -> Any:
    """Accelerations of HoloOcean's torpedo in a level attitude, written term by term for this test."""
    m, rho, a, b = p["mass"], p["rho"], p["length"] / 2, p["diam"] / 2
    zg = p["r_bg"][2]
    ix, iy = 0.4 * m * b**2, 0.2 * m * (a**2 + b**2)
    e = math.sqrt(1 - (b / a) ** 2)
    t = math.atanh(e)
    alpha, beta = 2 * (1 - e**2) / e**3 * (t - e), 1 / e**2 - (1 - e**2) / e**3 * t
    turn = e**4 * (beta - alpha) / ((2 - e**2) * (2 * e**2 - (2 - e**2) * (beta - alpha)))
    added = np.array([m * alpha / (2 - alpha), *[m * beta / (2 - beta)] * 2, p["r44"] * ix, turn * iy, turn * iy])
    rigid = np.diag([m, m, m, ix + m * zg**2, iy + m * zg**2, iy])
    rigid[0, 4] = rigid[4, 0] = m * zg
    rigid[1, 3] = rigid[3, 1] = -m * zg
    whole = rigid + np.diag(added)

    def turning(mass: Any) -> Any:
        s = lambda v: np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])  # noqa: E731
        h = mass @ nu
        return np.block([[np.zeros((3, 3)), -s(h[:3])], [-s(h[:3]), -s(h[3:])]])

    ca = turning(np.diag(added))
    for i, j in ((4, 0), (0, 4), (4, 2), (2, 4), (5, 0), (0, 5), (5, 1), (1, 5)):
        ca[i, j] = 0.0
    speed, attack = math.sqrt(nu[0] ** 2 + nu[1] ** 2 + nu[2] ** 2), math.atan2(nu[2], nu[0])
    damp = np.diag(whole) / np.array([p["T_surge"], p["T_sway"], p["T_sway"], 1, 1, p["T_yaw"]])
    damp[:2] *= math.exp(-3 * speed)
    weight = m * 9.81
    damp[3] = 2 * p["zeta_roll"] * math.sqrt(weight * zg * whole[3, 3])
    damp[4] = 2 * p["zeta_pitch"] * math.sqrt(weight * zg * whole[4, 4])
    area = p["area_fraction"] * 2 * a * 2 * b
    ratio = (2 * b) ** 2 / area
    lift = math.pi * ratio / (1 + math.sqrt(1 + ratio**2 / 4)) * attack
    drag = p["Cd"] * math.pi * b**2 / area + lift**2 / (math.pi * p["e"] * ratio)
    q = 0.5 * rho * speed**2 * area
    tau = np.zeros(6)
    tau[0] += q * (math.sin(attack) * lift - math.cos(attack) * drag)
    tau[2] -= q * (math.cos(attack) * lift + math.sin(attack) * drag)
    x = (np.arange(40_000) + 0.5) / 40_000 * 2 * a - a
    flow = nu[1] + x * nu[5]
    strip = (
        0.5 * 1026 * 2 * b * np.interp(0.5, [0.4933, 0.5585], [1.2108, 1.0836]) * np.abs(flow) * flow * 2 * a / 40_000
    )
    tau[1] -= strip.sum()
    tau[5] -= (x * strip).sum()
    n, d = rpm / 60, f["D_prop"]
    advance = (1 - f["w"]) * speed / (n * d)
    kt = f["KT_0"] + (f["KT_max"] - f["KT_0"]) / f["Ja_max"] * advance
    kq = f["KQ_0"] + (f["KQ_max"] - f["KQ_0"]) / f["Ja_max"] * advance
    tau[0] += (1 - f["t_prop"]) * rho * d**4 * kt * n * n
    tau[3] += 0.1 * rho * d**5 * kq * n * n
    for k, angle in enumerate(fins):
        at = 2 * math.pi * k / 4
        inflow = nu[0] ** 2 + (nu[1] * math.sin(at)) ** 2 + (nu[2] * math.cos(at)) ** 2
        size = 0.5 * rho * f["fin_area"] * f["CL_delta"] * angle * inflow
        force = np.array([0.0, math.sin(at) * size, -math.cos(at) * size])
        place = np.array([-a, f["fin_center"] * math.cos(at), f["fin_center"] * math.sin(at)])
        tau += np.concatenate([force, np.cross(place, force)])
    return np.linalg.solve(whole, tau - (turning(rigid) + ca) @ nu - damp * nu)


def test_holooceans_torpedo_term_by_term(tmp_path: Path) -> None:
    """An agent with its own mass and fins; the other values are HoloOcean's documented defaults, and the sensors have
    their noise, in axes forward, starboard, down."""
    from wavesim_server.importers import holoocean
    from wavesim_server.importers.comparison import accelerations

    text = """{"agents": [{"agent_name": "a", "agent_type": "TorpedoAUV", "fossen_model": "Torpedo", "control_scheme": 1,
      "dynamics": {"mass": 27.5, "Cd": 0.5}, "actuator": {"fin_area": 0.008},
      "sensors": [{"sensor_type": "DVLSensor", "socket": "DVLSocket", "Hz": 5, "configuration": {"VelSigma": 0.02}},
                  {"sensor_type": "IMUSensor", "rotation": [10, 20, 30], "configuration": {"AccelSigma": [0.1, 0.2, 0.3]}}]},
      {"agent_name": "b", "agent_type": "HoveringAUV", "sensors": []}]}"""
    path = source(tmp_path, text, "scenario.json")
    with pytest.raises(ConfigError, match="--section: a, b"):
        read(path, None, {}, None)
    with pytest.raises(ConfigError, match="HoveringAUV"):
        read(path, "b", {}, None)
    xml = read(path, "a", {}, None).xml
    assert 'position="-0.3 0 0.07 m"' in xml and 'attitude="10 -20 -30 deg"' in xml
    assert 'acceleration_covariance="0.01 0 0 0 0.04 0 0 0 0.09"' in xml
    import json

    draft = holoocean.read(path, json.loads(text), "a", {}, None)
    p, f = holoocean.DYNAMICS | {"mass": 27.5, "Cd": 0.5}, holoocean.ACTUATOR | {"fin_area": 0.008}
    random = np.random.default_rng(3)
    motion = np.zeros((6, 12))
    motion[:, 6:] = random.uniform(-1.0, 1.0, (6, 6)) * [1.5, 0.5, 0.5, 0.3, 0.3, 0.3]
    share = random.uniform(0.1, 0.6, (6, 5))
    ours, values = accelerations(draft, 'density="1026 kg/m3" gravity="9.81 m/s2"', motion, share)
    for row, (nu, v) in enumerate(zip(motion[:, 6:], values, strict=True)):
        theirs = torpedo(p, f, nu, v[1:], 60.0 * v[0])
        assert ours[row] == pytest.approx(theirs, rel=1e-4, abs=1e-4)
