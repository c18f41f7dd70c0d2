"""Write the generated parts of the documents, and the generated sources; with --check, only say what is out of date."""

from __future__ import annotations

import re
import sys
from importlib.metadata import entry_points
from pathlib import Path

import click
import python_reference
import typescript

from wavesim_bridges.ardupilot import parameter_files, parameters
from wavesim_sdk import layout, mailbox, tables
from wavesim_sdk.imaging_frames import FRAME
from wavesim_sdk.wire import protocol_export, vectors
from wavesim_server.dynamics import block_rows, model_columns, parameter_rows, work_rows
from wavesim_server.dynamics.row_tables import RowTable
from wavesim_studies.campaign.metrics import LIBRARY
from wavesim_studies.campaign.schema import Campaign
from wavesim_studies.navigation.import_map import ImportMap
from wavesim_studies.navigation.message_fields import FORMATS, InstrumentMessage
from wavesim_world.config import export
from wavesim_world.config.sensors import SensorsConfig

ROOT = Path(__file__).parent.parent


def between(text: str, name: str, content: str) -> str:
    """Replace the text between <!-- name:begin --> and <!-- name:end -->."""
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    if not pattern.search(text):
        raise SystemExit(f"no place '{name}'")
    return pattern.sub(lambda _: f"{begin}\n{content}\n{end}", text)


def offsets(table: tables.Table) -> str:
    """Return the position of each column of a record."""
    rows = ["| offset | column | type | unit | meaning |", "|---|---|---|---|---|"]
    for f in table.fields:
        at = table.dtype.fields[f.name][1]  # type: ignore[index]
        count = f" x {f.shape[0]}" if f.shape else ""
        rows.append(f"| {at} | `{f.name}` | {f.type}{count} | {f.unit} | {f.doc} |")
    return "\n".join([*rows, "", f"The payload begins at byte {table.dtype.itemsize}."])


def commands() -> str:
    """Return the help of every command."""
    group = click.Group("wavesim")
    for entry in sorted(entry_points(group="wavesim.commands"), key=lambda e: e.value):
        for command in entry.load()():
            group.add_command(command)
    lines = [
        "# Commands",
        "",
        "`wavesim COMMAND --help` prints the same text. `make docs` writes this page.",
    ]

    def add_help(command: click.Command, words: str) -> None:
        context = click.Context(command, info_name=words, terminal_width=100, max_content_width=100)
        context.show_default = None
        lines.extend(["", f"## {words}", "", "```text", command.get_help(context).rstrip(), "```"])
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                inner = command.get_command(context, name)
                if inner is not None:
                    add_help(inner, f"{words} {name}")

    for name in sorted(group.commands):
        add_help(group.commands[name], f"wavesim {name}")
    return "\n".join(lines) + "\n"


def campaign_page() -> str:
    """Return the page of campaigns, with its keys and metrics."""
    text = (ROOT / "docs/campaigns.md").read_text()
    text = between(text, "keys", "\n".join(export.reference_sections(Campaign, {Campaign: "campaign"}, "###")).rstrip())
    rows = [f"| `{k.name}` | {k.unit or '-'} | {k.better or '-'} | {k.doc} |" for k in LIBRARY.values()]
    return between(text, "metrics", "\n".join(["| metric | unit | better | meaning |", "|---|---|---|---|", *rows]))


def navigation_page() -> str:
    """Return the page of navigation, with the keys of import maps."""
    names, elsewhere = {ImportMap: "import"}, {SensorsConfig: "CONFIG.md"}
    keys = "\n".join(export.reference_sections(ImportMap, names, "###", elsewhere)).rstrip()
    return between((ROOT / "docs/navigation.md").read_text(), "keys", keys)


