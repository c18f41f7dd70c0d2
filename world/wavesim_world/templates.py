"""Templates for trials: a configuration and its programs, which ``wavesim new`` writes into a folder.

The files are the project's examples. In the repository, ``template_files/`` contains links to them; in a wheel, it
contains the files themselves.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from wavesim_sdk.errors import ConfigError, WaveSimError

FILES = Path(__file__).parent / "template_files"
CONFIG = "config.xml"


@dataclass(frozen=True)
class Template:
    """Template for a trial: what it shows, its programs, and the ``wavesim`` extra that it needs."""

    title: str
    programs: tuple[str, ...]
    extra: str = ""


TEMPLATES = {
    "demo": Template("two AUVs between four beacons, and a boat", ("auv", "navigator", "program", "usv")),
    "two-auvs": Template("two AUVs and a beacon", ("auv", "navigator", "program")),
    "boat-nmea": Template("a boat that navigates by NMEA 0183 sentences", ("nmea_boat", "program", "usv")),
    "rov-sonar": Template("an ROV that navigates by its sonar", ("inspector", "program"), "scenes"),
    "modems": Template("ten AUVs in a modem network", ("auv", "navigator", "program", "talker")),
}


def write_template(name: str, folder: Path) -> list[Path]:
    """Write the configuration and the programs of a template into a folder, and return the files.

    Raises ConfigError if one of the files already exists, so that none of the user's files is lost. Raises WaveSimError
    if the folder cannot be written to.
    """
    text = (FILES / f"{name}.xml").read_text(encoding="utf-8")
    text = re.sub(r'run="[^"]*/(\w+\.py)"', r'run="\1"', text)
    contents = {CONFIG: text.replace("`make trial`", "`wavesim trial`")}
    for program in TEMPLATES[name].programs:
        contents[f"{program}.py"] = (FILES / f"{program}.py").read_text(encoding="utf-8")
    if there := [file for file in contents if (folder / file).exists()]:
        raise ConfigError(
            f"{there[0]} already exists; select another folder: wavesim new FOLDER", str(folder / there[0])
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, content in contents.items():
            (folder / file).write_text(content, encoding="utf-8")
    except OSError as error:
        raise WaveSimError(f"cannot write to {folder}: {error.strerror}") from None
    return [folder / file for file in contents]
