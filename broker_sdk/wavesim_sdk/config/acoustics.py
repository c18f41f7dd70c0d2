"""The declaration of sound: the medium, and the transducers that send and hear in it.

Part of the configuration model; units in the file are the user's choice, the values here are SI and radians.
Levels are dB re 1 uPa (at 1 m for sources).
"""

from __future__ import annotations

from dataclasses import dataclass

from wavesim_sdk.config.schema import Vector, child, children, choice, content, flag, key, text

# ------------------------------------------------------------------ the medium


@dataclass(frozen=True)
class Multipath:
    """Echoes from surface and bottom: image sources at constant sound speed, eigenrays in a profile."""

    order: int = key("Most bounces of a path; 0 = no echoes.", default=2, low=0, high=6, integer=True)
    surface_loss: float = key("Loss at each bounce off the surface.", "level", 0.0, low=0.0)
    surface: str = choice(
        "What more is lost there, by frequency, angle and the sea at the start: flat: nothing. rough: what waves scatter out "
        "of the mirror direction (Eckart 1953). bubbles: what those of the wind take, 10 to 100 kHz (APL-UW 1994).",
        ("flat", "rough", "bubbles"),
        "flat",
    )
    bottom_density: float = key("Density of the bottom over that of the water.", default=1.9, low=1.0, high=5.0)
    bottom_speed: float = key("Speed of sound in the bottom.", "speed", 1650.0, low=100.0, high=6000.0)
    bottom_attenuation: float = key("Attenuation in the bottom, dB per wavelength.", default=0.8, low=0.0, high=10.0)


@dataclass(frozen=True)
class Acoustics:
    """The acoustic medium: RL = SL - (spreading + absorption s) over a path of length s."""

    sound_speed: float = key(
        "Speed of sound; in a profile, at the surface, and what instruments assume.",
        "speed",
        1500.0,
        low=100.0,
        high=3000.0,
    )
    profile: str = choice(
        "constant. gradient: sound_speed + gradient z. file: linear between rows `depth speed` of a file. water: from "
        "temperature, salinity and pressure of the configured water at the origin, by `formula`.",
        ("constant", "gradient", "file", "water"),
        "constant",
    )
    gradient: float = key("Change of the sound speed per metre of depth, 1/s.", default=0.016, low=-1.0, high=1.0)
    file: str = text("The file of profile=file: rows `depth speed` (m, m/s), ascending in depth.", "")
    formula: str = choice(
        "Sound speed of sea water: Chen and Millero (UNESCO 44), Del Grosso, Mackenzie, Medwin, Leroy et al. (2008).",
        ("chen-millero", "del-grosso", "mackenzie", "medwin", "leroy"),
        "chen-millero",
    )
    absorption: float = key("Absorption of the constant model.", "attenuation", 0.005, low=0.0)
    absorption_model: str = choice(
        "constant; or by frequency: Thorp (1967), its extended form, Francois and Garrison, Ainslie and McColm, "
        "the last two for the water below.",
        ("constant", "thorp", "thorp-extended", "francois-garrison", "ainslie-mccolm"),
        "constant",
    )
    temperature: float = key("Temperature for the absorption.", "temperature", 10.0, low=-2.0, high=40.0)
    salinity: float = key("Practical salinity for the absorption.", default=35.0, low=0.0, high=45.0)
    ph: float = key("pH for the absorption.", default=8.0, low=7.0, high=9.0)
    depth: float = key("Depth for the absorption.", "length", 0.0, low=0.0)
    spreading: float = key(
        "Factor of log10 s: 20 spherical, 10 cylindrical. 0: by the tube of each ray (in water of one sound speed, 20).",
        default=0.0,
        low=0.0,
        high=40.0,
    )
    sum: str = choice(
        "Level of a reception when further paths of its signal arrive before it ends: first: that of its first path. "
        "incoherent: the sum of their powers. coherent: of their pressures, with the phases of travel, bounces and caustics.",
        ("first", "incoherent", "coherent"),
        "first",
    )
    paths: int = key(
        "Most paths of a signal to a node under a profile: the first and the strongest others; those left out are counted "
        "(`clock.paths_dropped`).",
        default=32,
        low=1,
        high=256,
        integer=True,
    )
    noise_model: str = choice(
        "constant: ambient_noise in any band. wenz: by frequency, shipping and the mean wind of the world (Coates).",
        ("constant", "wenz"),
        "constant",
    )
    ambient_noise: float = key("Noise in the band of a signal; a weaker signal is dead.", "level", 60.0)
    shipping: float = key("Shipping for the noise: 0 none, 1 heavy.", default=0.5, low=0.0, high=1.0)
    blocking: bool = flag("Whether obstacles and hills of the sea bed stop sound.", True)
    multipath: Multipath | None = child(Multipath, "Echoes.")


