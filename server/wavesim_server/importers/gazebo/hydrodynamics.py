"""Forces of the water on the hull: the plugins Hydrodynamics of gz-sim and LRAUV, SimpleHydrodynamics of VRX, and the
Fossen model of UUV Simulator.

Each function returns the forces in the axes of the link (forward-left-up) about the origin of the link.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import ConfigError
from wavesim_server.importers.gazebo.elements import Element, describe
from wavesim_server.importers.gazebo.frames import FLIP, block
from wavesim_server.importers.gazebo.robot import Robot, RobotLink
from wavesim_server.importers.model_draft import SETTINGS, ModelDraft, format_numbers

FORCES, RATES = "xyzkmn", "UVWPQR"
#: added mass that the plugins of LRAUV and VRX assume for a derivative that is absent
ADDED_DEFAULT = (5.0, 5.0, 0.1, 0.1, 0.1, 1.0)
MOST_PRODUCTS = 48  #: maximum number of <derivative> elements of a model


@dataclass
class WaterForces:
    """Forces of the water. ``added`` is the added mass, ``linear`` and ``quadratic`` are drag matrices with a positive
    sign, each (6, 6). ``products`` maps (force, factor, factor, whether the last is an absolute value) to a
    coefficient. ``circulating`` is the added mass from which the simulator computes its Coriolis forces.
    """

    link: RobotLink
    added: Floats
    linear: Floats
    quadratic: Floats
    circulating: Floats
    products: dict[tuple[int, int, int, bool], float] = field(default_factory=dict)


def find(draft: ModelDraft, robot: Robot) -> list[WaterForces]:
    """Return the forces of each plugin for hydrodynamics."""
    found = []
    for plugin in robot.plugins:
        name, file = plugin.get("name", ""), plugin.get("filename", "").lower()
        if name.endswith("SimpleHydrodynamics"):
            found.append(_vrx(robot, plugin))
        elif name == "tethys::HydrodynamicsPlugin":
            found.append(_lrauv(robot, plugin))
        elif "waves" in file:
            continue  # forces in a wave field of another package
        elif name.endswith("::Hydrodynamics") or "hydrodynamics-system" in file:
            found.append(_gz(draft, robot, plugin))
        elif "uuv_underwater_object" in file:
            found += _uuv(robot, plugin)
    return found


def _link(robot: Robot, plugin: Element, tag: str = "link_name") -> RobotLink:
    name = robot.use.text(plugin, tag)
    link = robot.find_link(name)
    if link is None:
        raise robot.use.fail(plugin, f"there is no link '{name}'")
    return link


def _diagonal(robot: Robot, plugin: Element, pattern: str, default: tuple[float, ...]) -> Floats:
    tags = (pattern.format(f=f, v=v) for f, v in zip(FORCES, RATES, strict=True))
    return np.array([robot.use.number(plugin, t, d) for t, d in zip(tags, default, strict=True)])


def _lrauv(robot: Robot, plugin: Element) -> WaterForces:
    """Read the coefficients of LRAUV's own plugin, in which xUU stands for u abs(u)."""
    use, link = robot.use, _link(robot, plugin)
    use.mark(plugin)
    use.text(plugin, "namespace")
    added, linear, quadratic = (
        np.diag(-_diagonal(robot, plugin, pattern, default))
        for pattern, default in (("{f}Dot{v}", ADDED_DEFAULT), ("{f}{v}", (20.0,) * 6), ("{f}{v}{v}", (0.0,) * 6))
    )
    if use.flag(plugin, "enable_coriolis", True):
        robot.lost.append(f"{describe(plugin)} / enable_coriolis: this plugin has its own Coriolis matrix")
    return WaterForces(link, added, linear, quadratic, np.zeros((6, 6)))


