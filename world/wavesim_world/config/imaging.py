"""Declarations of the scene for imaging sonars and cameras: materials, ground, small targets, boards, light."""

from __future__ import annotations

from dataclasses import dataclass

from wavesim_world.config.schema import Vector, children, choice, flag, key, key_or_word, place, text

TYPICAL = "typical"  #: keyword that selects the texture of a sediment in the library


@dataclass(frozen=True)
class MaterialConfig:
    """Material of a surface, for imaging sonars and cameras.

    law=sediment: scattering computed from the mean grain size (APL-UW TR 9407). This law holds from 10 to 100 kHz and
    is extrapolated at higher frequencies. law=smooth: Lambert's law plus reflections from facets with small slopes.
    """

    name: str = text("Name of the material. It replaces a material of the same name in the library.")
    law: str = choice("Scattering law of the material.", ("sediment", "smooth"), "sediment")
    grain: float = key(
        "Mean grain size of the sediment in phi (law=sediment): -1 sandy gravel, 1.5 medium sand, 6 sandy mud, 9 clay.",
        default=2.5,
        low=-1.0,
        high=9.0,
    )
    lambert: float = key(
        "Coefficient 10 log mu of Lambert's law in dB (law=smooth).", default=-27.0, low=-100.0, high=0.0
    )
    reflection: float = key(
        "Pressure reflection coefficient of the material's facets (law=smooth).", default=0.0, low=0.0, high=1.0
    )
    slope: float = key("Rms slope of the material's facets (law=smooth).", default=0.1, low=0.02, high=0.5)
    patch: float = key(
        "Patchiness of the material: shape parameter nu of the K distribution (0.5 very patchy, 10 hardly patchy); 0 "
        "= uniform.",
        default=0.0,
        low=0.0,
        high=100.0,
    )
    cell: float = key("Length of one patch of the material (see `patch`).", "length", 0.5, low=0.01)
    texture: float | str = key_or_word(
        TYPICAL,
        "Rms spatial variation in dB of the backscattering strength; 0 = uniform. The mean strength does not "
        f"change. `{TYPICAL}`: the value of the sediment with the nearest grain size (law=sediment), or 0 "
        "(law=smooth). "
        "The same keyword selects the typical values of the next four keys.",
        "",
        TYPICAL,
        low=0.0,
        high=6.0,
    )
    scale: float | str = key_or_word(
        TYPICAL, "Length of the largest patches of the texture.", "length", TYPICAL, low=0.05, high=1000.0
    )
    ripple: float | str = key_or_word(
        TYPICAL, "Rms slope of the ripples of the bed; 0 = no ripples.", "", TYPICAL, low=0.0, high=0.4
    )
    ripple_length: float | str = key_or_word(
        TYPICAL, "Wavelength of the ripples.", "length", TYPICAL, low=0.02, high=100.0
    )
    ripple_heading: float | str = key_or_word(
        TYPICAL, "Direction across the crests of the ripples; 0 deg = north.", "angle", TYPICAL
    )
    colour: Vector = key(
        "Reflectance of the material for red, green and blue light, for cameras.",
        default=(0.4, 0.4, 0.4),
        count=3,
        low=0.0,
        high=1.0,
    )
    place: str = place()


@dataclass(frozen=True)
class Region:
    """Region of the sea bed with its own material. Where regions overlap, the last one in the file applies."""

    material: str = text("Name of the material in the region.")
    position: Vector = key("Position of the region's centre (north, east).", "length", count=2)
    size: Vector = key("Length (along the heading) and width of the region.", "length", count=2, low=1e-3)
    heading: float = key("Direction of the long axis (length) of the region; 0 deg = north.", "angle", 0.0)
    round: bool = flag("Whether the region is an ellipse (yes) or a rectangle (no).", False)
    edge: float = key(
        "Rms deviation of the region's irregular border from the exact ellipse or rectangle; 0 = no deviation.",
        "length",
        0.3,
        low=0.0,
        high=100.0,
    )
    place: str = place()


@dataclass(frozen=True)
class GroundConfig:
    """Materials of the sea bed."""

    material: str = text("Name of the sea bed's material outside all regions.", "fine-sand")
    region: tuple[Region, ...] = children(Region, "Region of the sea bed with another material.")
    place: str = place()


