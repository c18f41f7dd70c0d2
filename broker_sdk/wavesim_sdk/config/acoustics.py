"""Declare the acoustic medium, and the transducers that send and receive in it.

Part of the configuration model. The file may use any unit of a quantity; the values here are SI and radians. Levels
are dB re 1 uPa (at 1 m for sources).
"""

from __future__ import annotations

from dataclasses import dataclass

from wavesim_sdk.config.schema import Vector, child, children, choice, content, flag, key, text

# ------------------------------------------------------------------ the medium


@dataclass(frozen=True)
class Multipath:
    """Echoes from surface and bottom: image sources at constant sound speed, eigenrays in a profile."""

    order: int = key("Maximum number of bounces of a path; 0 = no echoes.", default=2, low=0, high=6, integer=True)
    surface_loss: float = key("Loss per surface bounce.", "level", 0.0, low=0.0)
    surface: str = choice(
        "Additional loss per surface bounce, by frequency, angle and the sea state at the start. flat: none. rough: "
        "scattering by waves out of the specular direction (Eckart 1953). bubbles: absorption by wind-generated "
        "bubbles, 10 to 100 kHz (APL-UW 1994).",
        ("flat", "rough", "bubbles"),
        "flat",
    )
    bottom_density: float = key(
        "Ratio of the density of the bottom to that of the water.", default=1.9, low=1.0, high=5.0
    )
    bottom_speed: float = key("Speed of sound in the bottom.", "speed", 1650.0, low=100.0, high=6000.0)
    bottom_attenuation: float = key("Attenuation in the bottom, dB per wavelength.", default=0.8, low=0.0, high=10.0)


@dataclass(frozen=True)
class Acoustics:
    """Acoustic medium: RL = SL - (spreading + absorption s) over a path of length s."""

    sound_speed: float = key(
        "Speed of sound. In a profile it is the speed at the surface, and the speed that instruments assume.",
        "speed",
        1500.0,
        low=100.0,
        high=3000.0,
    )
    profile: str = choice(
        "Sound speed profile. constant: sound_speed. gradient: sound_speed + gradient z. file: linear between the "
        "rows `depth speed` of a file. water: from temperature, salinity and pressure of the configured water at "
        "the origin, by `formula`.",
        ("constant", "gradient", "file", "water"),
        "constant",
    )
    gradient: float = key(
        "Change of the sound speed per metre of depth, 1/s (profile=gradient).", default=0.016, low=-1.0, high=1.0
    )
    file: str = text("Path of the file for profile=file: rows `depth speed` (m, m/s), ascending in depth.", "")
    formula: str = choice(
        "Formula for the sound speed of sea water: Chen and Millero (UNESCO 44), Del Grosso, Mackenzie, Medwin, or "
        "Leroy et al. (2008).",
        ("chen-millero", "del-grosso", "mackenzie", "medwin", "leroy"),
        "chen-millero",
    )
    absorption: float = key("Absorption coefficient of the constant model.", "attenuation", 0.005, low=0.0)
    absorption_model: str = choice(
        "Absorption model: constant, or a function of frequency by Thorp (1967), extended Thorp, Francois and "
        "Garrison, or Ainslie and McColm. The last two use the temperature, salinity, pH and depth below.",
        ("constant", "thorp", "thorp-extended", "francois-garrison", "ainslie-mccolm"),
        "constant",
    )
    temperature: float = key("Temperature for the absorption model.", "temperature", 10.0, low=-2.0, high=40.0)
    salinity: float = key("Practical salinity for the absorption model.", default=35.0, low=0.0, high=45.0)
    ph: float = key("pH for the absorption model.", default=8.0, low=7.0, high=9.0)
    depth: float = key("Depth for the absorption model.", "length", 0.0, low=0.0)
    spreading: float = key(
        "Factor of log10 s in the spreading loss: 20 spherical, 10 cylindrical. 0 = from the ray tube of each ray "
        "(20 in water of constant sound speed).",
        default=0.0,
        low=0.0,
        high=40.0,
    )
    sum: str = choice(
        "Level of a reception if more paths of its signal arrive before it ends. first: the level of the first "
        "path. incoherent: sum of the powers. coherent: sum of the pressures, with the phases of travel, bounces "
        "and caustics.",
        ("first", "incoherent", "coherent"),
        "first",
    )
    paths: int = key(
        "Maximum number of paths from a signal to a node in a profile: the first and the strongest others. "
        "`clock.paths_dropped` counts the omitted paths.",
        default=32,
        low=1,
        high=256,
        integer=True,
    )
    noise_model: str = choice(
        "Ambient noise model. constant: ambient_noise in any band. wenz: by frequency, shipping and the mean wind "
        "of the world (Coates).",
        ("constant", "wenz"),
        "constant",
    )
    ambient_noise: float = key("Noise in the band of a signal. A signal weaker than this is dead.", "level", 60.0)
    shipping: float = key("Shipping density for the noise model: 0 none, 1 heavy.", default=0.5, low=0.0, high=1.0)
    blocking: bool = flag("Whether obstacles and hills of the sea bed block sound.", True)
    multipath: Multipath | None = child(Multipath, "Echoes from surface and bottom.")


