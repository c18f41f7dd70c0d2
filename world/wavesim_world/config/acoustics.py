"""Declarations of the acoustic medium, and of the transducers that transmit and receive in it.

This module is part of the configuration model. A configuration file may use any supported unit; the objects contain SI
values and radians. Levels are in dB re 1 uPa (at 1 m for sources).
"""

from __future__ import annotations

from dataclasses import dataclass

from wavesim_world.config.schema import Vector, child, children, choice, content, flag, key, key_or_word, place, text

# ------------------------------------------------------------------ the medium


@dataclass(frozen=True)
class Multipath:
    """Echoes from the surface and the bottom. They are computed with image sources if the sound speed is constant, and
    with eigenrays otherwise.
    """

    order: int = key(
        "Maximum number of bounces of a propagation path, off the surface and the bottom together; 0 = no echoes.",
        default=2,
        low=0,
        high=6,
        integer=True,
    )
    surface_loss: float = key("Constant loss per surface bounce.", "level", 0.0, low=0.0)
    surface: str = choice(
        "Reflection at the surface. rough: waves scatter part of the sound away. bubbles: wind-generated bubbles "
        "absorb part of the sound. Both losses follow from the waves and wind at the start. moving: "
        "each bounce uses the waves and the tide at its position and time, without loss. flat: no effects.",
        ("flat", "rough", "bubbles", "moving"),
        "flat",
    )
    bottom_density: float = key(
        "Density of the sea bottom divided by the density of the water.", default=1.9, low=1.0, high=5.0
    )
    bottom_speed: float = key("Speed of sound in the sea bottom.", "speed", 1650.0, low=100.0, high=6000.0)
    bottom_attenuation: float = key(
        "Attenuation of sound in the sea bottom, dB per wavelength.", default=0.8, low=0.0, high=10.0
    )


@dataclass(frozen=True)
class ChannelReplay:
    """Replay of a measured channel: the signals of a body reach a hydrophone through a measured impulse response instead
    of the paths of the medium.

    The medium still determines when the first sound arrives and, with level="medium", how strong the sound is. Receptions
    of transducers do not change.
    """

    source: str = text("Name of the body whose transducer transmits.", name="from")
    receiver: str = text(
        "Hydrophone that hears the body: the name of a body, for all its hydrophones, or `body.hydrophone`.", name="to"
    )
    file: str = text("Path of the measured channel, a file of the uwa-channels format 1.0.")
    start: float | str = key_or_word(
        "drawn",
        "Time in the file at which each signal starts. drawn: a random time for each signal and hydrophone, which "
        "depends on the seed.",
        "time",
        "drawn",
        low=0.0,
    )
    level: str = choice(
        "Level of the sound. medium: its mean power is that of the first path of the medium. file: the pressure "
        "at 1 m times the impulse response of the file.",
        ("medium", "file"),
        "medium",
    )
    receivers: Vector = key(
        "Numbers, from 1, of the receivers in the file. One number: all elements of the hydrophone use this receiver. "
        "One number for each element: the file also contains the delays between the elements.",
        default=(1.0,),
        count=0,
        low=1.0,
    )
    place: str = place()