# ------------------------------------------------------------------ instruments


@dataclass(frozen=True)
class BeamPattern:
    """Directivity, the same for sending and hearing. piston: a disc whose -3 dB beam has the full width `width`
    around `axis`. toroid: loud around the `axis`, weak along it, -3 dB at `width`/2 from its equator. table: rows
    `angle loss` (degrees from the axis, dB down)."""

    axis: Vector = key("Axis, frame B (made a unit vector).", default=(0.0, 0.0, 1.0), count=3)
    pattern: str = choice("Shape.", ("piston", "toroid", "table"), "piston")
    width: float = key("Full width between the -3 dB points.", "angle", 1.0471975511965976, low=0.01, high=3.1)
    floor: float = key("Greatest loss, in the nulls and behind.", "level", 40.0, low=0.0)
    rows: Vector = content("Rows `angle loss` of a table.", 0)


@dataclass(frozen=True)
class ClockConfig:
    """The node's clock reads t + offset + drift t. All times that it reports, and all that it is told, are its own."""

    offset: float = key("Offset at the start.", "time", 0.0)
    drift: float = key("Relative drift.", "drift", 0.0, low=-1e-2, high=1e-2)
    offset_deviation: float = key(
        "A seeded normal draw of this deviation is added to the offset.", "time", 0.0, low=0.0
    )
    drift_deviation: float = key("The same for the drift.", "drift", 0.0, low=0.0)


@dataclass(frozen=True)
class Pinger:
    """It sends by itself at every full `period` of its own clock, plus `offset`."""

    frequency: float = key("Carrier.", "frequency", low=1.0)
    period: float = key("Period.", "time", low=0.01)
    offset: float = key("Offset.", "time", 0.0, low=0.0)


@dataclass(frozen=True)
class Modem:
    """Packets with payload. It answers range requests to its address after its turn-around."""

    address: int = key("Its address; 0 = it is not addressed.", default=0, low=0, high=2**31, integer=True)
    frequency: float = key("Carrier of its packets.", "frequency", 25e3, low=1.0)
    bandwidth: float = key("Bandwidth of its packets.", "frequency", 4e3, low=1.0)
    bit_rate: float = key("Bits per second.", default=640.0, low=0.1)
    preamble: float = key("Time before the payload: synchronisation and header.", "time", 0.03, low=0.0)
    payload: int = key("Greatest payload in bytes.", default=64, low=0, high=256, integer=True)
    bit_error: float = key("Probability that a bit is wrong, which loses the packet.", default=0.0, low=0.0, high=1.0)
    type: str = text(
        "Type of its code and medium access, by name, that an installed package offers; none: no code, at once.", ""
    )


@dataclass(frozen=True)
class Hydrophone:
    """One of a USBL head."""

    position: Vector = key("Where it sits on the body.", "length", count=3)


@dataclass(frozen=True)
class UsblHead:
    """A USBL head: the direction of arrival from the arrival times at several hydrophones, as a plane wave in water
    of the sound speed that the head assumes. Four that span space, or three or more in a plane with `axis` as the
    side to which it looks."""

    hydrophone: tuple[Hydrophone, ...] = children(Hydrophone, "Three to eight hydrophones.", least=3)
    axis: Vector = key("Side to which a plane head looks, frame B.", default=(0.0, 0.0, 1.0), count=3)
    sound_speed: float = key("Assumed sound speed; 0 m/s: that of <acoustics>.", "speed", 0.0, low=0.0)
    timing_noise: float = key("Standard deviation of the time at each hydrophone.", "time", 0.0, low=0.0)
    timing_resolution: float = key("Step of these times; 0 = none.", "time", 0.0, low=0.0)


