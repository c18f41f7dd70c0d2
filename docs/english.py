"""Check the English of the project: ``python -m docs.english``; `make lint` runs it.

Rules: banned phrases (``docs/banned.toml``), the grammar checker Harper, the page rules, the help of each command, one name per
public class, the words of the glossary, and words that no name in the code may contain.
"""

from __future__ import annotations

import ast
import collections
import re
import subprocess
import sys
import tempfile
import textwrap
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import entry_points
from pathlib import Path

import click

from docs import glossary
from docs.texts import DOCUMENT, PACKAGES, ROOT, Text, texts, tracked

RULES = tomllib.loads((Path(__file__).parent / "banned.toml").read_text())
CELL = 300  #: characters of a table cell at most
LINES, COLUMNS = 8, 120  #: lines of a paragraph at most, at this width
WIDTH = 80  #: columns of a terminal in which the first lines of help must fit
CODE_FILES = (".py", ".ts", ".js", ".c", ".h", ".css")  #: files whose names are checked
_STRING = r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"
#: comments and texts in code: of Python, and of the other languages
_PYTHON_TEXT = re.compile(rf'""".*?"""|#[^\n]*|{_STRING}', re.DOTALL)
_OTHER_TEXT = re.compile(rf"/\*.*?\*/|//[^\n]*|`(?:\\.|[^`\\])*`|{_STRING}", re.DOTALL)
_CODE = re.compile(r"``.*?``|`[^`\n]*`|\]\([^)]*\)|<[^<> ][^<>]*>|\{[^{}]*\}|https?://\S+|:\w+:`[^`]*`")


def prose(words: str) -> str:
    """Return the words without code, link targets and placeholders."""
    return _CODE.sub("x", words)


def banned(found: Iterable[Text]) -> Iterator[str]:
    """Yield phrases that readers stumble over, each with the reason and a better wording."""
    rules = [(re.compile(r["pattern"], re.IGNORECASE), r) for r in RULES["banned"]]
    for text in found:
        words = prose(text.words)
        for pattern, rule in rules:
            if match := pattern.search(words):
                yield f"{text.file}:{text.line}: '{match[0]}': {rule['reason']}; write {rule['instead']}"


def page_rules(found: Iterable[Text]) -> Iterator[str]:
    """Yield long table cells and long paragraphs."""
    for text in found:
        if text.kind != DOCUMENT:
            continue
        if text.table and len(text.words) > CELL:
            yield f"{text.file}:{text.line}: a table cell has {len(text.words)} characters, more than {CELL}: move the reasoning below"
        elif not text.table and len(textwrap.wrap(text.words, COLUMNS)) > LINES:
            yield f"{text.file}:{text.line}: a paragraph has more than {LINES} lines of {COLUMNS} columns: split it"