@dataclass(frozen=True)
class Acoustics:
    """Acoustic medium. After a path of length s, the received level is RL = SL - (L + alpha s). L is the spreading loss
    and alpha the absorption coefficient.
    """

    sound_speed: float = key(
        "Speed of sound in the water. If `profile` is not constant, it is the speed at the surface and the speed "
        "that instruments assume.",
        "speed",
        1500.0,
        low=100.0,
        high=3000.0,
    )
    profile: str = choice(
        "Sound speed profile. constant: `sound_speed` everywhere. gradient: sound_speed + gradient * z at depth z. "
        "file: linear between the rows of `file`. water: `formula`, from the temperature, salinity and pressure at the "
        "origin. volume: `formula`, at each point and time of the <volume>.",
        ("constant", "gradient", "file", "water", "volume"),
        "constant",
    )
    gradient: float = key(
        "Change in sound speed per metre of depth, 1/s (profile=gradient).", default=0.016, low=-1.0, high=1.0
    )
    file: str = text(
        "Path of the sound speed profile file (profile=file): rows `depth speed` (m, m/s), in ascending order of "
        "depth.",
        "",
    )
    refinement: int = key(
        "Number of parts into which each cell of the <volume> is divided in both horizontal directions, for the grid of "
        "sound speeds (profile=volume).",
        default=2,
        low=1,
        high=16,
        integer=True,
    )
    formula: str = choice(
        "Formula for the sound speed of sea water: Chen and Millero (UNESCO 44), Del Grosso, Mackenzie, Medwin, or "
        "Leroy et al. (2008).",
        ("chen-millero", "del-grosso", "mackenzie", "medwin", "leroy"),
        "chen-millero",
    )
    absorption: float = key(
        "Absorption coefficient of the water, if `absorption_model` is constant.", "attenuation", 0.005, low=0.0
    )
    absorption_model: str = choice(
        "Absorption model: constant, or a function of frequency by Thorp (1967), extended Thorp, Francois and "
        "Garrison, or Ainslie and McColm. The last two also use `temperature`, `salinity`, `ph` and `depth`.",
        ("constant", "thorp", "thorp-extended", "francois-garrison", "ainslie-mccolm"),
        "constant",
    )
    temperature: float = key("Water temperature for the absorption model.", "temperature", 10.0, low=-2.0, high=40.0)
    salinity: float = key("Practical salinity of the water for the absorption model.", default=35.0, low=0.0, high=45.0)
    ph: float = key("pH of the water for the absorption model.", default=8.0, low=7.0, high=9.0)
    depth: float = key("Water depth for the absorption model.", "length", 0.0, low=0.0)
    spreading: float = key(
        "Factor k of the spreading loss k log10 s after a path of length s: 20 for spherical, 10 for cylindrical "
        "spreading. 0 = computed from the ray tube of each ray; if the sound speed is constant, k is then 20.",
        default=0.0,
        low=0.0,
        high=40.0,
    )
    sum: str = choice(
        "Level of a reception when several propagation paths of the same signal overlap at the receiver. first: "
        "the level of the first path. incoherent: the sum of the powers. coherent: the sum of the pressures, "
        "with phases from travel time, bounces and caustics.",
        ("first", "incoherent", "coherent"),
        "first",
    )
    paths: int = key(
        "Maximum number of propagation paths traced for a signal to each node, if the sound speed depends on "
        "depth. The first path and the strongest of the others are used. `clock.paths_dropped` counts the omitted "
        "paths.",
        default=32,
        low=1,
        high=256,
        integer=True,
    )
    noise_model: str = choice(
        "Ambient noise model. constant: `ambient_noise` in any band. wenz: the Wenz curves in Coates' form, evaluated "
        "for the frequency, the shipping density and the mean wind of the world.",
        ("constant", "wenz"),
        "constant",
    )
    ambient_noise: float = key(
        "Ambient noise level in the band of a signal, for noise_model=constant. A signal that is weaker than "
        "the noise is lost (outcome `faded`).",
        "level",
        60.0,
    )
    shipping: float = key(
        "Shipping density for the `wenz` noise model: 0 = none, 1 = heavy.", default=0.5, low=0.0, high=1.0
    )
    rain: float = key(
        "Rain rate in mm/h, for noise_model=wenz: 1 = light, 10 = moderate, 50 = heavy rain.",
        default=0.0,
        low=0.0,
        high=1000.0,
    )
    shrimp: float = key(
        "Spectrum level (per Hz) of the noise of snapping shrimp above 2 kHz, in addition to the noise of the model; 0 dB "
        "= no shrimp.",
        "level",
        0.0,
        low=0.0,
        high=120.0,
    )
    shrimp_alpha: float = key(
        "Impulsiveness of the noise of snapping shrimp in the samples of hydrophones: the exponent of its symmetric "
        "alpha-stable distribution. The smaller it is, the stronger and rarer are the snaps.",
        default=1.6,
        low=1.2,
        high=1.95,
    )
    max_range: float = key(
        "Maximum length of a propagation path. Beyond it, a signal is lost (outcome `faded`), whatever its "
        "level; 0 m = only the level limits the range.",
        "length",
        0.0,
        low=0.0,
    )
    blocking: bool = flag(
        "Whether obstacles and hills of the sea bed block sound. With profile=volume, the sea bed always stops or reflects "
        "a ray, and this key only applies to obstacles.",
        True,
    )
    multipath: Multipath | None = child(Multipath, "Echoes from the surface and the bottom.")
    replay: tuple[ChannelReplay, ...] = children(
        ChannelReplay, "ChannelReplay of a measured channel between a body and a hydrophone."
    )


# ------------------------------------------------------------------ instruments


