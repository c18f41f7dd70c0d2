"""Encounters as files for live trials with a server, emulators, and an on-board program that detects the other vessels
only by AIS and radar.
"""

from __future__ import annotations

import math
import os
import shlex
from pathlib import Path
from xml.sax.saxutils import quoteattr

from wavesim_sdk.errors import ConfigError
from wavesim_sdk.guidance.avoiders import REFERENCE, make_avoider
from wavesim_studies.traffic.encounter_runs import LARGE
from wavesim_studies.traffic.encounters import Encounter, VesselStart
from wavesim_world.config import library

BEYOND = 1.9  #: duration of a trial as a multiple of the time until the ships meet
#: fraction of the time until the ships meet that remains when a rogue vessel leaves its course
BAND = 0.35


def text(encounter: Encounter, model: str, captain: str, rogue: bool = False, avoider: str = REFERENCE) -> str:
    """Return the configuration: own ship with ``captain`` and an avoider, and the other vessels.

    The paths of the program ``captain`` and of the file of an ``avoider`` are relative to the configuration. With
    ``rogue``, the first of the other vessels leaves its course before the ships meet, and steers for the future
    position of own ship.
    """
    own = library()[model]
    if own.box is None:
        raise ConfigError(f"'{model}' has no hull that sensors could detect: use a model with a <box>")
    o, meeting = encounter.own, encounter.meeting
    kind = "ship" if own.box.length > LARGE else "boat"
    reach = max(3.0 * math.hypot(o.north, o.east), 3000.0)
    captains = f'run={quoteattr(captain)} period="{"1 s" if kind == "ship" else "100 ms"}"'
    seen = f"""      <sensors>
        <radar position="0 0 -4 m" maximum="{reach:.0f} m" range_sigma="3 m" trend="15 s" memory="20"/>
        <ais rate="1 Hz" mmsi="257000100" station="A" position="0 0 -4 m"/>
      </sensors>"""
    options = "--avoid ais radar" + ("" if avoider == REFERENCE else f" --avoider {shlex.quote(avoider)}")
    bodies = [_vessel(o, model, seen, f"{captains} options={quoteattr(options)}", [encounter.goal], o.speed)]
    for k, other in enumerate(encounter.others):
        heard = f'      <sensors><ais rate="1 Hz" mmsi="{257000101 + k}" station="A"/></sensors>'
        legs = _rogue_legs(other, o, meeting) if rogue and k == 0 else list(other.waypoints)
        bodies.append(_vessel(other, kind, heard, captains if legs else "", legs, other.speed))
    name, source = quoteattr(encounter.name), encounter.source.replace("--", "-")
    return f"""<?xml version="1.0" encoding="utf-8"?>
<!-- {source}. -->
<wavesim name={name} seed="1">
  <time step="{"50 ms" if kind == "ship" else "10 ms"}" duration="{BEYOND * meeting:g} s" pace="fast"/>
  <world latitude="59.42 deg" longitude="10.48 deg"><bed depth="200 m"/></world>
  <fleet>
{chr(10).join(bodies)}
  </fleet>
</wavesim>
"""


def write(
    encounter: Encounter, folder: Path, model: str, captain: Path, rogue: bool = False, avoider: str = REFERENCE
) -> Path:
    """Write the configuration to a folder, and return the path of the file. Raise ConfigError on failure.

    ``avoider`` is the name of the avoider; the path of its file is relative to the working folder.
    """
    path = folder / f"{encounter.name}.xml"
    if not captain.is_file():
        raise ConfigError(
            f"program {captain} does not exist; name one with --captain, such as examples/onboard/captain.py"
        )
    own = library()[model]
    make_avoider(avoider, own.box.length if own.box is not None else 1.0, encounter.own.speed)  # check it
    file, colon, which = avoider.rpartition(":")
    if file.endswith(".py"):
        avoider = f"{os.path.relpath(Path(file).resolve(), folder.resolve())}{colon}{which}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        program = os.path.relpath(captain.resolve(), folder.resolve())
        path.write_text(text(encounter, model, program, rogue, avoider))
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from None
    return path


def _rogue_legs(other: VesselStart, own: VesselStart, meeting: float) -> list[tuple[float, float]]:
    """Return the legs of a rogue vessel. The vessel first follows its course. It then steers for the position that own
    ship will reach after a third of the remaining time, and continues beyond it.
    """
    north, east = other.velocity
    leaves = (1.0 - BAND) * meeting
    at = other.north + north * leaves, other.east + east * leaves
    later = leaves + BAND / 3.0 * meeting
    to = own.north + own.velocity[0] * later, own.east + own.velocity[1] * later
    return [at, to, (2.0 * to[0] - at[0], 2.0 * to[1] - at[1])]


def _vessel(
    s: VesselStart, model: str, sensors: str, program: str, legs: list[tuple[float, float]], speed: float
) -> str:
    north, east = (round(v, 3) + 0.0 for v in (s.north, s.east))  # adding 0 avoids -0
    place = f'position="{north:.3f} {east:.3f} 0 m" attitude="0 0 {math.degrees(s.course):.4f} deg"'
    how = 'client="required"' if program else f'speed="{speed:.4f} m/s"'
    inner = [sensors]
    if program:
        inner.append(f"      <program {program}/>")
        inner += [f'      <waypoint north="{n:.3f} m" east="{e:.3f} m" speed="{speed:.4f} m/s"/>' for n, e in legs]
    return "\n".join([f'    <vehicle name="{s.name}" model="{model}" {place} {how}>', *inner, "    </vehicle>"])
