"""The declaration of what imaging sonars and cameras see: materials, what the bed is made of, small targets, boards, light."""

from __future__ import annotations

from dataclasses import dataclass

from wavesim_sdk.config.schema import Vector, children, choice, flag, key, place, text


@dataclass(frozen=True)
class MaterialConfig:
    """A surface of your own. `sediment`: by mean grain size (APL-UW TR 9407, 10 to 100 kHz, extrapolated above); `smooth`: Lambert's
    law plus facets of small slopes."""

    name: str = text("Its name; one of the library is replaced.")
    law: str = choice("How it scatters.", ("sediment", "smooth"), "sediment")
    grain: float = key(
        "Mean grain size in phi: -1 sandy gravel, 1.5 medium sand, 6 sandy mud, 9 clay.",
        default=2.5,
        low=-1.0,
        high=9.0,
    )
    lambert: float = key("10 log mu of Lambert's law in dB (smooth).", default=-27.0, low=-100.0, high=0.0)
    reflection: float = key("Pressure reflection of its facets (smooth).", default=0.0, low=0.0, high=1.0)
    slope: float = key("Rms slope of its facets (smooth).", default=0.1, low=0.02, high=0.5)
    patch: float = key(
        "nu of the K distribution of patches (0.5 very patchy, 10 hardly); 0 = uniform.",
        default=0.0,
        low=0.0,
        high=100.0,
    )
    cell: float = key("Length of a patch.", "length", 0.5, low=0.01)
    colour: Vector = key(
        "Share of red, green, blue light that it gives back, to cameras.",
        default=(0.4, 0.4, 0.4),
        count=3,
        low=0.0,
        high=1.0,
    )
    place: str = place()


@dataclass(frozen=True)
class Region:
    """A part of the bed of another material; where two overlap, the later one counts."""

    material: str = text("Its material.")
    position: Vector = key("Its middle (north, east).", "length", count=2)
    size: Vector = key("Length along its heading, and width.", "length", count=2, low=1e-3)
    heading: float = key("Direction of its length.", "angle", 0.0)
    round: bool = flag("yes: an ellipse; no: a rectangle.", False)
    place: str = place()


@dataclass(frozen=True)
class GroundConfig:
    """What the sea bed is made of."""

    material: str = text("Where no region says anything else.", "fine-sand")
    region: tuple[Region, ...] = children(Region, "A part of another material.")
    place: str = place()


@dataclass(frozen=True)
class TargetConfig:
    """A target too small for rays: a point of the closed-form strength of its shape (rigid, larger than a wavelength). It casts no
    shadow, and vehicles do not touch it."""

    name: str = text("Its name, 1 to 31 letters, digits, - and _.")
    position: Vector = key("Where it lies (north, east, down).", "length", count=3)
    shape: str = choice("Its shape.", ("sphere", "cylinder", "plate", "trihedral"), "sphere")
    size: Vector = key(
        "Radius of a sphere or cylinder, width of a plate, edge of a trihedral; then length or height.",
        "length",
        (0.1, 0.5),
        count=2,
        low=1e-4,
    )
    heading: float = key("Of a cylinder's axis; of a plate's normal, which is level.", "angle", 0.0)
    place: str = place()


@dataclass(frozen=True)
class Board:
    """A flat board with a pattern, for cameras: a tag, a white plate. Sonars do not see it, vehicles do not touch it; put it before a
    block if they shall."""

    name: str = text("Its name, 1 to 31 letters, digits, - and _.")
    position: Vector = key("Its middle (north, east, down).", "length", count=3)
    size: Vector = key("Width, height.", "length", count=2, low=1e-3)
    heading: float = key("Direction in which its face looks.", "angle", 0.0)
    tilt: float = key("How far its face looks up.", "angle", 0.0, low=-1.5708, high=1.5708)
    cells: str = text(
        "Its rows from the top, each of 0 (black) and 1 (white) from the left as one sees it; all as long.", "1"
    )
    place: str = place()

    @property
    def cell_rows(self) -> tuple[str, ...]:
        """The words of its cells."""
        return tuple(self.cells.split())


@dataclass(frozen=True)
class Optics:
    """Light and water for cameras: of light J from a surface at a distance z come J exp(-bD z) + V (1 - exp(-bB z)), red, green, blue
    (Akkaynak & Treibitz 2018). bD and the diffuse attenuation default to the absorption of clear water; the others are assumed."""

    attenuation: Vector = key("bD of direct light, 1/m.", default=(0.245, 0.0565, 0.0092), count=3, low=0.0)
    backscatter: Vector = key("bB of the veil of scattered daylight, 1/m.", default=(0.2, 0.1, 0.06), count=3, low=0.0)
    veil: Vector = key(
        "V at daylight 1: what the water looks like from afar.", default=(0.02, 0.08, 0.1), count=3, low=0.0
    )
    daylight: float = key("Just below the surface; 0 = night.", default=1.0, low=0.0)
    diffuse: Vector = key("Attenuation of daylight with depth, 1/m.", default=(0.245, 0.0565, 0.0092), count=3, low=0.0)
    scattering: Vector = key(
        "bb: of a lamp's light, back into the half space from where it comes, 1/m.",
        default=(0.003, 0.003, 0.003),
        count=3,
        low=0.0,
    )
    turbidity: float = key(
        "1/m, added to bD, bB and the diffuse attenuation, and a fiftieth of it to bb: 0 clear, 0.1 to 0.5 at coasts.",
        default=0.1,
        low=0.0,
    )
    place: str = place()