@dataclass(frozen=True)
class BeamPattern:
    """Directivity of a transducer, the same for transmission and reception.

    pattern=piston: a disc whose -3 dB beam has the full width `width` around `axis`. pattern=toroid: strongest in the
    plane perpendicular to the `axis` and weak along the axis. The -3 dB points lie at the angle `width`/2 from that
    plane. pattern=table: rows `angle loss`, with the angle from the axis in degrees and the loss in dB.
    """

    axis: Vector = key(
        "Axis of the beam in the body frame B. It is normalised to a unit vector.", default=(0.0, 0.0, 1.0), count=3
    )
    pattern: str = choice("Shape of the transducer's beam.", ("piston", "toroid", "table"), "piston")
    width: float = key(
        "Full width of the beam between its -3 dB points.", "angle", 1.0471975511965976, low=0.01, high=3.1
    )
    floor: float = key(
        "Largest loss of the beam pattern. In the nulls, the loss is limited to this value; behind a piston, the loss "
        "equals this value. pattern=table does not use this key.",
        "level",
        40.0,
        low=0.0,
    )
    rows: Vector = content("Beam pattern as rows `angle loss` (deg, dB), for pattern=table.", 0)


@dataclass(frozen=True)
class ClockConfig:
    """Clock of an acoustic node. At simulation time t, it shows t + offset + drift t.

    An acoustic node uses its own clock for all times that it reports or receives in commands.
    """

    offset: float = key("Offset of the node's clock at the start of the run.", "time", 0.0)
    drift: float = key("Relative drift of the node's clock.", "drift", 0.0, low=-1e-2, high=1e-2)
    offset_deviation: float = key(
        "Standard deviation of a random error that is added to the clock offset. The error is normally distributed "
        "and depends on the seed.",
        "time",
        0.0,
        low=0.0,
    )
    drift_deviation: float = key(
        "Standard deviation of a random error that is added to the clock drift. The error is normally distributed "
        "and depends on the seed.",
        "drift",
        0.0,
        low=0.0,
    )


@dataclass(frozen=True)
class Pinger:
    """Pinger that transmits without a command. It transmits at each multiple of `period` on its own clock, plus
    `offset`. If the element contains times, for example those of a recorded trial, it transmits at these times instead.
    """

    frequency: float = key(
        "Carrier frequency of the pings. Required unless `waveform` is set.", "frequency", 0.0, low=0.0
    )
    waveform: str = text(
        "Path of a WAV file with one channel, which the pinger plays at each ping instead of a pulse. Its rms level is the "
        "`source_level` of the transducer; its duration and band follow from the file. Empty = a pulse.",
        "",
    )
    period: float = key(
        "Interval between pings, on the clock of the node; at least 10 ms. Required unless the element contains times.",
        "time",
        0.0,
        low=0.0,
    )
    offset: float = key(
        "Delay of each ping relative to a multiple of `period`, on the clock of the node.", "time", 0.0, low=0.0
    )
    rows: tuple[float, ...] = content(
        "Times of the pings in s, in ascending order, on the clock of the node. They replace `period` and `offset`."
    )


@dataclass(frozen=True)
class Modem:
    """Acoustic modem that sends packets with a payload. It answers range requests to its address after its turn-around
    time.
    """

    address: int = key(
        "Address of the modem; 0 = the modem cannot be addressed.", default=0, low=0, high=2**31, integer=True
    )
    frequency: float = key("Carrier frequency of the modem's packets.", "frequency", 25e3, low=1.0)
    bandwidth: float = key("Bandwidth of the modem's packets.", "frequency", 4e3, low=1.0)
    bit_rate: float = key("Bit rate of the modem's payload, in bits per second.", default=640.0, low=0.1)
    preamble: float = key(
        "Duration of the synchronisation signal and the header of a packet, which precede the payload.",
        "time",
        0.03,
        low=0.0,
    )
    payload: int = key("Maximum payload of a packet, in bytes.", default=64, low=0, high=256, integer=True)
    modulation: str = text(
        "Name of the modem's modulation (waveform and coding). A modem understands only packets with its own "
        "modulation; packets with another modulation are lost (outcome `foreign`), but still interfere. Empty: the "
        "modulation shared by all modems that do not name one.",
        "",
    )
    bit_error: float = key(
        "Bit error probability. A packet with one or more bit errors is lost.", default=0.0, low=0.0, high=1.0
    )
    curve: str = text(
        "Name of a modem curve, as listed by `wavesim modems`: the loss of packets against signal-to-noise ratio, delay "
        "spread and Doppler shift. It replaces `bit_error` and, for packets, the detection criterion. Empty: the curve "
        "of the modem type, or none.",
        "",
    )
    type: str = text(
        "Name of a modem type: `janus`, or a type that an installed package provides. It determines the channel coding "
        "and the medium access control. Empty: packets are uncoded and are sent immediately.",
        "",
    )


