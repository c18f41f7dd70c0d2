"""Random configurations for the numerical world: fleets of shipped and altered models, seas, lines and obstacles.

Every number is drawn from the seed. Plain scenes contain only shipped models in the sea for which they are intended;
still scenes contain submerged bodies without commands in still water; wild scenes contain anything that the reader may
accept.
"""

from __future__ import annotations

import copy
import functools
import math
import random
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import resources

FILES = ("auv.xml", "rov.xml", "surface.xml", "traffic.xml")
KINDS = ("plain", "still", "wild", "wild")
STEPS_MS = (1, 2, 4, 5, 10, 20, 50)
TINY = (1e-310, -5e-324, 1e-300, 1e-160, -1e-60)  #: magnitudes for which squares or inverses leave the range of floats
#: attributes and texts that an altered model scales: element, attribute (empty = text), decades in either direction
SCALED = (
    ("mass", "value", 0.5),
    ("added-mass", "", 1.5),
    ("linear-drag", "", 1.5),
    ("quadratic-drag", "", 1.5),
    ("lift", "", 1.0),
    ("cross-flow", "sway", 1.5),
    ("cross-flow", "heave", 1.5),
    ("cross-flow", "length", 0.3),
    ("buoyancy", "volume", 0.1),
    ("buoyancy", "centre", 1.0),
    ("fin", "area", 1.5),
    ("fin", "limit", 0.3),
    ("fin", "lag", 2.0),
    ("fin", "rate", 2.0),
    ("thruster", "minimum", 1.0),
    ("thruster", "maximum", 1.0),
    ("thruster", "lag", 2.0),
    ("thruster", "position", 0.5),
    ("memory", "c", 1.0),
    ("derivative", "value", 0.5),
    ("body-lift", "area", 1.0),
)


@dataclass(frozen=True)
class Shipped:
    """A model of the library."""

    name: str
    type: str
    element: ET.Element
    speed: float  #: speed for which the model is intended, in m/s


@dataclass
class NumericalScene:
    """A drawn configuration and what the judge has to know of it."""

    seed: int
    kind: str
    step_ms: float
    text: str = ""
    flow: float = 0.0  #: bound of the water's speed in m/s
    flow_rate: float = 0.0  #: bound of the water's acceleration in m/s2
    bed: tuple[float, float, float] = (100.0, 0.0, 0.0)  #: depth and slopes
    altered: dict[str, bool] = field(default_factory=dict)  #: whether the model of each body is altered
    lined: set[str] = field(default_factory=set)  #: bodies with a mooring or a line
    models: dict[str, Shipped] = field(default_factory=dict)  #: library model of each body
    windy: bool = False
    duration: float = 10.0


@functools.cache
def library() -> tuple[Shipped, ...]:
    """Return all models of the library."""
    found = []
    for file in FILES:
        root = ET.fromstring(resources.files("wavesim_world.models").joinpath(file).read_text())
        for m in root.iter("model"):
            speed = float(m.get("valid_speed", "0 m/s").split()[0])
            found.append(Shipped(m.get("name", ""), m.get("type", ""), m, speed))
    return tuple(found)


def decades(r: random.Random, low: float, high: float) -> float:
    """Return a number with a uniformly distributed logarithm between 10^low and 10^high."""
    return math.pow(10.0, r.uniform(low, high))


def _scaled(text: str, factor: float) -> str:
    """Multiply all numbers of a text, and keep the words (units)."""

    def one(word: str) -> str:
        try:
            return repr(float(word) * factor)
        except ValueError:
            return word

    return " ".join(map(one, text.split()))


def altered_model(r: random.Random, shipped: Shipped, name: str) -> str:
    """Return the XML of a library model with some of its parameters multiplied by random factors."""
    m = copy.deepcopy(shipped.element)
    m.set("name", name)
    for key in ("title", "source", "validated", "appearance"):
        m.attrib.pop(key, None)
    for gone in (e for tag in ("performance", "transducer", "sensors") for e in m.findall(tag)):
        m.remove(gone)
    extreme = r.choice((0.3, 1.0, 2.0))
    for tag, key, width in SCALED:
        if r.random() < 0.5:
            continue
        factor = decades(r, -width * extreme, width * extreme)
        for e in m.iter(tag):
            if key:
                if e.get(key):
                    e.set(key, _scaled(e.get(key, ""), factor))
            elif e.get("diagonal"):
                e.set("diagonal", _scaled(e.get("diagonal", ""), factor))
            else:
                e.text = _scaled(e.text or "", factor)
            if tag == "mass":
                _scale_inertia(m, factor)
    if r.random() < 0.1:
        for e in m.iter("thruster"):
            e.set("lag", f"{r.choice(('0', '1e-310', '1e-12', '1e9'))} s")
    return ET.tostring(m, encoding="unicode")


def _scale_inertia(m: ET.Element, factor: float) -> None:
    for e in m.iter("inertia"):
        for key in ("xx", "yy", "zz", "xy", "xz", "yz"):
            if e.get(key):
                e.set(key, _scaled(e.get(key, ""), factor))
    for e in m.iter("rigid-body"):
        if e.get("diagonal"):
            e.set("diagonal", _scaled(e.get("diagonal", ""), factor))
        else:
            e.text = _scaled(e.text or "", factor)