def _gz(draft: ModelDraft, robot: Robot, plugin: Element) -> WaterForces:
    """Read the coefficients of gz-sim, where a negative derivative damps. xUU multiplies the square of u, xUabsU multiplies u abs(u)."""
    use, link = robot.use, _link(robot, plugin)
    use.mark(plugin)
    use.text(plugin, "namespace")
    w = WaterForces(link, np.zeros((6, 6)), np.zeros((6, 6)), np.zeros((6, 6)), np.zeros((6, 6)))
    for i, f in enumerate(FORCES):
        for j, v in enumerate(RATES):
            w.added[i, j] = -use.number(plugin, f"{f}Dot{v}", 0.0)
            w.linear[i, j] = -use.number(plugin, f"{f}{v}", 0.0)
            for k, v2 in enumerate(RATES):
                value = use.number(plugin, f"{f}{v}abs{v2}", 0.0)
                if j == k:
                    w.quadratic[i, j] = -value
                elif value:
                    w.products[i, j, k, True] = value
                if value := use.number(plugin, f"{f}{v}{v2}", 0.0):
                    key = (i, min(j, k), max(j, k), False)
                    w.products[key] = w.products.get(key, 0.0) + value
    if not use.flag(plugin, "disable_coriolis", False):
        w.circulating = _gz_coriolis(draft, plugin, w.added)
    if use.flag(plugin, "disable_added_mass", False):
        w.added = np.zeros((6, 6))
    if text := use.text(plugin, "water_density"):
        robot.notes.append(f"{describe(plugin)}: gz-sim does not use <water_density> = {text}")
    if any(current := use.vector(plugin, "default_current", (0.0, 0.0, 0.0))):
        robot.notes.append(
            f"the file sets a current of {format_numbers(*current)} m/s (east, north, up); a current belongs to <world>, not to a model"
        )
    return w


def _gz_coriolis(draft: ModelDraft, plugin: Element, added: Floats) -> Floats:
    """Return the added mass of which the Coriolis forces are computed. gz-sim uses only its diagonal, and adds these
    forces with the sign opposite to Fossen (2021, sec. 6.3), so that the Munk moment steadies the vehicle.
    """
    way = draft.settings.get("coriolis", "fossen").strip()
    draft.used_settings.add("coriolis")
    if way not in ("fossen", "gz"):
        raise ConfigError(f"--set coriolis: {SETTINGS['coriolis']}; got '{way}'")
    if way == "gz":
        return -np.diag(np.diag(added))
    if added.any():
        draft.notes.append(
            f"{describe(plugin)}: gz-sim adds the Coriolis forces of the added mass with the opposite sign; the model has "
            "the sign of Fossen. Use --set coriolis=gz to reproduce gz-sim"
        )
    return added.copy()


def _vrx(robot: Robot, plugin: Element) -> WaterForces:
    """Read the coefficients of VRX, which have positive signs. The plugin multiplies the added mass by the true
    acceleration, which contains w x v, and computes no other Coriolis force.
    """
    link = _link(robot, plugin)
    robot.use.mark(plugin)
    added = _diagonal(robot, plugin, "{f}Dot{v}", ADDED_DEFAULT)
    linear = _diagonal(robot, plugin, "{f}{v}", (20.0,) * 6)
    quadratic = _diagonal(robot, plugin, "{f}{v}{v}", (0.0,) * 6)
    w = WaterForces(link, np.diag(added), np.diag(linear), np.diag(quadratic), np.zeros((6, 6)))
    for i, j, k, sign in ((0, 2, 4, 1), (0, 1, 5, -1), (1, 0, 5, 1), (1, 2, 3, -1), (2, 1, 3, 1), (2, 0, 4, -1)):
        if added[i]:
            w.products[i, j, k, False] = -sign * added[i]
    return w


def _uuv(robot: Robot, plugin: Element) -> list[WaterForces]:
    """Read the models of UUV Simulator, whose matrices apply to forward-starboard-down axes."""
    use, found = robot.use, []
    use.mark(plugin)
    for tag in ("flow_velocity_topic", "debug", "use_global_current"):
        use.text(plugin, tag)
    for element in plugin.findall("link"):
        name = element.get("name", "")
        link = robot.find_link(name)
        if link is None:
            raise use.fail(element, f"there is no link '{name}'")
        use.mark(element)
        model = use.child(element, "hydrodynamic_model")
        if model is None:
            continue
        kind = use.text(model, "type")
        if kind == "fossen":
            found.append(_fossen(robot, link, model))
        else:
            robot.lost.append(f"{describe(model)}: type {kind}")
            use.mark_all(model)
    return found


def _matrix(robot: Robot, model: Element, tag: str) -> Floats:
    element = robot.use.child(model, tag)
    if element is None:
        return np.zeros((6, 6))
    n = robot.use.numbers(element)
    if len(n) not in (6, 36):
        raise robot.use.fail(element, f"expected 6 or 36 numbers, got {len(n)}")
    return np.diag(n) if len(n) == 6 else np.array(n).reshape(6, 6)