@dataclass(frozen=True)
class Hydrophone:
    """Hydrophone of a USBL head."""

    position: Vector = key(
        "Position of the hydrophone in the body frame (forward, starboard, down).", "length", count=3
    )


@dataclass(frozen=True)
class UsblHead:
    """USBL head: it computes the direction of arrival from the arrival times at several hydrophones.

    A USBL head assumes a plane wave and the sound speed `sound_speed`. It needs at least four hydrophones that are not
    coplanar, or at least three coplanar ones. A head with coplanar hydrophones also needs `axis`, which
    specifies the side that the head faces.
    """

    hydrophone: tuple[Hydrophone, ...] = children(
        Hydrophone, "Hydrophone of the head. A head has three to eight.", least=3
    )
    axis: Vector = key(
        "Direction that a planar USBL head faces, in the body frame B.", default=(0.0, 0.0, 1.0), count=3
    )
    sound_speed: float = key(
        "Sound speed that the USBL head assumes; 0 m/s = `sound_speed` of <acoustics>.", "speed", 0.0, low=0.0
    )
    timing_noise: float = key("Standard deviation of the arrival time error at each hydrophone.", "time", 0.0, low=0.0)
    timing_resolution: float = key(
        "Resolution of the arrival times at the hydrophones; 0 = exact.", "time", 0.0, low=0.0
    )


@dataclass(frozen=True)
class TransducerConfig:
    """Acoustic transducer and its electronics, described in terms of the sonar equation.

    `preset` selects a modem, beacon or USBL head by name; `wavesim modems` lists the presets and the sources of their
    values. A key in the file overrides the value of the preset.
    """

    preset: str = text("Name of the modem preset, as listed by `wavesim modems`; empty = none.", "")

    position: Vector = key(
        "Position of the transducer in the body frame (forward, starboard, down).", "length", (0.0, 0.0, 0.0), count=3
    )
    listen_low: float = key("Lower edge of the transducer's receiving band.", "frequency", 20e3, low=1.0)
    listen_high: float = key("Upper edge of the transducer's receiving band.", "frequency", 32e3, low=1.0)
    listening: str = choice(
        "When the transducer receives and answers. always: during the whole run. asked: only while a client controls "
        "its body, or after `Simulation.listen`; all other receptions are neither computed nor recorded.",
        ("always", "asked"),
        "always",
    )
    detection: str = choice(
        "Detection criterion. level: received level of at least `threshold`. snr: signal-to-noise ratio of at "
        "least `snr` in the band.",
        ("level", "snr"),
        "level",
    )
    threshold: float = key("Minimum received level for detection (detection=level).", "level", 80.0)
    snr: float = key("Minimum signal-to-noise ratio for detection (detection=snr).", "level", 10.0)
    source_level: float = key(
        "Source level of the transducer's own signals, at 1 m.", "level", 188.0, low=0.0, high=260.0
    )
    pulse: float = key(
        "Duration of the transducer's signals. The transducer cannot receive while it is transmitting.",
        "time",
        0.01,
        low=0.0,
    )
    bandwidth: float = key(
        "Bandwidth of the transducer's signals; 0 Hz = the bandwidth of a tone burst, which is 2 divided by `pulse`.",
        "frequency",
        0.0,
        low=0.0,
    )
    capture: float = key(
        "Capture ratio. When two receptions overlap in time and band, the weaker one is lost. The stronger one "
        "is also lost unless it exceeds the weaker one by this ratio.",
        "level",
        10.0,
        low=0.0,
    )
    turn_around: float = key(
        "Turn-around time from the arrival of a query to the start of the reply.", "time", 0.015, low=0.0
    )
    recharge: float = key(
        "Recharge time after a transmission. During this time, the transducer cannot transmit.", "time", 1.0, low=0.0
    )
    deaf_in_recharge: bool = flag("Whether recharging also blocks reception.", False)
    carrier_sense: bool = flag(
        "Whether the transducer reports when the channel becomes busy or idle. The channel is busy while the "
        "transducer transmits, or while a signal arrives that it could detect without interference.",
        False,
    )
    query: float = key(
        "Frequency of the queries that the transducer answers; 0 Hz = it never answers.", "frequency", 0.0
    )
    reply: float = key("Frequency of the transducer's replies.", "frequency", 0.0)
    tolerance: float = key(
        "Tolerance of the query frequency. The transducer answers a query whose frequency differs from `query` "
        "by at most this value.",
        "frequency",
        100.0,
        low=0.0,
    )
    code: int = key(
        "Code of the transducer's signals; 0 = no code. Signals with different codes do not collide.",
        default=0,
        low=0,
        high=65535,
        integer=True,
    )
    query_code: int = key(
        "Code of the queries that the transducer answers; 0 = any code.", default=0, low=0, high=65535, integer=True
    )
    timing_noise: float = key(
        "Standard deviation of the error in reported times. The log also contains the true times.", "time", 0.0, low=0.0
    )
    timing_resolution: float = key("Resolution of reported times; 0 = 1 ns.", "time", 0.0, low=0.0)
    level_noise: float = key("Standard deviation of the error in reported levels.", "level", 0.0, low=0.0)
    doppler_noise: float = key("Standard deviation of the error in reported frequencies.", "frequency", 0.0, low=0.0)
    drop_out: float = key("Probability that a detection is lost at random.", default=0.0, low=0.0, high=1.0)
    fluctuation: float = key(
        "Standard deviation of the random fluctuation of received levels. Each reception has its own fluctuation, so "
        "the share of detections falls smoothly with distance.",
        "level",
        0.0,
        low=0.0,
    )
    outlier: float = key(
        "Probability that a reported time is an outlier: later than the true time by a random delay.",
        default=0.0,
        low=0.0,
        high=1.0,
    )
    outlier_time: float = key(
        "Maximum delay of an outlier in a reported time. The delay is uniformly distributed from 0 to this value.",
        "time",
        0.02,
        low=0.0,
    )
    self_noise: float = key(
        "Spectrum level (per Hz) of the noise that the body itself causes at the transducer, for detection=snr.",
        "level",
        0.0,
    )
    self_noise_slope: float = key(
        "Increase in the body's own noise level with its speed, in dB per m/s.", default=0.0, low=0.0
    )
    beam: BeamPattern | None = child(
        BeamPattern, "Directivity of the transducer. If absent, the transducer is omnidirectional."
    )
    clock: ClockConfig = child(ClockConfig, "Clock of the acoustic node.")
    pinger: Pinger | None = child(Pinger, "Pinger: the transducer transmits periodically without a command.")
    modem: Modem | None = child(Modem, "Modem: the transducer transmits packets with a payload.")
    head: UsblHead | None = child(UsblHead, "USBL head with several hydrophones.")

    @property
    def band(self) -> float:
        """Bandwidth of the transducer's signals in Hz: `bandwidth`, or 2/pulse if `bandwidth` is 0."""
        return self.bandwidth or (2.0 / self.pulse if self.pulse else 0.0)


