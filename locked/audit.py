"""`make audit`: are vulnerabilities known of anything that is locked here, and may all that WaVeSim is passed on with be passed on?

Asks pip-audit and `npm audit` for the one, pip-licenses and the lock of the viewer's page for the other. What could not be asked (no
network, a mirror without advisories) is said, and counts as not passed.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent
PAGES = (ROOT / "viz/web", ROOT / "tests/judges")
FOUND, NOT_ASKED = 1, 2  #: exit codes
#: words of the licences that may go with Apache-2.0; "Redistribution ..." is the text of BSD without its name
PERMITTED = (
    "MIT",
    "Apache",
    "BSD",
    "PSF",
    "Python Software Foundation",
    "MPL",
    "ISC",
    "Zlib",
    "HPND",
    "CC0",
    "Redistribution and use in source and binary forms",
)


class Unreachable(Exception):
    """Who would know does not answer."""


def locked(path: Path) -> list[str]:
    """Names of the packages of a lock."""
    return re.findall(r"^([A-Za-z0-9._-]+)==", path.read_text(), re.MULTILINE)


def _json(command: list[str], where: Path = ROOT) -> Any:
    """What a program prints. Its exit code says what it found, so it decides nothing here."""
    try:
        done = subprocess.run(command, cwd=where, capture_output=True, text=True, timeout=600)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unreachable(str(error)) from None
    try:
        return json.loads(done.stdout)
    except ValueError:
        raise Unreachable((done.stderr.strip().splitlines() or ["no answer"])[-1][:200]) from None


def vulnerable(lock: Path) -> list[str]:
    """Packages of a lock that something is known of."""
    options = ["--disable-pip", "--require-hashes", "--progress-spinner", "off", "--format", "json"]
    report = _json([sys.executable, "-m", "pip_audit", *options, "-r", str(lock)])["dependencies"]
    skipped = [d["name"] for d in report if "skip_reason" in d]
    if len(skipped) == len(report):
        raise Unreachable(f"none of {len(report)} packages is known there")
    found = [
        f"{d['name']} {d['version']}: {v['id']}{' (mended in ' + ', '.join(v['fix_versions']) + ')' if v['fix_versions'] else ''}"
        for d in report
        for v in d.get("vulns", [])
    ]
    return found + [f"{name}: not known to the registry" for name in skipped]


def vulnerable_page(folder: Path) -> list[str]:
    """The same of a lock of npm."""
    report = _json(["npm", "audit", "--json", "--package-lock-only"], folder)
    if "vulnerabilities" not in report:
        raise Unreachable(str(report.get("message") or report)[:200])
    return [f"{name}: {v['severity']}" for name, v in report["vulnerabilities"].items()]


def odd_licences(python: str) -> list[str]:
    """Packages that WaVeSim needs whose licence is not permitted. Tools for tests are not passed on, and not looked at."""
    command = [
        sys.executable,
        "-m",
        "piplicenses",
        "--python",
        python,
        "--format",
        "json",
        "--with-system",
        "--packages",
    ]
    return strange({p["Name"]: p["License"] for p in _json([*command, *locked(HERE / "run.txt")])})


def odd_licences_of_page(lock: Path) -> list[str]:
    """The same of what is built into the viewer's page."""
    packages = json.loads(lock.read_text())["packages"]
    return strange({n: str(p.get("license")) for n, p in packages.items() if n and not p.get("dev")})


def strange(licences: dict[str, str]) -> list[str]:
    """Those that are not permitted."""
    return [
        f"{n}: {' '.join(text.split())[:80]}" for n, text in licences.items() if not any(w in text for w in PERMITTED)
    ]


def main(python: str) -> int:
    """Print what was found; returns the exit code."""
    questions: list[tuple[str, Any]] = []
    for lock in sorted(HERE.glob("*.txt")):
        questions.append((f"vulnerabilities, locked/{lock.name}", lambda lock=lock: vulnerable(lock)))
    for folder in PAGES:
        questions.append(
            (f"vulnerabilities, {folder.relative_to(ROOT)}", lambda folder=folder: vulnerable_page(folder))
        )
    questions.append(("licences of what WaVeSim needs", lambda: odd_licences(python)))
    questions.append(("licences of what is in the page", lambda: odd_licences_of_page(PAGES[0] / "package-lock.json")))
    worst = 0
    for title, ask in questions:
        try:
            found = ask()
        except Unreachable as error:
            print(f"{title}: NOT ASKED: {error}")
            worst = worst or NOT_ASKED
            continue
        print(f"{title}: {len(found) or 'nothing'} found")
        for line in found:
            print(f"  {line}")
        worst = FOUND if found else worst
    return worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
