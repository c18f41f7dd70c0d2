"""Presets of commercial imaging sonars with the sources of their values.

``confirmed=False`` marks presets with values that are assumed or for which no source is known; ``source`` states which
values these are. Levels are in dB re 1 uPa at 1 m, other values in SI units and rad.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from wavesim_sdk.errors import ConfigError
from wavesim_sdk.imaging_frames import SONAR_KINDS
from wavesim_sdk.names import suggest_name

KINDS = dict(
    zip(
        SONAR_KINDS,
        (
            "forward-looking: an image with one axis for beams and one for ranges",
            "side-scan: a line of echoes on each side",
            "multibeam echosounder: one sounding per beam",
            "mechanical scanning: one beam that turns by one step per ping",
            "3D: an image with the range and the level of the strongest echo in each direction",
        ),
        strict=True,
    )
)


def _deg(value: float) -> float:
    return math.radians(value)


@dataclass(frozen=True)
class Preset:
    """Preset of a sonar at one of its frequencies."""

    name: str
    kind: str
    title: str
    frequency: float  #: centre frequency, Hz
    bandwidth: float  #: bandwidth B of the pulse, Hz; the range resolution is c/2B
    beams: int  #: number of beams; for a 3D sonar, number of image columns
    sector: float  #: full horizontal angle, rad; for a scanning sonar, width of the scanned sector
    #: beam width at -3 dB across the array, rad: height of the fan, along-track beam width of a multibeam echosounder, or
    #: vertical beam width of a 3D sonar
    vertical: float
    beam: float  #: beam width at -3 dB along the array, rad
    max_range: float  #: maximum range, m
    range: float  #: default range, m
    rate: float  #: usual ping rate, Hz
    source: str
    source_level: float = 210.0
    tilt: float = 0.0  #: angle of the sonar axis below the horizontal, rad
    bins: int = 0  #: number of samples over the range; 0 = derived from the range resolution
    noise: float = 40.0  #: electronic noise floor in the band, dB re 1 uPa
    step: float = 0.0  #: step of a scanning sonar per ping, rad
    shading: str = "hamming"
    confirmed: bool = False
    rows: int = 0  #: number of image rows of a 3D sonar
    height: float = 0.0  #: full vertical angle of the image of a 3D sonar, rad
    minimum: float = 0.0  #: minimum range, m

    @property
    def resolution(self) -> float:
        """Range resolution in m at a sound speed of 1500 m/s."""
        return 1500.0 / (2.0 * self.bandwidth)


_MEMORY = "no source is known for the sector, the range and the beam width; the source level and noise are assumed"
_ALL = (
    Preset("m750d-low", "forward", "Blueprint Oculus M750d, 750 kHz", 750e3, 40e3, 512, _deg(130), _deg(20), _deg(1.0), 120.0, 60.0, 10.0, f"the 2-40 Hz ping rates are from the driver; {_MEMORY}", tilt=0.0),
    Preset("m750d-high", "forward", "Blueprint Oculus M750d, 1.2 MHz", 1.2e6, 60e3, 512, _deg(70), _deg(20), _deg(0.6), 40.0, 20.0, 10.0, _MEMORY),
    Preset("m1200d-low", "forward", "Blueprint Oculus M1200d, 1.2 MHz", 1.2e6, 60e3, 512, _deg(130), _deg(20), _deg(0.6), 40.0, 20.0, 10.0, _MEMORY),
    Preset("m1200d-high", "forward", "Blueprint Oculus M1200d, 2.1 MHz", 2.1e6, 100e3, 512, _deg(60), _deg(12), _deg(0.4), 10.0, 8.0, 15.0, _MEMORY),
    Preset("p900-130", "forward", "BlueView P900-130", 900e3, 30e3, 722, _deg(130), _deg(20), _deg(1.0), 60.0, 30.0, 10.0, "frequency, band, source level and fan height are from DAVE's model; no source is known for the beam width and the range", source_level=220.0),
    Preset("p900-90", "forward", "BlueView P900-90", 900e3, 30e3, 500, _deg(90), _deg(20), _deg(1.0), 60.0, 30.0, 10.0, "frequency, band, source level and fan height are from DAVE's model; no source is known for the beam width and the range", source_level=220.0),
    Preset("p900-45", "forward", "BlueView P900-45", 900e3, 30e3, 256, _deg(45), _deg(20), _deg(1.0), 60.0, 30.0, 10.0, "frequency, band, source level and fan height are from DAVE's model; no source is known for the beam width and the range", source_level=220.0),
    Preset("gemini-720is", "forward", "Tritech Gemini 720is", 720e3, 60e3, 512, _deg(120), _deg(20), _deg(1.0), 120.0, 50.0, 10.0, "frequency, sector, beam width, tilt and rate are from the data sheet; the source level and band are assumed", tilt=_deg(10)),
    Preset("gemini-720im", "forward", "Tritech Gemini 720im", 720e3, 60e3, 256, _deg(90), _deg(20), _deg(1.5), 50.0, 30.0, 10.0, _MEMORY),
    Preset("sonoptix-400", "forward", "Sonoptix Echo, 400 kHz", 400e3, 30e3, 256, _deg(120), _deg(20), _deg(1.2), 200.0, 75.0, 5.0, _MEMORY),
    Preset("sonoptix-700", "forward", "Sonoptix Echo, 700 kHz", 700e3, 50e3, 256, _deg(90), _deg(20), _deg(0.8), 90.0, 45.0, 10.0, _MEMORY),
    Preset("starfish-450", "sidescan", "Blueprint StarFish 450", 450e3, 50e3, 2, 0.0, _deg(60), _deg(0.8), 100.0, 50.0, 12.0, "the 425-475 kHz chirp, the 30 deg downward tilt of the axis and the useful height of 60 deg are from the data sheet; no source is known for the beam width and the range", tilt=_deg(30), bins=1000, shading="none"),
    Preset("klein-3000-132", "sidescan", "Klein 3000, 132 kHz", 132e3, 20e3, 2, 0.0, _deg(40), _deg(0.7), 600.0, 300.0, 2.0, _MEMORY, source_level=220.0, tilt=_deg(20), bins=2000, shading="none"),
    Preset("klein-3000-445", "sidescan", "Klein 3000, 445 kHz", 445e3, 20e3, 2, 0.0, _deg(40), _deg(0.21), 150.0, 75.0, 8.0, _MEMORY, source_level=215.0, tilt=_deg(20), bins=2000, shading="none"),
    Preset("edgetech-2205-540", "sidescan", "EdgeTech 2205, 540 kHz", 540e3, 40e3, 2, 0.0, _deg(50), _deg(0.3), 150.0, 75.0, 8.0, "the frequencies are from the data sheet; no source is known for the beam width; the source level is assumed", tilt=_deg(20), bins=2000, shading="none"),
    Preset("edgetech-2205-230", "sidescan", "EdgeTech 2205, 230 kHz", 230e3, 40e3, 2, 0.0, _deg(50), _deg(0.5), 250.0, 150.0, 4.0, "the frequencies are from the data sheet; no source is known for the beam width; the source level is assumed", tilt=_deg(20), bins=2000, shading="none"),
    Preset("omniscan-450", "sidescan", "Cerulean Omniscan 450", 450e3, 30e3, 2, 0.0, _deg(50), _deg(0.8), 150.0, 50.0, 10.0, "450 kHz and the 0.5 deg two-way beam width are from the data sheet; no source is known for the other values", tilt=_deg(30), bins=1000, shading="none"),
    Preset("r2sonic-2024", "bathymetry", "R2Sonic 2024, 400 kHz", 400e3, 30e3, 256, _deg(120), _deg(1.0), _deg(0.5), 500.0, 100.0, 7.0, "170 to 450 kHz, 256 beams and the 10-160 deg sector are from the data sheet; no source is known for the beam width; the source level is assumed", source_level=220.0, shading="none"),
    Preset("norbit-wbms", "bathymetry", "Norbit WBMS, 400 kHz", 400e3, 80e3, 256, _deg(120), _deg(1.9), _deg(0.9), 275.0, 75.0, 10.0, "200 to 700 kHz and the 80 kHz bandwidth are from the data sheet; no source is known for the beam width; the source level is assumed", source_level=215.0, shading="none"),
    Preset("em2040", "bathymetry", "Kongsberg EM 2040, 300 kHz", 300e3, 30e3, 400, _deg(130), _deg(1.0), _deg(1.0), 500.0, 100.0, 7.0, "200 to 400 kHz, 400 beams and 1 x 1 deg are from the data sheet; the three sectors are modelled as one; the source level is assumed", source_level=220.0, shading="none"),
    Preset("seabat-7125", "bathymetry", "Reson SeaBat 7125, 400 kHz", 400e3, 30e3, 256, _deg(128), _deg(1.1), _deg(0.54), 200.0, 75.0, 10.0, "400 kHz, 0.54 x 1.1 deg, 128 deg, and 200 m are from the data sheet; the source level is assumed", source_level=220.0, shading="none"),
    Preset("r2sonic-2024-water", "forward", "R2Sonic 2024 water column, 400 kHz", 400e3, 30e3, 256, _deg(120), _deg(0.5), _deg(1.0), 500.0, 50.0, 5.0, "values from r2sonic-2024; outputs an image of the fan; mount this sonar next to an r2sonic-2024", source_level=220.0, tilt=_deg(90), shading="none"),
    Preset("norbit-wbms-water", "forward", "Norbit WBMS water column, 400 kHz", 400e3, 80e3, 256, _deg(120), _deg(0.9), _deg(1.9), 275.0, 40.0, 5.0, "values from norbit-wbms; outputs an image of the fan; mount this sonar next to a norbit-wbms", source_level=215.0, tilt=_deg(90), shading="none"),
    Preset("surveyor-240", "bathymetry", "Cerulean Surveyor 240", 240e3, 20e3, 80, _deg(80), _deg(4.0), _deg(2.0), 100.0, 50.0, 5.0, "240 kHz, 80 deg and 4 deg along track are from the data sheet; all other values are assumed", source_level=200.0, shading="none"),
    Preset("ping360", "scanning", "Blue Robotics Ping360", 750e3, 20e3, 1, 2 * math.pi, _deg(25), _deg(2.0), 50.0, 20.0, 20.0, "750 kHz and 400 steps of 0.9 deg are from the data sheet; no source is known for the 2 x 25 deg beam width; the source level is assumed", source_level=195.0, bins=1200, step=_deg(0.9), shading="none"),
    Preset("micron", "scanning", "Tritech Micron (DST)", 700e3, 100e3, 1, 2 * math.pi, _deg(35), _deg(3.0), 75.0, 20.0, 20.0, "the 3 x 35 deg beam and the step sizes come from a driver; no source is known for the 650-750 kHz chirp or for the maximum range; the source level is assumed", source_level=200.0, bins=800, step=_deg(1.8), shading="none"),
    Preset("imagenex-881a", "scanning", "Imagenex 881A, 675 kHz", 675e3, 20e3, 1, 2 * math.pi, _deg(20), _deg(1.8), 200.0, 30.0, 20.0, "1 to 200 m is from the data sheet; 675 kHz and 1.8 x 20 deg are from the data sheet of the 881L; the source level is assumed", source_level=200.0, bins=500, step=_deg(0.9), shading="none"),
    Preset("imagenex-852", "scanning", "Imagenex 852 scanning head, 675 kHz", 675e3, 40e3, 1, 2 * math.pi, _deg(22), _deg(2.5), 50.0, 20.0, 20.0, "675 kHz, 5 to 50 m and the 3 deg steps come from drivers and the serial specification; no source is known for the beam widths; the source level is assumed", source_level=200.0, bins=500, step=_deg(3.0), shading="none"),
    Preset("imagenex-852-sounder", "scanning", "Imagenex 852 echo sounder, 675 kHz, fixed beam", 675e3, 40e3, 1, _deg(0.1), _deg(10), _deg(10), 50.0, 30.0, 10.0, "675 kHz and 5 to 50 m are from the serial specification, and the 10 deg cone is from an open-source driver; the source level is assumed; the beam points along the x axis of the mount", source_level=195.0, bins=1500, step=_deg(0.1), shading="none"),
    Preset("imagenex-881l", "scanning", "Imagenex 881L, 675 kHz", 675e3, 20e3, 1, 2 * math.pi, _deg(20), _deg(1.8), 200.0, 30.0, 20.0, "675 kHz, 1.8 x 20 deg, and 1 to 200 m are from the data sheet; the source level is assumed", source_level=200.0, bins=500, step=_deg(0.9), shading="none"),
    Preset("imagenex-881l-profiler", "scanning", "Imagenex 881L as a profiler, 1 MHz", 1e6, 40e3, 1, _deg(120), _deg(1.4), _deg(1.4), 50.0, 20.0, 20.0, "pencil beam at 1 MHz; all other values are assumed", source_level=200.0, bins=1000, step=_deg(0.9), shading="none"),
    Preset("sonar-3d15-low", "3d", "Water Linked Sonar 3D-15, 1.2 MHz", 1.2e6, 187.5e3, 256, _deg(90), _deg(2.4), _deg(0.6), 15.0, 15.0, 5.0, "frequency, angles, ranges, rate and the 4 mm range resolution are from the manufacturer's documents; the source level, noise and shading are assumed", source_level=200.0, rows=64, height=_deg(40), minimum=0.2),
    Preset("sonar-3d15-high", "3d", "Water Linked Sonar 3D-15, 2.4 MHz", 2.4e6, 500e3, 256, _deg(40), _deg(1.1), _deg(0.4), 4.0, 4.0, 20.0, "frequency, angles, ranges, rate and the 1.5 mm range resolution are from the manufacturer's documents; the source level, noise and shading are assumed", source_level=200.0, rows=64, height=_deg(40), minimum=0.2),
)  # fmt: skip

PRESETS: dict[str, Preset] = {p.name: p for p in _ALL}


def find_preset(name: str) -> Preset:
    """Return the preset with this name. Raises ConfigError, suggesting a similar name, if there is no such preset."""
    if name not in PRESETS:
        raise ConfigError(
            f"unknown sonar preset '{name}'{suggest_name(name, sorted(PRESETS))}; list the presets with `wavesim "
            "sonars`"
        )
    return PRESETS[name]


def list_presets() -> str:
    """Return a text table with one line per sonar preset."""
    lines = [
        f"{'name':24} {'kind':11} {'frequency':>9} {'beams':>5} {'sector':>8} {'beam':>9} {'range':>6}  instrument"
    ]
    for p in PRESETS.values():
        sector = f"{math.degrees(p.sector):.3g} deg" if p.sector else "-"
        lines.append(
            f"{p.name:24} {p.kind:11} {p.frequency * 1e-3:5.0f} kHz {p.beams:5} {sector:>8} "
            f"{math.degrees(p.beam):5.2f} deg {p.max_range:4.0f} m  {p.title}"
        )
    return "\n".join(lines)


def describe_preset(p: Preset) -> str:
    """Return the description of a preset, and the XML element that mounts the sonar."""
    degrees = math.degrees
    rows = [
        ("frequency, band", f"{p.frequency * 1e-3:g} kHz, {p.bandwidth * 1e-3:g} kHz"),
        ("resolution", f"{p.resolution * 1e3:.1f} mm at 1500 m/s"),
        ("beams", f"{p.beams}, {degrees(p.beam):.2f} x {degrees(p.vertical):.1f} deg at -3 dB, shading {p.shading}"),
        ("sector", f"{degrees(p.sector):.3g} deg" if p.sector else "both sides"),
        ("axis", f"{degrees(p.tilt):.0f} deg below the horizontal" if p.kind != "bathymetry" else "down"),
        (
            "range",
            f"default {p.range:g} m, maximum {p.max_range:g} m; maximum rate at the default range {750.0 / p.range:.3g} Hz",
        ),
        ("source level", f"{p.source_level:g} dB re 1 uPa at 1 m; electronic noise floor {p.noise:g} dB"),
        ("sources", p.source),
    ]
    if p.rows:
        rows[2:4] = [
            ("image", f"{p.beams} x {p.rows} pixels, {degrees(p.sector):.0f} x {degrees(p.height):.0f} deg"),
            ("beams", f"{degrees(p.beam):.2f} x {degrees(p.vertical):.1f} deg at -3 dB, shading {p.shading}"),
            ("minimum range", f"{p.minimum:g} m"),
        ]
    if p.sector > p.step > 0.0:
        rows.insert(4, ("step", f"{degrees(p.step):.2f} deg, {round(p.sector / p.step)} pings per scan"))
    text = "\n".join(f"  {name:16} {value}" for name, value in rows)
    return f'{p.title}\n  {KINDS[p.kind]}\n{text}\n  mount it         <sonar preset="{p.name}" range="{p.range:g} m" rate="{min(p.rate, 5.0):g} Hz"/>'