def harper(found: Iterable[Text], program: str | None = None) -> Iterator[str]:
    """Yield the findings of the grammar checker Harper, except for rules that do not fit technical pages
    (``harper_ignore``).
    """
    program = program or str(Path(sys.executable).parent / "harper")
    listed = list(found)
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "texts.md"
        page.write_text("".join(prose(t.words).replace("\n", " ").lstrip("-*+#>0123456789. ") + "\n\n" for t in listed))
        words = Path(folder) / "words.txt"
        words.write_text("\n".join(RULES["words"]))
        done = subprocess.run(
            [
                program,
                "lint",
                "--no-color",
                "--quiet",
                "--format",
                "compact",
                "-u",
                str(words),
                "--ignore",
                ",".join(RULES["harper_ignore"]),
                str(page),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
    if "texts.md" not in done.stdout + done.stderr and done.returncode not in (0, 1):
        yield f"Harper failed with exit code {done.returncode}: {done.stderr.strip()[:300]}"
    for match in re.finditer(r"^\S*texts\.md:(\d+):\d+: (.*)$", done.stdout + done.stderr, re.MULTILINE):
        text = listed[(int(match[1]) - 1) // 2]
        yield f"{text.file}:{text.line}: {match[2]} (in: {text.words[:100]})"


def commands() -> Iterator[tuple[str, click.Command]]:
    """Return every command with its help text."""

    def walk(words: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
        yield words, command
        if isinstance(command, click.Group):
            for name, inner in sorted(command.commands.items()):
                yield from walk(f"{words} {name}", inner)

    for entry in sorted(entry_points(group="wavesim.commands"), key=lambda e: e.value):
        for command in entry.load()():
            yield from walk(f"wavesim {command.name}", command)


def help_rules(found: Iterable[tuple[str, click.Command]]) -> Iterator[str]:
    """Yield help texts that do not begin with an imperative verb, or whose first line is cut off in the list of
    commands.
    """
    listed = list(found)
    widest = collections.defaultdict(int)
    for words, _ in listed:
        group, _, name = words.rpartition(" ")
        widest[group] = max(widest[group], len(name))
    for words, command in listed:
        group, _, _name = words.rpartition(" ")
        text = (command.help or "").split("\f")[0].strip()
        first = text.split(" ")[0].strip(".,:").lower()
        if first not in RULES["imperatives"]:
            yield f"{words}: its help begins with '{first}', which is not in the list of imperative verbs of docs/banned.toml"
        limit = WIDTH - 2 - 6 - widest[group]  # margins of the terminal and of the columns
        if command.get_short_help_str(limit).endswith("..."):
            yield f"{words}: the first line of its help is longer than {limit} columns"


def public_classes(files: Iterable[tuple[str, str]] | None = None) -> Iterator[tuple[str, str]]:
    """Return name and file of each public class at the top level of a module of the packages."""
    if files is None:
        files = ((f, (ROOT / f).read_text()) for f in tracked(*(f"{p}/*.py" for p in PACKAGES if p != "examples")))
    for file, source in files:
        for node in ast.parse(source).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield node.name, file


def class_names(found: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield public classes that share a name, unless they share a concept (``same_idea``)."""
    places = collections.defaultdict(list)
    for name, file in found:
        places[name].append(file)
    for name, files in sorted(places.items()):
        if len(files) > 1 and name not in RULES["same_idea"]:
            yield f"{name}: {len(files)} public classes have this name: {', '.join(files)}"


def _one_word(text: re.Match[str]) -> str:
    """Keep a string of one word, which may be a name; keep only the line breaks of other texts."""
    return text[0] if text[0][0] in "\"'" and not re.search(r"\s", text[0]) else "\n" * text[0].count("\n")


def code_names(files: Iterable[tuple[str, str]] | None = None) -> Iterator[str]:
    """Yield names of the packages' and benchmarks' code that contain a banned word (``banned_names``)."""
    if files is None:
        files = ((f, (ROOT / f).read_text()) for f in tracked(*PACKAGES, "benchmarks") if f.endswith(CODE_FILES))
    for file, source in files:
        code = (_PYTHON_TEXT if file.endswith(".py") else _OTHER_TEXT).sub(_one_word, source)
        for number, line in enumerate(code.splitlines(), 1):
            for name in re.findall(r"[A-Za-z_][\w-]*", line):
                if found := set(glossary.words_of(name)) & set(RULES["banned_names"]):
                    yield f"{file}:{number}: the name '{name}' contains '{found.pop()}': name what it holds"


@click.command()
def main() -> None:
    """Check every text that a person reads, and print each finding."""
    found = texts()
    broken = [
        *banned(found),
        *page_rules(found),
        *help_rules(commands()),
        *class_names(public_classes()),
        *glossary.unknown(public_classes()),
        *code_names(),
        *harper(found),
    ]
    for line in broken:
        click.echo(line)
    if broken:
        raise SystemExit(f"{len(broken)} texts or names break a rule of CONTRIBUTING.md (How we write)")


if __name__ == "__main__":
    main()