def _numbers(values: Sequence[float]) -> str:
    return " ".join(repr(float(v)) for v in values)


def _world(r: random.Random, s: NumericalScene) -> str:
    """Draw the sea."""
    wild = s.kind == "wild"
    depth = r.choice((30.0, 100.0, 4000.0)) if not wild else decades(r, 0.5, 4.0)
    if wild and r.random() < 0.03:
        depth = r.choice((0.0, 1e9, 1e300))
    slopes = (r.uniform(-0.05, 0.05), r.uniform(-0.05, 0.05)) if wild and r.random() < 0.2 else (0.0, 0.0)
    s.bed = (depth, *slopes)
    parts = [f'<bed depth="{depth} m" slope_north="{slopes[0]}" slope_east="{slopes[1]}"/>']
    head = ""
    if wild and r.random() < 0.4:
        head += f' density="{r.choice(("water", repr(decades(r, 1.0, 3.5)) + " kg/m3"))}"'
    if wild and r.random() < 0.3:
        head += f' gravity="{r.choice((0.0, 1e-310, 1e-3, 1.6, 9.9, 30.0))} m/s2"'
    if s.kind == "still":
        return f"<world{head}>{''.join(parts)}</world>"
    if r.random() < 0.6:
        north, east = (r.uniform(-1, 1) * (r.choice((0.5, 3.0, 20.0)) if wild else 0.7) for _ in range(2))
        if r.random() < 0.1:
            north = r.choice(TINY)
        drift = ""
        s.flow += math.hypot(north, east)
        if r.random() < 0.3:
            drift = '<drift speed="0.1 m/s" speed_deviation="0.2 m/s" speed_maximum="0.5 m/s" direction_deviation="30 deg"/>'
            s.flow += 0.5
        parts.append(f'<current north="{north} m/s" east="{east} m/s">{drift}</current>')
    if r.random() < 0.5:
        height, peak = (decades(r, -3, 1.4), decades(r, -1, 1)) if wild else (r.uniform(0, 0.5), r.uniform(0.7, 2.0))
        height = min(height, 29.0)
        s.flow += 3.0 * height * peak
        s.flow_rate = 10.0 * height * peak * peak
        spectrum = r.choice(("ittc", "jonswap"))
        parts.append(
            f'<waves height="{height} m" peak="{peak} rad/s" spectrum="{spectrum}" direction="{r.uniform(0, 360)} deg" '
            f'components="{r.choice((1, 7, 30))}" spreading="{r.choice((0, 0, 8, 200))}"/>'
        )
    if r.random() < 0.5:
        s.windy = True
        parts.append(
            f'<wind speed="{r.uniform(0, 100 if wild else 10)} m/s" direction="{r.uniform(0, 360)} deg" '
            f'gusts="{r.choice((0, 20))}"/>'
        )
    if wild and r.random() < 0.3:
        blocks = "".join(
            f'<block position="{_numbers([r.uniform(-30, 30), r.uniform(-30, 30), r.uniform(0, 30)])} m" '
            f'size="{_numbers([decades(r, -2, 1.5) for _ in range(3)])} m" heading="{r.uniform(0, 360)} deg"/>'
            for _ in range(r.randint(1, 4))
        )
        parts.append(f"<obstacles>{blocks}</obstacles>")
    order = ("current", "wind", "waves", "obstacles", "bed")
    parts.sort(key=lambda p: order.index(p[1:].split()[0].rstrip(">").split(">")[0]))
    return f"<world{head}>{''.join(parts)}</world>"


def shape_radius(m: Shipped) -> float:
    """Return half the length of a model, which is about the radius of its bounding sphere."""
    for e in m.element:
        for key, factor in (("length", 0.5), ("diameter", 0.5)):
            if e.tag in ("box", "cylinder", "sphere") and e.get(key):
                return factor * float(e.get(key, "").split()[0])
    return 1.0


def _motion(r: random.Random, s: NumericalScene, m: Shipped) -> str:
    """Draw the initial velocities."""
    if r.random() < 0.2:
        return f'angular_velocity="{_numbers([r.choice(TINY) for _ in range(3)])} rad/s"'
    if r.random() < 0.3:
        return ""
    fast, quick = (m.speed or 1.0, 0.3) if s.kind != "wild" else (decades(r, -2, 1.3), decades(r, -2, 1.3))
    v = [r.uniform(-0.5, 1) * fast, r.uniform(-0.2, 0.2) * fast, r.uniform(-0.2, 0.2) * fast]
    return f'velocity="{_numbers(v)} m/s" angular_velocity="{_numbers([r.uniform(-1, 1) * quick for _ in range(3)])} rad/s"'


