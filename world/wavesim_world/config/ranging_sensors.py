"""Declarations of instruments that measure ranges or record images: echosounders, sonars and cameras."""

from __future__ import annotations

from dataclasses import dataclass

from wavesim_sdk.elementary import sin_cos
from wavesim_world.config.schema import Vector, children, flag, key, key_or_word, text
from wavesim_world.config.sensor_base import SensorConfig as SensorConfig

PRESET = "preset"  #: keyword that selects the value of the instrument preset


@dataclass(frozen=True)
class EchosounderConfig(SensorConfig):
    """Echosounder: distance to the nearest point of the bottom or of an obstacle within its cone."""

    level: bool = flag(
        "Whether the beam of the echosounder is stabilised. yes: it points straight down, whatever the attitude "
        "of the body. no: it points along the z axis of the sensor frame S.",
        True,
    )
    maximum: float = key(
        "Maximum range of the echosounder. Larger ranges are marked as invalid.", "length", 200.0, low=0.1
    )
    minimum: float = key(
        "Minimum range of the echosounder. Smaller ranges are marked as invalid.", "length", 0.0, low=0.0
    )
    width: float = key(
        "Full opening angle of the echosounder's cone; 0 = a single ray.", "angle", 0.0, low=0.0, high=2.0
    )


@dataclass(frozen=True)
class RangeBeam:
    """One beam of an instrument with several beams: its direction and its start point in the sensor frame S."""

    azimuth: float = key(
        "Azimuth of the beam: angle from the x axis of the sensor frame S towards its y axis.", "angle", 0.0
    )
    elevation: float = key("Angle of the beam below the x-y plane of the sensor frame S.", "angle", 0.0)
    position: Vector = key("Start point of the beam in the sensor frame S.", "length", (0.0, 0.0, 0.0), count=3)

    @property
    def direction(self) -> Vector:
        """Direction of the beam as a unit vector in the sensor frame S."""
        (down, level), (east, north) = sin_cos(self.elevation), sin_cos(self.azimuth)
        return level * north, level * east, down


@dataclass(frozen=True)
class RangerConfig(SensorConfig):
    """Rangefinder with up to eight fixed beams. Without <beam>, one beam points ahead.

    The beams detect obstacles, the bottom and the surface.
    """

    maximum: float = key("Maximum range of the beams.", "length", 50.0, low=0.1)
    sigma: float = key("Standard deviation of the range error.", "length", 0.02, low=0.0)
    beam: tuple[RangeBeam, ...] = children(RangeBeam, "Beam of the rangefinder.")


@dataclass(frozen=True)
class ScannerConfig(SensorConfig):
    """Scanner: a pencil beam in the x-y plane of the sensor frame S. The beam turns by one step after each value."""

    maximum: float = key("Maximum range of the scanning beam.", "length", 50.0, low=0.1)
    sigma: float = key("Standard deviation of the range error.", "length", 0.02, low=0.0)
    first: float = key(
        "First angle of a scan, from the x axis of the sensor frame S towards its y axis.", "angle", -3.141592653589793
    )
    last: float = key(
        "Last angle of a scan. After it, the beam returns to the first angle.", "angle", 3.141592653589793
    )
    step: float = key("Angle between two consecutive values of a scan.", "angle", 0.031415926535, low=1e-4)


@dataclass(frozen=True)
class MultibeamConfig(SensorConfig):
    """Multibeam echosounder: a fan of beams in the y-z plane of the sensor frame S, or up to 256 custom beams with any
    positions and directions.
    """

    beams: int = key("Number of beams in the fan.", default=64, low=2, high=256, integer=True)
    width: float = key("Full opening angle of the fan of beams.", "angle", 2.0943951023931953, low=0.01, high=3.1)
    maximum: float = key("Maximum range of the beams.", "length", 150.0, low=0.1)
    sigma: float = key("Standard deviation of the range error.", "length", 0.05, low=0.0)
    beam: tuple[RangeBeam, ...] = children(
        RangeBeam, "Beam with its own position and direction. If there are custom beams, the fan is omitted."
    )


