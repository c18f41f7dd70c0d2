"""Every text of the project that a person reads, with the place where it stands.

The sampler (:mod:`docs.sample`) draws from these texts and the English checks (:mod:`docs.english`) read all of them.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = (
    "wavesim",
    "broker_sdk",
    "kernels",
    "world",
    "devices",
    "conformance",
    "server",
    "emulators",
    "viz",
    "bridges",
    "studies",
    "examples",
)
#: kinds of texts: a sample takes a quarter from each
DOCUMENT, HELP, MESSAGE, DOCSTRING = KINDS = ("document", "help", "message", "docstring")
#: calls whose texts are help: options of commands, and keys of the configuration
_HELP_CALLS = {"option", "argument", "command", "group", "key", "choice", "flag", "text", "child", "children"}
_SENTENCE = re.compile(r"[A-Za-z][a-z]+[ ,].*[A-Za-z]{2,}")
#: a table cell of numbers and units alone, or a list of units
_NUMBERS = re.compile(
    r"(?=[^a-z]*\d)([^A-Za-z]|\b([A-Za-z]{1,2}|[kM]Hz|deg|rad|rpm|dbar|kPa|uPa|ppm|NTU|ppb|min|None|nan|inf)\b)+"
    r"|(\S{1,6}, ){4,}\S{1,6}"
)
#: cells that are data: a range, a list of units, types of a wire format
_RANGE = re.compile(
    r"[-+.\de]*( \S+)? \.\. [-+.\de^]*( \S+)?|(\d+ x )?[\w/^]{1,5}(, [\w/^]{1,5})+|list \(\d+\) of \w+ \S+"
)
_CODE, _WORDS = re.compile(r"`[^`]*`"), re.compile(r"[a-z]{2,} [a-z]{2,}")
#: the column of CONTRIBUTING.md with wordings that are wrong on purpose
_WRONG = "avoid"
#: strings that no person reads: fields of MAVLink, ROS and `struct`, SQL, XML, a content security policy
_DATA = re.compile(
    r"(^|[,|]) ?([uif]\d+|f|char\[\d+\]|u8\[\d+\]) \w+(,| \||$)|^(bool|string|u?int\d+|float\d+) \w+\s|\[\] \w+\s\w+\[\]"
    r"|^[bBhHiIqQfd ]+$|^\w+: [A-Z][^\[]*\[[^\]]*\]$|^(SELECT|INSERT|CREATE|DELETE|UPDATE|PRAGMA) |(?s:^\s*<(?!(h\d|p|code)\b)[\w-]+( [^<>]*)?(>.*/[\w-]*|/)>\s*$)|^<CycloneDDS>|^copy |^type\(\{|^\w+ = \w+\(|\w\(map\(|^(<[^<>]*>\s*|\{[^{}]*\}\s*)+$|^default-src "
)


@dataclass(frozen=True)
class Text:
    """One text: its kind, file, line and words. Placeholders of messages are in braces."""

    kind: str
    file: str
    line: int
    words: str
    table: bool = False  #: a cell of a table


def tracked(*patterns: str) -> list[str]:
    """Return the files that git tracks, as paths relative to the project."""
    done = subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, check=True)
    return [f for f in done.stdout.splitlines() if "node_modules" not in f]


def pages() -> list[str]:
    """Return the Markdown pages, as paths relative to the project."""
    return tracked("*.md")


def blocks(markdown: str) -> Iterator[tuple[int, str, bool]]:
    """Yield the paragraphs, list items and table cells of a page: line, words, whether it is a cell. Code and headings
    are left out, and so are cells of numbers.
    """
    fence, paragraph, start, head = "", [], 0, []

    def flush() -> Iterator[tuple[int, str, bool]]:
        if paragraph:
            yield start, " ".join(paragraph), False
            paragraph.clear()

    for number, line in enumerate(markdown.splitlines(), 1):
        stripped = line.strip()
        mark = re.match(r"(`{3,}|~{3,})", stripped)
        if fence:
            if mark and stripped.startswith(fence) and not stripped.strip("`~"):
                fence = ""
            continue
        if mark:
            yield from flush()
            fence = mark[1]
        elif stripped.startswith("|"):
            yield from flush()
            cells = [c.strip() for c in re.split(r"(?<!\\)\|", stripped.strip("|"))]
            head = head or cells
            if not all(re.fullmatch(r":?-+:?", c) for c in cells):
                right = (c for c, name in zip_longest(cells, head) if c and (name != _WRONG or cells is head))
                yield from ((number, c, True) for c in right if not _NUMBERS.fullmatch(c))
            continue
        elif not stripped or stripped.startswith(("#", "<!--", "![")):
            yield from flush()
        else:
            if re.match(r"([-*+]|\d+\.) ", stripped):
                yield from flush()
            if not paragraph:
                start = number
            paragraph.append(stripped)
        head = []
    yield from flush()


def _is_data(words: str) -> bool:
    """Return whether a text is a range, a list of units or code alone."""
    prose = _CODE.sub(lambda code: code[0] if _WORDS.search(code[0]) else "", words)  # code may quote a message
    return bool(_RANGE.fullmatch(words)) or not re.search(r"[^\W\d_]", prose)


def _documents() -> Iterator[Text]:
    for file in pages():
        for line, words, cell in blocks((ROOT / file).read_text()):
            if not _is_data(words):
                yield Text(DOCUMENT, file, line, words, cell)
    for file in tracked("*.ipynb"):
        for cell in json.loads((ROOT / file).read_text())["cells"]:
            if cell["cell_type"] == "markdown":
                yield from (Text(DOCUMENT, file, 0, w, c) for _, w, c in blocks("".join(cell["source"])))


def literal(node: ast.AST) -> str | None:
    """Return the words of a string, an f-string or a sum of them, with placeholders in braces."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        parts = [
            str(v.value) if isinstance(v, ast.Constant) else "{" + ast.unparse(v.value).split("\n")[0] + "}"
            for v in node.values
            if isinstance(v, ast.Constant | ast.FormattedValue)
        ]
        return "".join(parts)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = literal(node.left), literal(node.right)
        return None if left is None or right is None else left + right
    return None


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


