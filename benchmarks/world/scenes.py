"""Configurations of the worlds: small fleets with all settings that concern sessions.

A process loads them once, because loading takes a thousand times as long as a world.
"""

from __future__ import annotations

import atexit
import functools
import random
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from wavesim_world.config import LoadedConfig, load

_TRANSDUCER = '<transducer recharge="200 ms" query="25 kHz" reply="26 kHz"><modem address="{}"/></transducer>'
_BODIES = f"""
  <vehicle name="auv" model="remus100" position="0 0 10 m" client="required" watchdog="1 s" failsafe="zero">
    {_TRANSDUCER.format(1)}
    <sensors><dvl name="dvl-down" rate="2 Hz"/><dvl name="dvl-up" rate="1 Hz" attitude="180 0 0 deg"/></sensors>
  </vehicle>
  <vehicle name="usv" model="jolner" position="30 0 0 m" client="optional" truth="none" instruments="listen">
    {_TRANSDUCER.format(2)}
  </vehicle>
  <vehicle name="drifter" model="bluerov2" position="60 20 5 m" client="optional"><sensors inherit="no"/></vehicle>
  <vehicle name="wreck" model="lauv" position="-50 0 20 m"/>
  <buoy name="beacon" model="buoy" position="100 0 8 m">
    {_TRANSDUCER.format(3)}
    <mooring anchor="100 0 60 m" length="51 m" stiffness="1500 N/m" damping="150 N s/m"/>
  </buoy>
"""
_FENCE = """<fence name="pen"><corner north="-100 m" east="-100 m"/><corner north="-100 m" east="200 m"/>
  <corner north="200 m" east="200 m"/><corner north="200 m" east="-100 m"/></fence>"""
_WORLD = '<world><current north="0.2 m/s"/><bed depth="80 m"/><wind speed="5 m/s"/></world>'
_SENSORS = '<sensors><ctd rate="2 Hz"/><gps rate="1 Hz"/></sensors>'
#: more numbers than fit into a datagram
_MANY = (
    "<sensors>"
    + "".join(f'<ctd name="ctd-{k}" rate="2 Hz"/><imu name="imu-{k}" rate="2 Hz"/>' for k in range(8))
    + ('<multibeam name="swath" rate="1 Hz"/></sensors>')
)
_GRANTS = (
    '<grant to="*" role="pilot" rights="fault push pose allocate weather control"/>'
    '<grant to="usv" role="any" rights="fault push pose" others="yes"/>'
    '<grant to="*" role="observer" rights="weather control" others="yes"/>'
)


_HASTY = 'lockstep_timeout="0.3 s" datagram_rate="400 Hz"'


def _text(
    step: str,
    time: str = 'pace="fast"',
    network: str = "",
    grants: str = "",
    sensors: str = _SENSORS,
    vehicles: int = 8,
) -> str:
    """Return a configuration. Its time limits are short, so that a short run reaches all of them."""
    return f"""<wavesim name="world" seed="5">
  <time step="{step}" {time}/>
  {_WORLD}
  <acoustics sound_speed="1500 m/s"/>
  <network keepalive_period="0.2 s" keepalive_timeout="0.6 s" state_rate="10 Hz" acoustic_rate="5 Hz"
    {_HASTY if "lockstep_timeout" not in network else ""} observers="2" sessions="12" newcomers="lockstep" {network}>{grants}</network>
  <shared vehicles="{vehicles}" signals="64"/>
  <log file="run.mcap" state_rate="2 Hz"/>
  <fleet>{_BODIES}{_FENCE}{sensors}</fleet>
</wavesim>"""


_SEALED = 'keys="clients.keys"'
_PATIENT = 'lockstep_timeout="1 s" datagram_rate="300 Hz"'  #: long enough for three copies of a STEP
_TEXTS = {
    "plain": _text("20 ms"),
    "rights": _text("20 ms", grants=_GRANTS),
    "takeover": _text("100 ms", network='takeover="yes"', grants=_GRANTS),
    "realtime": _text("50 ms", time='pace="realtime"', network='takeover="yes"'),
    "hasty": _text("100 ms", time='pace="realtime" speed="2" duration="4 s"', grants=_GRANTS),
    "keys": _text("20 ms", network=_SEALED, grants=_GRANTS),
    "many": _text("50 ms", network=f'{_SEALED} takeover="yes"', sensors=_MANY),
    "narrow": _text("100 ms", vehicles=6, grants=_GRANTS),
}
NAMES = tuple(_TEXTS)
#: values of the siege become stale after a second, so that even a short siege with stopped emulators has stale values
_FREQUENT = '<sensors><ctd rate="5 Hz"/><gps rate="5 Hz"/></sensors>'
#: scenes of the siege: long steps, so that little is computed; half of them have keys
_TEXTS |= {
    "besieged": _text("100 ms", network=_PATIENT, grants=_GRANTS, sensors=_FREQUENT),
    "besieged with keys": _text("100 ms", network=f"{_SEALED} {_PATIENT}", grants=_GRANTS, sensors=_FREQUENT),
}
BESIEGED = tuple(n for n in _TEXTS if n not in NAMES)
KEYS = {name: random.Random(f"key of {name}").randbytes(32) for name in ("*", "auv", "usv")}


@dataclass(frozen=True)
class Scene:
    """A loaded configuration."""

    name: str
    loaded: LoadedConfig
    sealed: bool

    @property
    def bodies(self) -> tuple[str, ...]:
        """Return the names of configured bodies that accept a pilot."""
        return tuple(b.name for b in self.loaded.config.fleet.bodies if b.client != "none")

    @property
    def words(self) -> tuple[str, ...]:
        """Return the names that have a meaning in this scene."""
        found = {b.name for b in self.loaded.config.fleet.bodies} | set(NEWCOMERS) | set(_WORDS)
        found |= {i.name for b in self.loaded.config.fleet.bodies for i in self.loaded.suite(b)}
        return tuple(sorted(found))


#: newcomers and their models; `otter` cannot be integrated with the longest step
NEWCOMERS = {"otto": "otter", "newby": "remus100", "third": "vita1", "late-one": "box-buoy"}
_WORDS = (
    "start", "stop", "pause", "resume", "step", "speed", "shutdown", "status", "fault", "push", "pose", "allocate", "weather",
    "none", "stuck", "frozen", "lost", "reduced", "reversed", "bias", "spikes", "noisy", "wet", "unlocked", "propeller", "port",
    "starboard", "rudder-top", "bow", "temperature", "latitude", "lauv", "remus100", "otter", "buoy", "nonesuch", "", "*",
)  # fmt: skip


@functools.cache
def folder() -> Path:
    """Return the folder in which this process stores its files."""
    made = Path(tempfile.mkdtemp(prefix="wavesim-world-"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    keys = made / "clients.keys"
    keys.write_text("".join(f"{name} {key.hex()}\n" for name, key in KEYS.items()))
    keys.chmod(0o600)
    return made


@functools.cache
def scene(name: str) -> Scene:
    """Return the scene of one of :data:`NAMES`."""
    path = folder() / f"{name}.xml"
    path.write_text(_TEXTS[name])
    return Scene(name, load(path), _SEALED in _TEXTS[name])
