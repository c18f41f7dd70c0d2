"""Configuration of a vehicle that another program recorded: its instruments, as far as the recording states them."""

from __future__ import annotations

import math
import re
from pathlib import Path
from xml.sax.saxutils import quoteattr

import numpy as np

from wavesim_sdk.errors import ConfigError, LogError
from wavesim_studies.navigation.import_map import ImportMap
from wavesim_studies.navigation.recordings import InstrumentRecording
from wavesim_world.config import LoadedConfig
from wavesim_world.config.load import load_text
from wavesim_world.config.sensors import DvlConfig
from wavesim_world.instruments import HEADING_SIGMA, PRESSURE_SIGMA, SPEED_SIGMA, dvl_beams

MODEL = "lauv"  #: model of an imported vehicle without a configuration; the filter does not use it
#: standard deviation in m of the height from satellite receivers, which refers to the ellipsoid and not to the sea level
HEIGHT_SIGMA = 1000.0


def configuration_of(
    name: str, recordings: list[InstrumentRecording], plan: ImportMap, sensors: str, notes: list[str]
) -> str:
    """Return a configuration that contains the vehicle with the recorded instruments."""
    if re.fullmatch(r"[A-Za-z0-9_-]{1,31}", name) is None:
        raise LogError(f"invalid vehicle name '{name}': use 1 to 31 letters, digits, - and _")
    origin = plan.origin
    if len(origin) != 2:
        fixes = [r for r in recordings if r.type == "gps"]
        origin = (
            (float(fixes[0].values["latitude"][0]), float(fixes[0].values["longitude"][0])) if fixes else (0.0, 0.0)
        )
        if fixes:
            place = ", ".join(f"{math.degrees(v):.6f}" for v in origin)
            notes.append(f"the origin of the world frame is the first fix: {place} deg")
    if not sensors:
        sensors = f'<sensors inherit="no">{"".join(map(_sensor, recordings))}</sensors>'
        notes.append("mounting positions and accuracies are assumed; state them in a configuration or an import map")
    elif "inherit=" not in sensors.partition(">")[0]:
        sensors = sensors.replace("<sensors", '<sensors inherit="no"', 1)
    place = " ".join(
        f'{k}="{math.degrees(v):.12f} deg"' for k, v in zip(("latitude", "longitude"), origin, strict=True)
    )
    return (
        f'<wavesim name="imported"><world {place}/><fleet><vehicle name={quoteattr(name)} model="{MODEL}" '
        f'position="0 0 1 m">{sensors}</vehicle></fleet></wavesim>'
    )


def _sensor(r: InstrumentRecording) -> str:
    """Return the XML element of a recorded instrument with its rate and, if it is known, its accuracy."""
    rate = min(max(1.0 / r.period, 0.01), 1000.0)
    keys = {"name": r.name, "rate": f"{rate:.6g} Hz", "position": "0 0 0 m"}
    if r.sigma > 0.0:
        if r.type in ("ahrs", "speedlog", "pressure", "ctd"):
            one = {"ahrs": HEADING_SIGMA, "speedlog": SPEED_SIGMA}.get(r.type, PRESSURE_SIGMA)
            keys["noise"] = f"{max(r.sigma / one, 0.05):.6g}"
        elif r.type == "dvl":
            along, _ = dvl_beams(DvlConfig())
            spread = float(np.trace(np.linalg.inv(along.T @ along)) / 3.0)
            keys["bottom_sigma"] = f"{r.sigma / spread**0.5:.6g} m/s"
    if r.type == "gps":
        keys["vacc"] = f"{HEIGHT_SIGMA:g} m"
        if r.sigma > 0.0:
            keys["hacc"] = f"{r.sigma * 2.0**0.5:.6g} m"
    return f"<{r.type} {' '.join(f'{k}={quoteattr(v)}' for k, v in keys.items())}/>"


def load_made(text: str, map_file: Path | None) -> LoadedConfig:
    try:
        return load_text(text)
    except ConfigError as error:
        raise LogError(f"{map_file or 'imported vehicle'}: {error}") from None