@dataclass(frozen=True)
class TargetConfig:
    """Small target for imaging sonars. The target is a point. Its target strength is computed from `shape`, with the
    formula for a rigid shape that is larger than a wavelength.

    A target casts no sonar shadow, and vehicles do not collide with it.
    """

    name: str = text("Name of the target: 1 to 31 letters, digits, - or _.")
    position: Vector = key("Position of the target (north, east, down).", "length", count=3)
    shape: str = choice("Shape of the target.", ("sphere", "cylinder", "plate", "trihedral"), "sphere")
    size: Vector = key(
        "Size of the target. First value: radius of a sphere or cylinder, width of a plate, or edge of a trihedral. "
        "Second value: length of a cylinder or height of a plate.",
        "length",
        (0.1, 0.5),
        count=2,
        low=1e-4,
    )
    heading: float = key(
        "Direction of the axis of a cylinder, or of the horizontal normal of a plate; 0 deg = north.", "angle", 0.0
    )
    place: str = place()


@dataclass(frozen=True)
class Board:
    """Flat board that cameras can see, such as a patterned tag or a white plate.

    Sonars do not detect a board, and vehicles do not collide with it. If the board must be solid, place it on the face
    of a block.
    """

    name: str = text("Name of the board: 1 to 31 letters, digits, - or _.")
    position: Vector = key("Position of the board's centre (north, east, down).", "length", count=3)
    size: Vector = key("Width and height of the board.", "length", count=2, low=1e-3)
    heading: float = key("Direction in which the face of the board points; 0 deg = north.", "angle", 0.0)
    tilt: float = key(
        "Elevation angle of the direction in which the board faces; 0 deg = horizontal.",
        "angle",
        0.0,
        low=-1.5708,
        high=1.5708,
    )
    cells: str = text(
        "Rows of the board's pattern, from top to bottom. A row is a string of the digits 0 (black) and 1 (white), "
        "from left to right as viewed. All rows have the same length.",
        "1",
    )
    place: str = place()

    @property
    def cell_rows(self) -> tuple[str, ...]:
        """Rows of the board's pattern as separate strings."""
        return tuple(self.cells.split())


@dataclass(frozen=True)
class Optics:
    """Light, and optical properties of the water, for cameras (Akkaynak & Treibitz 2018).

    From a surface at a distance z, the camera receives the light J exp(-bD z) + V (1 - exp(-bB z)), where J is the light
    that it would receive if there were no water. Each quantity has separate values for red, green and blue light. The
    defaults of bD and of the diffuse attenuation are the absorption of clear water; the other defaults are assumptions.
    """

    attenuation: Vector = key(
        "Attenuation coefficient bD of the light that travels directly from a surface to the camera, for red, "
        "green and blue, in 1/m.",
        default=(0.245, 0.0565, 0.0092),
        count=3,
        low=0.0,
    )
    backscatter: Vector = key(
        "Backscatter coefficient bB of daylight (veiling light) for red, green and blue, 1/m.",
        default=(0.2, 0.1, 0.06),
        count=3,
        low=0.0,
    )
    veil: Vector = key(
        "Veiling light V for red, green and blue in full daylight: the colour of the water at a large distance.",
        default=(0.02, 0.08, 0.1),
        count=3,
        low=0.0,
    )
    daylight: float = key("Daylight just below the water surface: 1 = full, 0 = night.", default=1.0, low=0.0)
    diffuse: Vector = key(
        "Diffuse attenuation of daylight with depth for red, green and blue, 1/m.",
        default=(0.245, 0.0565, 0.0092),
        count=3,
        low=0.0,
    )
    scattering: Vector = key(
        "Backscattering coefficient bb of the water for red, green and blue, in 1/m. It determines how much "
        "of a lamp's light the water scatters back towards the lamp.",
        default=(0.003, 0.003, 0.003),
        count=3,
        low=0.0,
    )
    turbidity: float = key(
        "Turbidity in 1/m: 0 in clear water, 0.1 to 0.5 in coastal water. The coefficients bD, bB and the "
        "diffuse attenuation increase by this value. The backscattering coefficient bb increases by one "
        "fiftieth of this value.",
        default=0.1,
        low=0.0,
    )
    place: str = place()