def _body(
    r: random.Random, s: NumericalScene, k: int, m: Shipped, model: str
) -> tuple[str, tuple[float, float, float]]:
    wild = s.kind == "wild"
    afloat = m.type != "underwater"
    spread = r.choice((2.0, 30.0, 30.0, 300.0)) if wild else 0.0
    far = r.choice((1e5, 1e6, 9.9e6)) if wild and k == 0 and r.random() < 0.1 else 0.0
    north, east = far + r.uniform(-1, 1) * spread, r.uniform(-1, 1) * spread
    if not wild:
        north = 300.0 * k
    bed = s.bed[0] + s.bed[1] * north + s.bed[2] * east
    z = r.uniform(3.0, max(4.0, bed - 5.0)) if s.kind != "plain" else r.uniform(8.0, min(bed - 8.0, 60.0))
    if afloat and s.kind != "still":
        z = r.uniform(-0.05, 0.05) if not wild else r.choice((0.0, r.uniform(-3, 3), z))
    if wild and r.random() < 0.9:
        z = min(z, bed - (1.0 if m.type == "underwater" else 0.0) - shape_radius(m))
    if wild and r.random() < 0.05:
        z = bed - decades(r, -3, 0)
    attitude = [r.uniform(-180, 180), r.uniform(-90, 90), r.uniform(-180, 180)]
    if not wild:
        attitude[0], attitude[1] = (0.0, 0.0) if afloat else (attitude[0] / 36.0, attitude[1] / 18.0)
    mooring = ""
    if wild and r.random() < 0.2:
        anchor = (north + r.uniform(-20, 20), east + r.uniform(-20, 20), min(bed, z + 30.0))
        d = math.dist(anchor, (north, east, z))
        s.lined.add(f"b{k}")
        mooring = (
            f'<mooring anchor="{_numbers(anchor)} m" length="{max(0.02, d * r.uniform(0.8, 1.3))} m" '
            f'stiffness="{decades(r, 0, 7)} N/m" damping="{r.choice((0.0, decades(r, 0, 5)))} N s/m"/>'
        )
    motion = _motion(r, s, m)
    tag = "buoy" if m.type == "buoy" else "vehicle"
    text = (
        f'<{tag} name="b{k}" model="{model}" position="{_numbers((north, east, z))} m" '
        f'attitude="{_numbers(attitude)} deg" {motion}>{mooring}</{tag}>'
    )
    return text, (north, east, z)


def _line(r: random.Random, s: NumericalScene, k: int, places: Sequence[tuple[float, float, float]]) -> str:
    a = r.randrange(len(places))
    b = r.randrange(len(places))
    ends = [(f'<end body="b{a}"/>', places[a])]
    s.lined.add(f"b{a}")
    if b != a and r.random() < 0.6:
        ends.append((f'<end body="b{b}"/>', places[b]))
        s.lined.add(f"b{b}")
    else:
        x, y, z = (places[a][i] + r.uniform(-15, 15) for i in range(3))
        z = min(z, s.bed[0] + s.bed[1] * x + s.bed[2] * y)
        ends.append((f'<end position="{_numbers((x, y, z))} m"/>', (x, y, z)))
    length = max(0.02, math.dist(ends[0][1], ends[1][1]) * r.uniform(0.99, 1.5))
    return (
        f'<line name="l{k}" length="{length} m" diameter="{decades(r, -3.5, -1)} m" mass="{decades(r, -2.5, 1)} kg/m" '
        f'stiffness="{decades(r, 2, 8)} N" segments="{r.choice((1, 3, 10))}" damping="{r.uniform(0, 2)}" '
        f'drag="{r.uniform(0, 3)}">{ends[0][0]}{ends[1][0]}</line>'
    )


def draw(seed: int) -> NumericalScene:
    """Draw the configuration of a seed."""
    r = random.Random(f"numerical world {seed}")
    kind = r.choice(KINDS)
    step = r.choice(STEPS_MS) if kind == "wild" else r.choice((2, 5, 10, 20))
    s = NumericalScene(seed, kind, step, duration=r.uniform(10.0, 120.0))
    world = _world(r, s)
    models, bodies, places = [], [], []
    choice = [m for m in library() if kind != "still" or m.type != "surface"]
    for k in range(r.randint(1, 6)):
        m = r.choice(choice)
        changed = kind != "plain" and r.random() < 0.6
        name = f"m{k}" if changed else m.name
        if changed:
            models.append(altered_model(r, m, name))
        s.altered[f"b{k}"], s.models[f"b{k}"] = changed, m
        text, place = _body(r, s, k, m, name)
        bodies.append((text, m.type))
        places.append(place)
    lines = (
        "".join(_line(r, s, k, places) for k in range(r.randint(1, 3))) if kind == "wild" and r.random() < 0.3 else ""
    )
    integrator = r.choice(("rk4", "rk4", "dp5", "euler")) if kind != "still" else r.choice(("rk4", "dp5"))
    s.text = (
        f'<wavesim name="numerical" seed="{seed}">\n<time step="{step} ms" integrator="{integrator}"/>\n{world}\n'
        f"<models>{''.join(models)}</models>\n<fleet>\n"
        + "\n".join(t for t, _ in bodies)
        + f"\n{lines}</fleet>\n</wavesim>\n"
    )
    return s