# ------------------------------------------------------------------ instruments


@dataclass(frozen=True)
class BeamPattern:
    """Directivity of a transducer, the same for sending and receiving.

    piston: a disc whose -3 dB beam has the full width `width` around `axis`. toroid: strongest around the `axis` and
    weak along it, -3 dB at `width`/2 from its equator. table: rows `angle loss`, with the angle from the axis in
    degrees and the loss in dB.
    """

    axis: Vector = key(
        "Axis of the beam in frame B. It is normalised to a unit vector.", default=(0.0, 0.0, 1.0), count=3
    )
    pattern: str = choice("Shape of the beam.", ("piston", "toroid", "table"), "piston")
    width: float = key("Full width between the -3 dB points.", "angle", 1.0471975511965976, low=0.01, high=3.1)
    floor: float = key("Maximum loss, in the nulls and behind the transducer.", "level", 40.0, low=0.0)
    rows: Vector = content("Rows `angle loss` (pattern=table).", 0)


@dataclass(frozen=True)
class ClockConfig:
    """Clock of a node. It reads t + offset + drift t.

    All times that the node reports, and all times that it receives in commands, are times of its own clock.
    """

    offset: float = key("Clock offset at the start.", "time", 0.0)
    drift: float = key("Relative clock drift.", "drift", 0.0, low=-1e-2, high=1e-2)
    offset_deviation: float = key(
        "Standard deviation of a seeded normal draw that is added to the offset.", "time", 0.0, low=0.0
    )
    drift_deviation: float = key(
        "Standard deviation of a seeded normal draw that is added to the drift.", "drift", 0.0, low=0.0
    )


@dataclass(frozen=True)
class Pinger:
    """Pinger: it sends on its own at every full `period` of its own clock, plus `offset`."""

    frequency: float = key("Carrier frequency.", "frequency", low=1.0)
    period: float = key("Period of the pings.", "time", low=0.01)
    offset: float = key("Delay of each ping after the full period.", "time", 0.0, low=0.0)


@dataclass(frozen=True)
class Modem:
    """Modem that sends packets with payload. It answers range requests to its address after its turn-around time."""

    address: int = key("Address of the modem; 0 = cannot be addressed.", default=0, low=0, high=2**31, integer=True)
    frequency: float = key("Carrier frequency of its packets.", "frequency", 25e3, low=1.0)
    bandwidth: float = key("Bandwidth of its packets.", "frequency", 4e3, low=1.0)
    bit_rate: float = key("Bit rate in bits per second.", default=640.0, low=0.1)
    preamble: float = key("Duration of synchronisation and header before the payload.", "time", 0.03, low=0.0)
    payload: int = key("Maximum payload in bytes.", default=64, low=0, high=256, integer=True)
    bit_error: float = key(
        "Probability that a bit is wrong. A wrong bit loses the packet.", default=0.0, low=0.0, high=1.0
    )
    type: str = text(
        "Name of a modem type that an installed package provides; it sets the code and the medium access. Empty: no "
        "code, and packets are sent at once.",
        "",
    )


@dataclass(frozen=True)
class Hydrophone:
    """One hydrophone of a USBL head."""

    position: Vector = key("Position of the hydrophone on the body.", "length", count=3)