def _fossen(robot: Robot, link: RobotLink, model: Element) -> WaterForces:
    added = FLIP @ _matrix(robot, model, "added_mass") @ FLIP
    linear, forward = _matrix(robot, model, "linear_damping"), _matrix(robot, model, "linear_damping_forward_speed")
    quadratic = _matrix(robot, model, "quadratic_damping")
    cross = quadratic - np.diag(np.diag(quadratic))
    if cross.any():
        robot.notes.append(
            f"{describe(model)} / quadratic_damping: UUV Simulator uses only the diagonal, and so does the model"
        )
    w = WaterForces(link, added, -FLIP @ linear @ FLIP, -np.diag(np.diag(quadratic)), added)
    forward = FLIP @ forward @ FLIP
    for i, j in zip(*np.nonzero(forward), strict=True):
        w.products[int(i), 0, int(j), False] = forward[i, j]
    return w


def coriolis_products(m: Floats) -> dict[tuple[int, int, int, bool], float]:
    """Return the force -C(M) nu of a mass matrix as products of two velocities (Fossen 2021, sec. 3.3)."""

    def force(nu: Floats) -> Floats:
        a = m @ nu
        return -np.concatenate([np.cross(nu[3:], a[:3]), np.cross(nu[:3], a[:3]) + np.cross(nu[3:], a[3:])])

    e, found = np.eye(6), {}
    for j in range(6):
        for k in range(j, 6):
            value = force(e[j]) if j == k else force(e[j] + e[k]) - force(e[j]) - force(e[k])
            for i in range(6):
                if abs(value[i]) > 1e-9 * np.abs(m).max():
                    found[i, j, k, False] = float(value[i])
    return found


def add(draft: ModelDraft, w: WaterForces, turn: Floats) -> None:
    """Add the forces to the model. ``turn`` rotates the axes of the link to the body axes."""
    t = block(turn)
    # every axis becomes an axis, so that abs(nu) nu turns like nu
    added, linear, quadratic = (t @ m @ t.T for m in (w.added, w.linear, w.quadratic))
    symmetric = 0.5 * (added + added.T)
    odd = np.abs(added - symmetric).max()
    if odd > 1e-9 * max(1.0, np.abs(added).max()):
        draft.unused.append(
            f"the antisymmetric part of the added mass matrix (up to {odd:.4g}): a model has a symmetric one"
        )
    draft.matrix("added-mass", symmetric)
    if linear.any():
        draft.matrix("linear-drag", linear)
    if quadratic.any():
        draft.matrix("quadratic-drag", quadratic)
    products = {turned(key, t): value * sign(key, t) for key, value in w.products.items()}
    circulating = t @ (0.5 * (w.circulating + w.circulating.T)) @ t.T
    difference = circulating - symmetric
    if np.abs(difference).max() > 1e-9 * max(1.0, np.abs(symmetric).max()):
        for key, value in coriolis_products(difference).items():
            products[key] = products.get(key, 0.0) + value
        draft.notes.append(
            "the simulator computes its Coriolis forces of the water from another matrix than the added mass; derivatives "
            "contain the difference"
        )
    names = {name_of(key): value for key, value in products.items() if abs(value) > 0.0}
    if len(names) > MOST_PRODUCTS:
        draft.unused.append(
            f"{len(names) - MOST_PRODUCTS} of {len(names)} products of velocities: too many for a model"
        )
        names = dict(sorted(names.items(), key=lambda item: -abs(item[1]))[:MOST_PRODUCTS])
    draft.derivatives(names)


def turned(key: tuple[int, int, int, bool], t: Floats) -> tuple[int, int, int, bool]:
    """Return the key of a product after a rotation of the axes by quarter or half turns."""
    i, j, k = (int(np.argmax(np.abs(t[:, n]))) for n in key[:3])
    return (i, j, k, True) if key[3] else (i, min(j, k), max(j, k), False)


def sign(key: tuple[int, int, int, bool], t: Floats) -> float:
    """Return the sign that such a rotation gives to the coefficient of a product."""
    signs = [t[int(np.argmax(np.abs(t[:, n]))), n] for n in key[: 2 if key[3] else 3]]
    return float(np.prod(np.sign(signs)))


def name_of(key: tuple[int, int, int, bool]) -> str:
    """Return the name of the derivative of a product, such as `X_v_r` or `Y_u_av`."""
    i, j, k, absolute = key
    return f"{'XYZKMN'[i]}_{'uvwpqr'[j]}_{'a' if absolute else ''}{'uvwpqr'[k]}"