class _Reader(ast.NodeVisitor):
    def __init__(self, file: str) -> None:
        self.file, self.found, self.kind = file, [], MESSAGE
        self.command = False

    def _body(self, node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        words = ast.get_docstring(node, clean=not isinstance(node, ast.Module))  # a module's block may all be indented
        decorators = getattr(node, "decorator_list", [])
        command = any(isinstance(d, ast.Call) and _called(d) in ("command", "group") for d in decorators)
        line, kind = (node.body[0].lineno if node.body else 0), HELP if command else DOCSTRING
        for paragraph in (words or "").split("\n\n"):
            lines = paragraph.splitlines()
            if (
                lines and lines[0] == "\b"
            ):  # click keeps the lines of this paragraph; an indented line continues the last
                for each in re.sub(r"\n\s+", " ", "\n".join(lines[1:])).splitlines():
                    self.found.append(Text(kind, self.file, line, re.sub(r"\s{2,}", "  ", each)))
            elif (
                paragraph.strip()
                and not all(each.startswith("    ") for each in lines)  # indented: literal
                and not _DATA.search(paragraph.strip())
            ):
                self.found.append(Text(kind, self.file, line, " ".join(paragraph.split())))
        for child in ast.iter_child_nodes(node):
            if not (words and child is node.body[0]):
                self.visit(child)

    visit_Module = visit_ClassDef = visit_FunctionDef = visit_AsyncFunctionDef = _body

    def visit_Call(self, node: ast.Call) -> None:
        before = self.kind
        if _called(node) in _HELP_CALLS:
            self.kind = HELP
        self.generic_visit(node)
        self.kind = before

    def _text(self, node: ast.AST) -> None:
        words = literal(node)
        bare = re.sub(r"\{([^{}]|\{[^{}]*\})*\}", "{}", words or "")  # a text has words besides its placeholders
        if words is None:
            self.generic_visit(node)
        elif len(bare.split()) >= 3 and _SENTENCE.search(bare) and "\\" not in words and not _DATA.search(bare):
            self.found.append(Text(self.kind, self.file, node.lineno, " ".join(words.split())))  # type: ignore[attr-defined]

    visit_Constant = visit_JoinedStr = visit_BinOp = _text


def _python() -> Iterator[Text]:
    for file in tracked(*(f"{p}/*.py" for p in PACKAGES)):
        source = (ROOT / file).read_text()
        reader = _Reader(file)
        reader.visit(ast.parse(source))
        yield from reader.found
        for number, line in enumerate(source.splitlines(), 1):
            if (at := line.find("#: ")) >= 0:
                yield Text(DOCSTRING, file, number, line[at + 3 :].strip())


_AFTER_VALUE = re.compile(r"[\w)\]}\"'`]\s*$")
_REGEX = re.compile(r"/(?![/*])(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/[a-z]*")
_NOT_READ = re.compile(r"(\b(class|className|font|cssText)\s*[:=]|\bfrom)\s*$")
_SHADER = re.compile(r"\b(varying|uniform|attribute) (vec\d|float|int)\b|\bvoid main\(|\bgl_[A-Z]")
_STYLE = re.compile(r"\bpx\b.*\b(sans-serif|monospace)\b|[{};]\s*[\w-]+:\s*[^;]*;")


def _strings(code: str, at: int = 0, closing: str = "") -> Iterator[tuple[int, str, str]]:
    """Strings of TypeScript code from a position to a closing brace: position, the code before it, its words.

    Placeholders of a template stand in braces; the strings within them follow separately. The last item is ``(end, "", "")``.
    """
    depth = 0
    while at < len(code):
        char = code[at]
        if code.startswith("//", at):
            at = code.find("\n", at) if "\n" in code[at:] else len(code)
        elif code.startswith("/*", at):
            at = code.index("*/", at) + 2
        elif char == "/" and not _AFTER_VALUE.search(code[max(0, at - 40) : at]) and (match := _REGEX.match(code, at)):
            at = match.end()
        elif char in "\"'":
            end = at + 1
            while code[end] != char:
                end += 2 if code[end] == "\\" else 1
            yield at, code[max(0, at - 30) : at], code[at + 1 : end].replace("\\" + char, char)
            at = end + 1
        elif char == "`":
            start, words, inner, at = at, "", [], at + 1
            while code[at] != "`":
                if code.startswith("${", at):
                    *found, (end, _, _) = _strings(code, at + 2, "}")
                    words += "{...}" if found else "{" + code[at + 2 : end] + "}"
                    inner += found
                    at = end + 1
                else:
                    words += code[at : at + 2] if code[at] == "\\" else code[at]
                    at += 2 if code[at] == "\\" else 1
            yield start, code[max(0, start - 30) : start], words
            yield from inner
            at += 1
        else:
            if closing and char == closing and not depth:
                break
            depth += (char == "{") - (char == "}")
            at += 1
    yield at, "", ""


def _typescript() -> Iterator[Text]:
    for file in tracked("viz/web/src/*.ts"):
        code = (ROOT / file).read_text()
        for at, before, words in _strings(code):
            if (
                len(words.split()) >= 2
                and re.search(r"[a-z]{2,} [a-z]", words)
                and not _NOT_READ.search(before)
                and not _SHADER.search(words)
                and not _STYLE.search(words)
            ):
                yield Text(HELP, file, code.count("\n", 0, at) + 1, " ".join(words.split()))


def texts() -> list[Text]:
    """Return all texts, in the order of files and lines."""
    return [*_documents(), *_python(), *_typescript()]