@dataclass(frozen=True)
class TransducerConfig:
    """An acoustic transducer and its electronics (spec: the sonar equation's terms)."""

    position: Vector = key("Where it sits on the body.", "length", (0.0, 0.0, 0.0), count=3)
    listen_low: float = key("Lower edge of the receiving band.", "frequency", 20e3, low=1.0)
    listen_high: float = key("Upper edge of the receiving band.", "frequency", 32e3, low=1.0)
    detection: str = choice("level: by `threshold`. snr: by `snr` over the noise in band.", ("level", "snr"), "level")
    threshold: float = key("Least received level that is detected (level).", "level", 80.0)
    snr: float = key("Least signal-to-noise ratio that is detected (snr).", "level", 10.0)
    source_level: float = key("Level of its own signals at 1 m.", "level", 188.0, low=0.0, high=260.0)
    pulse: float = key("Length of its signals; it is deaf while it sends.", "time", 0.01, low=0.0)
    bandwidth: float = key("Bandwidth of its signals; 0 Hz: 2/pulse, a tone burst's.", "frequency", 0.0, low=0.0)
    capture: float = key(
        "Of two receptions that overlap in time and band, one survives if it is stronger by this.",
        "level",
        10.0,
        low=0.0,
    )
    turn_around: float = key("Time from the arrival of a query to the start of the reply.", "time", 0.015, low=0.0)
    recharge: float = key("After sending, it cannot send for this long.", "time", 1.0, low=0.0)
    deaf_in_recharge: bool = flag("Whether it hears nothing either while it recharges.", False)
    query: float = key("Frequency of queries that it answers; 0 Hz = it never answers.", "frequency", 0.0)
    reply: float = key("Frequency of its replies.", "frequency", 0.0)
    tolerance: float = key("A query may be off by this much.", "frequency", 100.0, low=0.0)
    code: int = key(
        "Code of its signals, 0 = none. Signals of different codes do not collide.",
        default=0,
        low=0,
        high=65535,
        integer=True,
    )
    query_code: int = key("Code of queries that it answers; 0 = any.", default=0, low=0, high=65535, integer=True)
    timing_noise: float = key(
        "Standard deviation of the times it reports (the truth is logged beside).", "time", 0.0, low=0.0
    )
    timing_resolution: float = key("Step of the times it reports; 0 = 1 ns.", "time", 0.0, low=0.0)
    level_noise: float = key("Standard deviation of the levels it reports.", "level", 0.0, low=0.0)
    doppler_noise: float = key("Standard deviation of the frequencies it reports.", "frequency", 0.0, low=0.0)
    drop_out: float = key("Probability that a detection is lost all the same.", default=0.0, low=0.0, high=1.0)
    outlier: float = key("Probability that a reported time is late by chance.", default=0.0, low=0.0, high=1.0)
    outlier_time: float = key("Greatest such lateness (uniform).", "time", 0.02, low=0.0)
    self_noise: float = key("Noise of the body in the transducer, per Hz (snr).", "level", 0.0)
    self_noise_slope: float = key("Its growth, dB per m/s of speed.", default=0.0, low=0.0)
    beam: BeamPattern | None = child(BeamPattern, "Directivity; absent: the same to all sides.")
    clock: ClockConfig = child(ClockConfig, "Its clock.")
    pinger: Pinger | None = child(Pinger, "It pings by itself.")
    modem: Modem | None = child(Modem, "Packets.")
    head: UsblHead | None = child(UsblHead, "A USBL head.")

    @property
    def band(self) -> float:
        """Bandwidth of its pulses, Hz."""
        return self.bandwidth or (2.0 / self.pulse if self.pulse else 0.0)