@dataclass(frozen=True)
class SonarConfig(SensorConfig):
    """Imaging sonar. `preset` selects the instrument by name; `wavesim sonars` lists the names.

    The sensor frame S has x ahead, y to starboard and z down. The sonar completes one ping in each period 1/`rate`. It
    transmits the ping one two-way travel time before the ping is complete. This time is twice `range` divided by the
    speed of sound.
    """

    rate: float = key(
        "Number of sonar pings per second; at most c/(2 range), where c is the speed of sound.",
        "frequency",
        5.0,
        low=0.01,
        high=1000.0,
    )
    preset: str = text("Name of the sonar preset, as listed by `wavesim sonars`.")
    range: float = key("Maximum range of the sonar. Default: the typical range of the preset.", "length", 0.0, low=0.01)
    bins: int = key(
        "Number of range samples per sonar beam. Default: derived from the resolution of the preset, but at most 2000, "
        "and at most as many as fit into a frame of 4 MiB.",
        default=0,
        low=1,
        high=8192,
        integer=True,
    )
    beams: int = key(
        "Number of sonar beams, or of columns of a 3D sonar's image. Default: the number in the preset.",
        default=0,
        low=1,
        high=1024,
        integer=True,
    )
    sector: float = key(
        "Full angle of the sector that the sonar covers; 0 = the sector of the preset.",
        "angle",
        0.0,
        low=0.0,
        high=6.283185307179586,
    )
    rows: int = key(
        "Number of rows of a 3D sonar's image. Default: the number in the preset.",
        default=0,
        low=2,
        high=1024,
        integer=True,
    )
    height: float = key(
        "Full vertical angle of a 3D sonar's image; 0 = the angle of the preset.", "angle", 0.0, low=0.0, high=2.967
    )
    minimum: float = key(
        "Minimum range of a multibeam echosounder or a 3D sonar; closer echoes are not detected. 0 = the minimum "
        "range of the preset.",
        "length",
        0.0,
        low=0.0,
    )
    tilt: float | str = key_or_word(
        PRESET,
        f"Angle of the sonar axis below the x-y plane of the sensor frame S. `{PRESET}`: the tilt of the preset.",
        "angle",
        PRESET,
        low=-1.6,
        high=1.6,
    )
    gain: float = key("Fixed gain of the sonar receiver in dB.", default=0.0, low=-200.0, high=200.0)
    tvg: float = key(
        "Coefficient X of the time-varying gain X log r + 2 alpha r in dB, where r is the range and alpha the "
        "absorption coefficient.",
        default=30.0,
        low=0.0,
        high=60.0,
    )
    hold: float = key(
        "Range beyond which the time-varying gain stays constant; 0 = no such limit.", "length", 0.0, low=0.0
    )
    floor: float = key("Sonar level after gain, in dB, that maps to a sample value of 0.", default=110.0)
    span: float = key(
        "Dynamic range of the sonar in dB. Levels from `floor` to `floor` plus this range map to sample values "
        "from 0 to the maximum.",
        default=66.0,
        low=1.0,
        high=200.0,
    )
    bits: int = key(
        "Number of bits per sample: 8 or 16. The levels of a 3D sonar always have 16.",
        default=8,
        low=8,
        high=16,
        integer=True,
    )
    volume: float = key(
        "Volume scattering strength of the water in dB: -90 for clear water, -70 for coastal water, -60 for a wake.",
        default=-70.0,
        low=-300.0,
        high=0.0,
    )
    speckle: bool = flag(
        "Whether the sonar image has speckle: random fluctuations of the echo level, which result from the sum of "
        "echoes from many small scatterers.",
        True,
    )
    multipath: bool = flag(
        "Whether objects, targets and the bed below the sonar have ghosts in the image, caused by reflections at the "
        "surface and at the bed. A multibeam echosounder and a 3D sonar have no ghosts.",
        True,
    )
    log: int = key(
        "Number n: every n-th sonar frame is logged, if the run has a log; 0 = no frames are logged.",
        default=1,
        low=0,
        high=1_000_000,
        integer=True,
    )
    truth: bool = flag(
        "Whether each sample also has labels: the true material and object that caused the echo, or the object in "
        "whose shadow the sample is.",
        False,
    )
    stabilised: bool = flag(
        "For a multibeam echosounder: whether the beams are stabilised against roll of up to 10 deg.", True
    )
    equidistant: bool = flag(
        "Whether the soundings of a multibeam echosounder are at equal distances across the track (yes) or at equal angles (no).",
        False,
    )
    assumed_speed: float = key(
        "Speed of sound that a multibeam echosounder assumes at its array; 0 = the true speed.", "speed", 0.0, low=0.0
    )


@dataclass(frozen=True)
class CameraConfig(SensorConfig):
    """Underwater camera, rendered by ray tracing on the CPU with the light and water of `<optics>`.

    The sensor frame S of the camera has x ahead, y to the right of the image and z down the image. Above the water, the
    image is empty.
    """

    rate: float = key("Number of camera images per second.", "frequency", 5.0, low=0.01, high=1000.0)
    width: int = key("Width of the image in pixels.", default=320, low=16, high=1024, integer=True)
    height: int = key("Height of the image in pixels.", default=240, low=16, high=1024, integer=True)
    view: float = key(
        "Horizontal field of view of the camera, disregarding lens distortion: half the image width is f tan(view/2), "
        "where f is the focal length.",
        "angle",
        1.0472,
        low=0.05,
        high=2.6,
    )
    distortion: Vector = key(
        "Distortion coefficients k1 and k2 of the lens: a point at r focal lengths from the centre of the image "
        "appears at r (1 + k1 r^2 + k2 r^4).",
        default=(0.0, 0.0),
        count=2,
        low=-1.0,
        high=1.0,
    )
    range: float = key(
        "Visual range of the camera. Objects farther away have the colour of the water.",
        "length",
        20.0,
        low=0.1,
        high=200.0,
    )
    lamp: float = key(
        "Illumination that the camera's lamp produces on a surface 1 m away, relative to daylight at the water "
        "surface; 0 = no lamp.",
        default=0.0,
        low=0.0,
    )
    lamp_position: Vector = key(
        "Position of the lamp in the sensor frame S of the camera.", "length", (0.0, 0.0, -0.2), count=3
    )
    exposure: float = key(
        "Exposure of the camera: pixel value for light of intensity 1, as a fraction of full scale. 0 = "
        "automatic: in each image, 2 % of the pixel values are above 0.9 of full scale.",
        default=0.0,
        low=0.0,
    )
    gamma: float = key(
        "Gamma of the image: a pixel value is 255 f^(1/gamma), where f is the fraction of full scale.",
        default=2.2,
        low=0.2,
        high=5.0,
    )
    electrons: float = key(
        "Number of electrons in a camera pixel at full scale. The standard deviation of a pixel's shot noise is "
        "the square root of its number of electrons.",
        default=10000.0,
        low=1.0,
    )
    read_noise: float = key("Standard deviation of the camera's read noise, in electrons.", default=8.0, low=0.0)
    depth: bool = flag("Whether the frame also contains the true depth of each pixel.", False)
    truth: bool = flag("Whether the frame also contains the true material and object of each pixel.", False)
    log: int = key(
        "Number n: every n-th camera image is logged, if the run has a log; 0 = no images are logged.",
        default=0,
        low=0,
        high=1_000_000,
        integer=True,
    )
