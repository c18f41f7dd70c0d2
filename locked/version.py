"""`make version`: write the version, the authors and the address of CITATION.cff into every distribution.

The parts depend on each other with ``~=`` at this version, because releases do not share layouts of shared memory.
``--check`` changes nothing: it lists the files that differ, and exits with 1 if there are any.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
SDK = ROOT / "broker_sdk" / "wavesim_sdk" / "__init__.py"


def cited(text: str, key: str) -> list[str]:
    """Return the values of a key of CITATION.cff."""
    return re.findall(rf'^(?:  - )?{key}: "?([^"\n]+)"?$', text, re.MULTILINE)


def written(project: str, citation: str) -> str:
    """Return the text of a project file with the facts of CITATION.cff."""
    (version,) = cited(citation, "version")
    names = ", ".join(f'{{ name = "{name}" }}' for name in cited(citation, "name"))
    project = re.sub(r'^version = ".*"$', f'version = "{version}"', project, count=1, flags=re.MULTILINE)
    project = re.sub(r"^authors = .*$", f"authors = [{names}]", project, flags=re.MULTILINE)
    project = re.sub(r'"(wavesim-\w+(?:\[[\w,]+\])?)~=[^"]*"', rf'"\1~={version}"', project)
    project = re.sub(r"\n\[project\.urls\]\n(?:\S.*\n)*", "", project)
    urls = [("Homepage", url) for url in cited(citation, "url")]
    urls += [("Repository", url) for url in cited(citation, "repository-code")]
    if urls:
        table = "".join(f'{name} = "{url}"\n' for name, url in urls)
        project = project.replace("\n[tool.setuptools", f"\n[project.urls]\n{table}\n[tool.setuptools", 1)
    return project


def main(check: bool) -> int:
    """Write the files, or list those that differ; return the exit code."""
    citation = (ROOT / "CITATION.cff").read_text()
    wanted = {path: written(path.read_text(), citation) for path in sorted(ROOT.glob("*/pyproject.toml"))}
    (version,) = cited(citation, "version")
    wanted[SDK] = re.sub(r'^__version__ = ".*"$', f'__version__ = "{version}"', SDK.read_text(), flags=re.MULTILINE)
    different = [path for path, text in wanted.items() if path.read_text() != text]
    for path in different:
        print(f"{path.relative_to(ROOT)} {'differs from CITATION.cff: run `make version`' if check else 'written'}")
        if not check:
            path.write_text(wanted[path])
    return int(check and bool(different))


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv))
