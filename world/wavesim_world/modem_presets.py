"""Presets of acoustic modems, beacons and USBL heads, for ``<transducer preset="...">``.

A preset lists values of the keys of ``<transducer>``, as in XML. The key ``modem.bit_rate`` is the ``bit_rate`` key of
the ``<modem>`` element in ``<transducer>``. Each value states its source or is marked as assumed.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any

from lxml import etree

from wavesim_sdk.errors import ConfigError
from wavesim_sdk.names import suggest_name
from wavesim_sdk.units import parse
from wavesim_world.modem_curves import ModemCurve, curve_names, energy_gain, find_curve

ASSUMED = "assumed"
DESCRIBED_BITS = 256  #: bits after the header of the packets for which a curve is described
DESCRIBED_SPREADS = (0.0, 1e-3, 10e-3)  #: s


@dataclass(frozen=True)
class PresetValue:
    """Value of a key in a preset, as text with its unit. ``source`` is ``ASSUMED`` if the value has no source."""

    key: str
    text: str
    source: str


@dataclass(frozen=True)
class ModemPreset:
    """Preset of an acoustic instrument. ``without`` lists the properties of the instrument that the preset does not
    describe.
    """

    name: str
    title: str
    values: tuple[PresetValue, ...]
    hydrophones: tuple[str, ...] = ()  #: positions of the hydrophones of a USBL head (forward, starboard, down)
    without: str = ""

    def text(self, key: str) -> str:
        """Return the value of a key as text; empty if the preset does not contain the key."""
        return next((v.text for v in self.values if v.key == key), "")

    @property
    def curve(self) -> ModemCurve | None:
        """Modem curve of the same name, if there is one."""
        return find_curve(self.name) if self.name in curve_names() else None

    @property
    def assumed(self) -> list[str]:
        """Keys whose values are assumed."""
        return [v.key for v in self.values if v.source == ASSUMED]


def _values(source: str, **texts: str) -> tuple[PresetValue, ...]:
    """Return values that share a source. The values are passed as keywords; in a keyword, two underscores separate an
    element from its key.
    """
    return tuple(PresetValue(key.replace("__", "."), text, source) for key, text in texts.items())


def _band(low: float, high: float, source: str) -> tuple[PresetValue, ...]:
    """Return the values for a receiving band (kHz), and for a modem signal that occupies the whole band."""
    middle, width = f"{(low + high) / 2:g} kHz", f"{high - low:g} kHz"
    return _values(source, listen_low=f"{low:g} kHz", listen_high=f"{high:g} kHz", bandwidth=width) + _values(
        source, modem__frequency=middle, modem__bandwidth=width
    )


#: a tetrahedron with edges of about 60 mm, like the head of a small USBL system
_TETRAHEDRON = ("0 0 0 m", "0.06 0 0 m", "0.03 0.052 0 m", "0.03 0.0173 0.049 m")
_NEWCASTLE = "Newcastle University's page on the nano-modem, and the university's simulator"
_SEATRAC = "command manual; DUNE's driver; seatrac_driver"
_WHOI = "WHOI's page on the Micro-Modem"
_NAME = "product name"
_WATER_LINKED = "Water Linked's documentation"


def _umodem(name: str, title: str, bit_rate: str, payload: str, source: str, preamble: str = "0.3 s") -> ModemPreset:
    preamble_source = _WHOI if name == "umodem-psk6" else ASSUMED
    return ModemPreset(
        name,
        f"WHOI Micro-Modem, {title}",
        _band(22.5, 27.5, "bandwidth of 5 kHz from WHOI's page; a centre frequency of 25 kHz is assumed")
        + _values(ASSUMED, source_level="190 dB", detection="snr", snr="8 dB", recharge="0.1 s")
        + _values(source, modem__bit_rate=bit_rate, modem__payload=payload)
        + _values(preamble_source, modem__preamble=preamble)
        + _values("default in DUNE and goby3", turn_around="20 ms"),
        without="frames: a packet of several frames is sent as a single block",
    )


def _evologics(name: str, low: float, high: float, bit_rate: str, level: str) -> ModemPreset:
    return ModemPreset(
        f"evologics-{name}",
        f"EvoLogics S2C R {name.replace('-', '/')}",
        _band(low, high, _NAME)
        + _values(ASSUMED, source_level=level, modem__bit_rate=bit_rate, modem__preamble="0.05 s")
        + _values("EvoLogics' AT commands: an instant message has up to 64 bytes", modem__payload="64")
        + _values(ASSUMED, detection="snr", snr="8 dB", recharge="0.05 s", timing_resolution="1 us"),
        without="burst data, link quality, adaptive bit rate",
    )


_NANO = ModemPreset(
    "nano-v3",
    "Newcastle nano-modem, third generation",
    _band(24.0, 32.0, _NEWCASTLE)
    + _values(_NEWCASTLE, source_level="168 dB", turn_around="40 ms", timing_resolution="31.25 us")
    + _values(
        "a packet of n bytes lasts 0.105 s + (n + 16)/80 s (university page)",
        modem__bit_rate="640",
        modem__preamble="0.305 s",
        modem__payload="64",
        pulse="0.105 s",
    )
    + _values("half of the packets are lost at -7 dB in noise (university page)", detection="snr", snr="-7 dB")
    + _values("two-way ranges deviate by 10 cm (university page)", timing_noise="133 us")
    + _values(ASSUMED, recharge="0.05 s"),
    without="losses due to multipath, unless the curve is used: under multipath conditions, the university found 0 to 2 dB instead of -7 dB",
)
_SEATRAC_VALUES = (
    _band(24.0, 32.0, ASSUMED)
    + _values(ASSUMED, source_level="172 dB", detection="snr", snr="0 dB", recharge="0.05 s")
    + _values(_SEATRAC, turn_around="10 ms", modem__bit_rate="100", modem__payload="31")
    + _values(ASSUMED, modem__preamble="0.4 s", timing_noise="67 us")
    + _values(f"the range step is 0.1 m ({_SEATRAC})", timing_resolution="133 us")
)

_ANEP = "ANEP-87, parameter set 1"

_ALL = (
    ModemPreset(
        "janus",
        "any modem that speaks JANUS (STANAG 4748), messages of class 16",
        _band(9.44, 13.6, _ANEP)
        + _values("a packet lasts 1.1 s, with a preamble of 0.2 s (ANEP-87)", modem__preamble="0.2 s")
        + _values(_ANEP, modem__bit_rate="160", modem__type="janus", modem__modulation="janus")
        + _values("the message has up to 480 bytes; a packet of the medium has up to 256", modem__payload="256")
        + _values(ASSUMED, source_level="185 dB", detection="snr", snr="0 dB", recharge="0.1 s"),
    ),
    _NANO,
    ModemPreset("seatrac-x110", "Blueprint Subsea SeaTrac X110 beacon", _SEATRAC_VALUES),
    ModemPreset(
        "seatrac-x150",
        "Blueprint Subsea SeaTrac X150 with USBL",
        _SEATRAC_VALUES + _values(ASSUMED, head__timing_noise="0.5 us"),
        _TETRAHEDRON,
    ),
    ModemPreset(
        "umodem-fsk",
        "WHOI Micro-Modem, frequency-shift keying (rate 0)",
        _band(23.0, 27.0, "bandwidth of 4 kHz from WHOI's page; a centre frequency of 25 kHz is assumed")
        + _values(_WHOI, modem__bit_rate="80", modem__payload="32", modem__preamble="0.9 s")
        + _values("default in DUNE and goby3", turn_around="20 ms")
        + _values(ASSUMED, source_level="190 dB", detection="snr", snr="5 dB", recharge="0.1 s"),
    ),
    _umodem("umodem-psk1", "rate 1", "250", "192", ASSUMED),
    _umodem("umodem-psk2", "rate 2", "500", "192", ASSUMED),
    _umodem("umodem-psk3", "rate 3", "1200", "256", ASSUMED),
    _umodem("umodem-psk4", "rate 4", "1300", "256", ASSUMED),
    _umodem("umodem-psk5", "rate 5", "5200", "256", "5000 to 5400 bit/s (WHOI's page)"),
    _umodem("umodem-psk6", "rate 6", "490", "192", _WHOI),
    ModemPreset(
        "lbl-transponder",
        "long-baseline transponder, as queried by a Micro-Modem or DUNE",
        _values("DUNE's defaults: query at 26 kHz, replies from 25 kHz upwards", query="26 kHz", reply="25 kHz")
        + _values("default in DUNE and goby3", turn_around="20 ms")
        + _values("length of DUNE's query pulse", pulse="3 ms")
        + _values(ASSUMED, listen_low="24 kHz", listen_high="32 kHz", source_level="190 dB", recharge="1 s"),
        without="the individual reply frequencies: set `reply` for each transponder (25, 27, 28 ... 31 kHz)",
    ),
    _evologics("7-17", 7.0, 17.0, "6900", "184 dB"),
    _evologics("18-34", 18.0, 34.0, "976", "184 dB"),
    _evologics("48-78", 48.0, 78.0, "976", "180 dB"),
    ModemPreset(
        "benthos-900",
        "Teledyne Benthos ATM-900, low frequency",
        _band(9.0, 14.0, ASSUMED)
        + _values(
            "140 to 15360 bit/s (a dealer's product page); the preset uses the lowest rate", modem__bit_rate="140"
        )
        + _values(ASSUMED, source_level="185 dB", modem__preamble="0.6 s", modem__payload="256")
        + _values(ASSUMED, detection="snr", snr="3 dB", recharge="0.1 s"),
    ),
    ModemPreset(
        "popoto",
        "Popoto modem at 80 bit/s",
        _band(20.0, 40.0, ASSUMED)
        + _values("popoto-api: 80 to 10240 bit/s, up to 255 bytes", modem__bit_rate="80", modem__payload="255")
        + _values(
            ASSUMED, source_level="180 dB", modem__preamble="0.5 s", detection="snr", snr="3 dB", recharge="0.1 s"
        ),
    ),
    ModemPreset(
        "subnero-m25m",
        "Subnero M25M",
        _band(20.0, 32.0, "resonance at 26 kHz; using 12 kHz of the 24 kHz bandwidth is recommended (UnetStack's blog)")
        + _values(ASSUMED, source_level="185 dB", modem__bit_rate="800", modem__preamble="0.1 s")
        + _values(ASSUMED, modem__payload="256", detection="snr", snr="6 dB", recharge="0.05 s"),
    ),
    ModemPreset(
        "wl-m64",
        "Water Linked M64, channel 4",
        _band(
            125.0,
            156.0,
            f"channels with a width of 31 kHz, from 31.25 to 250 kHz ({_WATER_LINKED}); the frequency band of "
            "channel 4 is assumed",
        )
        + _values(_WATER_LINKED, modem__bit_rate="64", modem__payload="8")
        + _values(
            ASSUMED, modem__preamble="0.01 s", source_level="165 dB", detection="snr", snr="6 dB", recharge="0 s"
        ),
    ),
    ModemPreset(
        "wl-m16",
        "Water Linked M16 at power level 4",
        _values(_WATER_LINKED, modem__frequency="58.5 kHz", modem__bit_rate="10", modem__payload="2")
        + _values("1105 mW (Water Linked's documentation); level: 171 dB + 10 log10(P / 1 W)", source_level="171 dB")
        + _values(ASSUMED, listen_low="57 kHz", listen_high="60 kHz", bandwidth="2 kHz", modem__bandwidth="2 kHz")
        + _values(ASSUMED, modem__preamble="0 s", detection="snr", snr="6 dB", recharge="0 s"),
        without="the speed limit of 0.8 m/s",
    ),
    ModemPreset(
        "uwave",
        "uWave modem",
        _band(20.0, 28.0, ASSUMED)
        + _values("manufacturer's brief: 78 bit/s", modem__bit_rate="78")
        + _values(ASSUMED, source_level="170 dB", modem__preamble="0.3 s", modem__payload="8")
        + _values(ASSUMED, detection="snr", snr="0 dB", recharge="0.1 s"),
        without="the modem has 20 code channels; set `code` instead",
    ),
    ModemPreset(
        "gaps-m7",
        "iXblue GAPS M7 USBL head",
        _values("level of its beacons (iXblue's manual)", source_level="191 dB")
        + _values(ASSUMED, listen_low="20 kHz", listen_high="30 kHz", pulse="10 ms", bandwidth="4 kHz")
        + _values(ASSUMED, detection="snr", snr="3 dB")
        + _values(ASSUMED, head__timing_noise="0.1 us"),
        ("0.1 0.1 0 m", "0.1 -0.1 0 m", "-0.1 -0.1 0 m", "-0.1 0.1 0.1 m"),
        without="the increase of the error at low signal-to-noise ratios and towards the horizontal",
    ),
    ModemPreset(
        "sonardyne-modem6",
        "Sonardyne Modem 6, at 900 bit/s",
        _band(19.0, 34.0, ASSUMED)
        + _values("manufacturer's page: 100 to 9000 bit/s", modem__bit_rate="900")
        + _values(ASSUMED, source_level="187 dB", modem__preamble="0.2 s", modem__payload="128")
        + _values(ASSUMED, detection="snr", snr="5 dB", recharge="0.05 s"),
    ),
    ModemPreset(
        "micron-modem",
        "Tritech Micron modem",
        _band(20.0, 28.0, ASSUMED)
        + _values("Tritech's manual: 40 bit/s", modem__bit_rate="40")
        + _values("Tritech's manual: the range error is 0.2 m", timing_noise="267 us")
        + _values(ASSUMED, source_level="169 dB", modem__preamble="0.3 s", modem__payload="32")
        + _values(ASSUMED, detection="snr", snr="3 dB", recharge="0.1 s"),
    ),
)


def _with_modulation(p: ModemPreset) -> ModemPreset:
    """Add the manufacturer's own modulation to a modem preset. Modems from other manufacturers do not understand this
    modulation.
    """
    if not p.text("modem.bit_rate") or p.text("modem.modulation"):
        return p
    make = p.name if p.name.startswith("wl-") else p.name.partition("-")[0]
    return replace(p, values=(*p.values, *_values("name of the manufacturer", modem__modulation=make)))


PRESETS: dict[str, ModemPreset] = {p.name: _with_modulation(p) for p in _ALL}


def find_preset(name: str) -> ModemPreset:
    """Return the preset with this name. Raises ConfigError, suggesting a similar name, if there is no such preset."""
    if name not in PRESETS:
        raise ConfigError(
            f"unknown modem preset '{name}'{suggest_name(name, sorted(PRESETS))}; list the presets with `wavesim modems`"
        )
    return PRESETS[name]


def fill_element(element: Any, preset: ModemPreset) -> None:
    """Add the values of a preset to a ``<transducer>``, for all keys that the element does not contain."""
    for value in preset.values:
        tag, _, key = value.key.rpartition(".")
        place = element
        if tag:
            place = element.find(tag)
            if place is None:
                place = etree.SubElement(element, tag)
        if key not in place.attrib:
            place.set(key, value.text)
    if preset.hydrophones:
        head = element.find("head")
        if head is None:
            head = etree.SubElement(element, "head")
        if head.find("hydrophone") is None:
            for position in preset.hydrophones:
                etree.SubElement(head, "hydrophone", position=position)


def expanded(name: str) -> str:
    """Return a preset as the XML of a ``<transducer>`` without the `preset` key."""
    element = etree.Element("transducer")
    fill_element(element, find_preset(name))
    etree.indent(element)
    return etree.tostring(copy.deepcopy(element), encoding="unicode")


def list_presets() -> str:
    """Return a text table with one line per preset."""
    lines = [
        f"{'name':17} {'band':>14} {'level':>7} {'bit/s':>6} {'bytes':>5} {'USBL':4} {'assumed':>8} {'curve':8}  instrument"
    ]
    for p in PRESETS.values():
        band = f"{p.text('listen_low').split()[0]}-{p.text('listen_high')}"
        count = f"{len(p.assumed)} of {len(p.values)}"
        lines.append(
            f"{p.name:17} {band:>14} {p.text('source_level'):>7} {p.text('modem.bit_rate') or '-':>6} "
            f"{p.text('modem.payload') or '-':>5} {'yes' if p.hydrophones else '-':4} {count:>8} "
            f"{p.curve.origin if p.curve else '-':8}  {p.title}"
        )
    return "\n".join(lines)


def _describe_curve(p: ModemPreset, curve: ModemCurve) -> list[str]:
    """Return the lines that describe the curve of a preset: its source, and the signal-to-noise ratios that it needs."""
    rate = float(p.text("modem.bit_rate"))
    gain = energy_gain(parse(p.text("modem.bandwidth"), "frequency")[0], rate)
    bits = curve.header_bits + DESCRIBED_BITS
    rows = [f"  {'curve':18} {curve.origin:10} {curve.source}"]
    for spread in DESCRIBED_SPREADS:
        needed = (curve.required_energy(loss, bits, spread * rate) - gain for loss in (0.5, 0.1, 0.01))
        values = ", ".join(f"{value:.1f}" for value in needed).replace("inf", "-")
        rows.append(
            f"  {'':18} {'':10} SNR for 50, 10 and 1 % loss of packets with {bits:g} bits, "
            f"delay spread {1e3 * spread:g} ms: {values} dB"
        )
    return rows


def describe_preset(p: ModemPreset) -> str:
    """Return the values of a preset with their sources, and the XML element that uses it."""
    rows = [f"  {v.key:18} {v.text:10} {v.source}" for v in p.values]
    if p.hydrophones:
        rows.append(f"  {'head.hydrophone':18} {f'{len(p.hydrophones)} positions':10} {ASSUMED}")
    if p.without:
        rows.append(f"  not described      {p.without}")
    if p.curve is not None:
        rows += _describe_curve(p, p.curve)
    modem = '<modem address="1"/>' if p.text("modem.bit_rate") else ""
    use = f'<transducer preset="{p.name}">{modem}</transducer>' if modem else f'<transducer preset="{p.name}"/>'
    return "\n".join([p.title, *rows, f"  use it             {use}"])