@dataclass(frozen=True)
class UsblHead:
    """USBL head: it computes the direction of arrival from the arrival times at several hydrophones.

    It assumes a plane wave and the sound speed `sound_speed`. It needs four hydrophones that span space, or three or
    more in a plane with `axis` as the side that the head faces.
    """

    hydrophone: tuple[Hydrophone, ...] = children(Hydrophone, "A hydrophone; three to eight are needed.", least=3)
    axis: Vector = key("Side that a planar head faces, frame B.", default=(0.0, 0.0, 1.0), count=3)
    sound_speed: float = key("Sound speed that the head assumes; 0 m/s = that of <acoustics>.", "speed", 0.0, low=0.0)
    timing_noise: float = key("Standard deviation of the arrival time at each hydrophone.", "time", 0.0, low=0.0)
    timing_resolution: float = key("Resolution of these times; 0 = exact.", "time", 0.0, low=0.0)


@dataclass(frozen=True)
class TransducerConfig:
    """Acoustic transducer and its electronics, in the terms of the sonar equation."""

    position: Vector = key("Position of the transducer on the body.", "length", (0.0, 0.0, 0.0), count=3)
    listen_low: float = key("Lower edge of the receiving band.", "frequency", 20e3, low=1.0)
    listen_high: float = key("Upper edge of the receiving band.", "frequency", 32e3, low=1.0)
    detection: str = choice(
        "Detection criterion. level: by `threshold`. snr: by `snr` over the noise in the band.",
        ("level", "snr"),
        "level",
    )
    threshold: float = key("Minimum received level that is detected (detection=level).", "level", 80.0)
    snr: float = key("Minimum signal-to-noise ratio that is detected (detection=snr).", "level", 10.0)
    source_level: float = key("Source level of its own signals at 1 m.", "level", 188.0, low=0.0, high=260.0)
    pulse: float = key("Duration of its signals. The transducer cannot receive while it sends.", "time", 0.01, low=0.0)
    bandwidth: float = key("Bandwidth of its signals; 0 Hz = 2/pulse, that of a tone burst.", "frequency", 0.0, low=0.0)
    capture: float = key(
        "Capture ratio: if two receptions overlap in time and band, one survives if it is stronger by this amount.",
        "level",
        10.0,
        low=0.0,
    )
    turn_around: float = key(
        "Turn-around time from the arrival of a query to the start of the reply.", "time", 0.015, low=0.0
    )
    recharge: float = key("Recharge time after sending, in which the transducer cannot send.", "time", 1.0, low=0.0)
    deaf_in_recharge: bool = flag("Whether the transducer also cannot receive while it recharges.", False)
    query: float = key("Frequency of the queries that it answers; 0 Hz = it never answers.", "frequency", 0.0)
    reply: float = key("Frequency of its replies.", "frequency", 0.0)
    tolerance: float = key("Tolerance of the query frequency.", "frequency", 100.0, low=0.0)
    code: int = key(
        "Code of its signals; 0 = none. Signals of different codes do not collide.",
        default=0,
        low=0,
        high=65535,
        integer=True,
    )
    query_code: int = key("Code of the queries that it answers; 0 = any.", default=0, low=0, high=65535, integer=True)
    timing_noise: float = key(
        "Standard deviation of the reported times. The log also contains the true times.", "time", 0.0, low=0.0
    )
    timing_resolution: float = key("Resolution of the reported times; 0 = 1 ns.", "time", 0.0, low=0.0)
    level_noise: float = key("Standard deviation of the reported levels.", "level", 0.0, low=0.0)
    doppler_noise: float = key("Standard deviation of the reported frequencies.", "frequency", 0.0, low=0.0)
    drop_out: float = key("Probability that a detection is lost at random.", default=0.0, low=0.0, high=1.0)
    outlier: float = key("Probability that a reported time is late at random.", default=0.0, low=0.0, high=1.0)
    outlier_time: float = key("Maximum delay of such an outlier, uniformly distributed.", "time", 0.02, low=0.0)
    self_noise: float = key("Noise of the body in the transducer, per Hz (detection=snr).", "level", 0.0)
    self_noise_slope: float = key("Increase of the self-noise with speed, dB per m/s.", default=0.0, low=0.0)
    beam: BeamPattern | None = child(BeamPattern, "Directivity. If absent, the transducer is omnidirectional.")
    clock: ClockConfig = child(ClockConfig, "Clock of the node.")
    pinger: Pinger | None = child(Pinger, "Pinger: the transducer sends periodically.")
    modem: Modem | None = child(Modem, "Modem: the transducer sends packets.")
    head: UsblHead | None = child(UsblHead, "USBL head with several hydrophones.")

    @property
    def band(self) -> float:
        """Bandwidth of the transducer's pulses, Hz."""
        return self.bandwidth or (2.0 / self.pulse if self.pulse else 0.0)
