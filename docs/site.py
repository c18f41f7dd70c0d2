"""What the site has beside the pages of this folder (a hook of mkdocs): the pages at the top, the API, links that lead out.

A link to a file of the repository that is no page becomes its name; one to a file that does not exist is an error.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

ROOT = Path(__file__).parent.parent
#: page -> file at the top
TOP = {
    "index.md": "README.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
    "security.md": "SECURITY.md",
}
#: page -> title, modules
API = {
    "api/broker.md": (
        "Brokers",
        (
            "wavesim_sdk.broker",
            "wavesim_sdk.onboard",
            "wavesim_sdk.privileged_requests",
            "wavesim_sdk.estimate",
            "wavesim_sdk.server_address",
            "wavesim_sdk.errors",
        ),
    ),
    "api/lab.md": ("Lab and simulation", ("wavesim_server.lab", "wavesim_server.simulation", "wavesim_server.study")),
    "api/sound.md": (
        "Sound between two points",
        ("wavesim_server.acoustics.propagation_model", "wavesim_server.acoustics.loss_planes"),
    ),
    "api/janus.md": ("JANUS", ("wavesim_sdk.janus.packet", "wavesim_sdk.janus.waveform", "wavesim_sdk.janus.receiver")),
    "api/observer.md": ("Observers, shared memory", ("wavesim_sdk.observer", "wavesim_sdk.attach")),
    "api/commander.md": ("Commander", ("wavesim_sdk.commander",)),
    "api/control.md": (
        "Control, guidance, mixing",
        ("wavesim_sdk.guidance.control", "wavesim_sdk.guidance.survey_patterns", "wavesim_world.mixing"),
    ),
    "api/kinematics.md": ("Kinematics and geodesy", ("wavesim_sdk.kinematics", "wavesim_sdk.geodesy")),
    "api/log.md": ("Logs", ("wavesim_sdk.log", "wavesim_sdk.log_tables")),
    "api/datasets.md": (
        "Frames and data sets",
        ("wavesim_sdk.imaging_frames", "wavesim_sdk.frame_labels", "wavesim_server.frame_datasets"),
    ),
    "api/emulators.md": ("Emulators", ("wavesim_emulators.base", "wavesim_emulators.sensor_bank")),
    "api/navigation.md": (
        "Navigation filter",
        (
            "wavesim_studies.navigation.filter",
            "wavesim_studies.navigation.attitude_motion",
            "wavesim_studies.navigation.measurements",
            "wavesim_studies.navigation.logs",
            "wavesim_studies.navigation.metrics",
            "wavesim_studies.navigation.pose_tracks",
            "wavesim_studies.navigation.track_files",
            "wavesim_studies.navigation.estimate_score",
            "wavesim_studies.navigation.foreign_logs",
            "wavesim_studies.navigation.true_states",
        ),
    ),
    "api/studies.md": (
        "Campaigns, learning, traffic",
        (
            "wavesim_studies.campaign.metrics",
            "wavesim_studies.learning.custom",
            "wavesim_studies.learning.core",
            "wavesim_studies.learning.env",
            "wavesim_studies.learning.training",
            "wavesim_studies.learning.evaluation",
            "wavesim_studies.learning.teams",
            "wavesim_studies.learning.team_core",
            "wavesim_studies.traffic.encounters",
            "wavesim_studies.traffic.encounter_runs",
            "wavesim_studies.traffic.colregs_score",
        ),
    ),
}
_SHIM = re.compile(r'src="https://[^"]*iframe-worker[^"]*"')
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are not in this folder."""
    for page, source in TOP.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text()))
    for page, (title, modules) in API.items():
        content = "\n\n".join([f"# {title}", *(f"::: {m}" for m in modules)])
        files.append(File.generated(config, page, content=content + "\n"))
    return files


def on_page_markdown(markdown: str, page: Any, files: Any, **_: Any) -> str:
    """Change links as they are in the repository into links to pages of the site."""
    here = page.file.src_uri
    folder = "" if here in TOP else posixpath.join("docs", posixpath.dirname(here))
    tops = {source: p for p, source in TOP.items()}

    def link(found: re.Match[str]) -> str:
        picture, text, target, anchor = found[1], found[2], found[3], found[4] or ""
        if "://" in target or here in API:
            return found[0]
        path = posixpath.normpath(posixpath.join(folder, target))
        if not (ROOT / path).exists():
            raise PluginError(f"{here}: the link to {target} leads nowhere")
        inside = tops.get(path) or (path.removeprefix("docs/") if path.startswith("docs/") else "")
        if inside and files.get_file_from_path(inside) is not None:
            return f"{picture}[{text}]({posixpath.relpath(inside, posixpath.dirname(here) or '.')}{anchor})"
        return f"{text} (`{path}`)" if text.strip("`") not in (path, Path(path).name) else f"`{path}`"

    return _LINK.sub(link, markdown)


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Remove requests to other servers: the theme would load a worker that runs from files."""
    up = "../" * page.file.dest_uri.count("/")
    return _SHIM.sub(f'src="{up}worker.js"', output)