@dataclass(frozen=True)
class RadiatedNoise:
    """Noise that a body radiates into the water. Hydrophones record it, also those of the body itself, and it is part of
    the noise at every transducer.

    The broadband noise is flat below 100 Hz, and decreases by 20 dB per decade above. A propeller and a machine add
    tones: their fundamentals and the harmonics, whose levels decrease by 6 dB per octave.
    """

    position: Vector = key(
        "Position of the noise source in the body frame (forward, starboard, down).",
        "length",
        (0.0, 0.0, 0.0),
        count=3,
    )
    level: float = key(
        "Spectrum level (per Hz) of the broadband noise at 1 kHz, at 1 m, with the body at rest.",
        "level",
        low=0.0,
        high=220.0,
    )
    slope: float = key(
        "Increase in the broadband noise and the tones with the speed of the body over ground, in dB per m/s.",
        default=0.0,
        low=0.0,
        high=40.0,
    )
    blades: int = key(
        "Number of blades of the propeller; 0 = no tones from a propeller.", default=0, low=0, high=16, integer=True
    )
    propeller: str = text(
        "Name of the thruster with the propeller; its model must have law=shaft. Empty: the first such thruster.", ""
    )
    blade_level: float = key(
        "Level of the tone at the blade rate, at 1 m, with the body at rest; 0 dB = no tones from a propeller.",
        "level",
        0.0,
        low=0.0,
        high=240.0,
    )
    machine: float = key(
        "Fundamental frequency of the machine's tones; 0 Hz = no machine.", "frequency", 0.0, low=0.0, high=20e3
    )
    machine_level: float = key(
        "Level of the machine's fundamental, at 1 m, with the body at rest; 0 dB = no machine.",
        "level",
        0.0,
        low=0.0,
        high=240.0,
    )