def formats_page() -> str:
    """Return the page of the logs of other programs, with the messages that are read."""
    rows = []
    for form in {id(form): form for form in FORMATS.values()}.values():
        suffixes = ", ".join(f"`{suffix}`" for suffix, f in FORMATS.items() if f is form)
        rows += [f"### {form.program} ({suffixes})", "", f"Times: {form.times}.", ""]
        rows += ["| message | instrument | values | valid if |", "|---|---|---|---|"]
        for one in form.instruments:
            values = one.columns + (f" over {one.period}" if one.period else "")
            rows.append(f"| `{one.message}` | {one.type} | `{values}` | {_condition(one)} |")
        for track in form.tracks:
            what = "ground truth from a simulator" if track.true else "track: own estimate"
            rows.append(f"| `{track.message}` | {what} | `{track.columns}` | |")
        rows.append("")
    return between((ROOT / "docs/foreign-logs.md").read_text(), "formats", "\n".join(rows).rstrip())


def _condition(one: InstrumentMessage) -> str:
    """Return the conditions for a valid message."""
    found = [f"`{name}` is {least:g} or more" for name, least in one.least.items()]
    found += [f"`{name}` contains the bits {bits:#x}" for name, bits in one.bits.items()]
    found += [f"`{name}` is {value:g}" for name, value in one.equal.items()]
    found += ["the vehicle is a submarine"] if one.air else []
    return "; ".join([*found, *([one.note] if one.note else [])])


def ardupilot_parameters() -> str:
    """Return ArduPilot's parameters from the shipped files, with the files that share a value in one row."""
    where: dict[tuple[str, str, str], list[str]] = {}
    for name, path in parameter_files().items():
        for parameter in parameters(path):
            where.setdefault(parameter, []).append(name)
    together: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (name, value, why), names in where.items():
        together.setdefault((why, tuple(names)), []).append(f"`{name} {value}`")
    rows = [f"| {', '.join(n)} | {', '.join(v)} | {why} |" for (why, n), v in together.items()]
    return "\n".join(["| file | parameters | why |", "|---|---|---|", *rows])


def kernel_rows() -> str:
    """Return the tables of all rows of the dynamics' arrays."""
    modules = (block_rows, parameter_rows, work_rows, model_columns)
    found = [t for m in modules for t in vars(m).values() if isinstance(t, RowTable)]
    return "\n".join(table.markdown() for table in found).rstrip()


def pages() -> dict[Path, str]:
    """Return every generated file with its expected content."""
    protocol = (ROOT / "docs/PROTOCOL.md").read_text()
    for name, content in {
        **protocol_export.protocol_tables(),
        "vectors": vectors.vectors_markdown(),
        "alternatives": vectors.alternatives_markdown(),
        "sealed": vectors.sealed_markdown(),
    }.items():
        protocol = between(protocol, name, content)
    shared = (ROOT / "docs/SHARED_MEMORY.md").read_text()
    return {
        ROOT / "docs/PROTOCOL.md": protocol,
        protocol_export.FILE: protocol_export.protocol_json(),
        ROOT / "docs/SHARED_MEMORY.md": between(shared, "tables", layout.tables_markdown()),
        ROOT / "docs/KERNEL_ROWS.md": between((ROOT / "docs/KERNEL_ROWS.md").read_text(), "rows", kernel_rows()),
        ROOT / "docs/sonars.md": between((ROOT / "docs/sonars.md").read_text(), "frame", offsets(FRAME)),
        ROOT / "docs/campaigns.md": campaign_page(),
        ROOT / "docs/navigation.md": navigation_page(),
        ROOT / "docs/foreign-logs.md": formats_page(),
        ROOT / "docs/bridges/ardupilot.md": between(
            (ROOT / "docs/bridges/ardupilot.md").read_text(), "parameters", ardupilot_parameters()
        ),
        ROOT / "docs/CONFIG.md": export.markdown(),
        ROOT / "docs/COMMANDS.md": commands(),
        ROOT / "docs/PYTHON.md": python_reference.page(),
        ROOT / "docs/wavesim.xsd": export.xsd().decode(),
        ROOT / "examples/mailbox-c/wavesim_mailbox.h": mailbox.c_header(),
        ROOT / typescript.FILE: typescript.declarations(),
    }


def main() -> int:
    check = "--check" in sys.argv
    stale = 0
    for path, text in pages().items():
        if path.exists() and path.read_text() == text:
            continue
        stale += 1
        if check:
            print(f"{path.relative_to(ROOT)} is out of date; run `make docs`")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            print(f"wrote {path.relative_to(ROOT)}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
