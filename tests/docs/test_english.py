"""Each rule of ``python -m docs.english`` finds a planted example; ``make lint`` applies the rules to every text."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from docs import english, glossary
from docs import texts as texts_module
from docs.sample import main as sample
from docs.texts import DOCSTRING, DOCUMENT, HELP, KINDS, MESSAGE, Text, blocks, texts


def one(words: str, kind: str = MESSAGE, table: bool = False) -> list[Text]:
    return [Text(kind, "planted.py", 7, words, table)]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("'x' is no name: use 1 to 32 bytes", "English negates the verb"),
        ("who asks is told the answer", "'told' says neither who nor how"),
        ("What is left over stays", "a sentence opens with its actor"),
        ("the file is written anew", "literary"),
        ("a server runs so long as it can", "German word order"),
        ("its motion grew beyond all numbers", "no term of the field"),
    ],
)
def test_banned_phrases(words: str, reason: str) -> None:
    assert any(reason in line for line in english.banned(one(words)))


@pytest.mark.parametrize(
    "words", ["the code `x is no name` is told apart", "there is no server 'demo'", "no later than 3 s"]
)
def test_code_and_ordinary_english_pass(words: str) -> None:
    found = list(english.banned(one(words.replace("told apart", "data"))))
    assert found == []


def test_long_cells_and_paragraphs() -> None:
    assert list(english.page_rules(one("x" * (english.CELL + 1), DOCUMENT, True)))
    assert not list(english.page_rules(one("x" * english.CELL, DOCUMENT, True)))
    assert list(english.page_rules(one("word " * 220, DOCUMENT)))
    assert not list(english.page_rules(one("word " * 180, DOCUMENT)))


def test_harper_reads_every_text() -> None:
    texts_ = [*one("The engine could of advanced."), *one("A client sends a datagram.")]
    (line,) = english.harper(texts_)
    assert line.startswith("planted.py:7:") and "could" in line


def test_a_harper_that_is_absent_or_fails_is_an_error(tmp_path: Path) -> None:
    program = tmp_path / "harper"
    program.write_text("#!/bin/sh\necho broken >&2\nexit 3\n")
    program.chmod(0o755)
    assert "exit code 3" in next(english.harper(one("Fine."), str(program)))
    with pytest.raises(FileNotFoundError):
        list(english.harper(one("Fine."), str(tmp_path / "absent")))


def test_help_begins_with_a_verb_and_is_not_cut_off() -> None:
    def command(text: str) -> click.Command:
        return click.Command("status", help=text)

    def found(text: str) -> list[str]:
        return list(english.help_rules([("wavesim status", command(text))]))

    assert "begins with 'everything'" in found("Everything the server knows.")[0]
    assert (
        "is longer than"
        in found("Show the status of a running server, of each of its clients and of every emulator.")[0]
    )
    assert found("Show the status of a running server.") == []


def test_public_classes_have_one_name_each() -> None:
    files = [("a.py", "class Bridge: ...\nclass _Own: ..."), ("b.py", "class Bridge: ...\nclass _Own: ...")]
    assert [line.split(":")[0] for line in english.class_names(english.public_classes(files))] == ["Bridge"]


def test_names_are_made_of_the_words_of_the_glossary() -> None:
    found = list(glossary.unknown([("TransducerConfig", "a.py"), ("FrobnicatorTable", "b.py")]))
    assert any("'frobnicator'" in line and "b.py" in line for line in found)
    assert not any("a.py" in line for line in found)


def test_words_that_are_not_used_for_a_concept_are_not_in_the_vocabulary() -> None:
    page = "| term | symbol | meaning | where | not |\n| track | m | Positions over time. | log | trail |\n\n## Words in names\n\nlog\n"
    allowed = glossary.vocabulary(page)
    assert "track" in allowed and "log" in allowed and "trail" not in allowed


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("a.py", "told = metadata(path)"),
        ("a.py", "self._told_until = now"),
        ("a.py", "def untold(self) -> int:"),
        ("a.ts", "  told: TilesetInfo | null = null;"),
        ("a.ts", 'h("div", { class: "told" })'),
        ("a.ts", "private isTold = false; // whether"),
        ("a.css", "#ranges-told { display: none }"),
        ("a.h", "int tries, told_sensors;"),
    ],
)
def test_names_in_code_have_no_banned_word(file: str, line: str) -> None:
    (found,) = english.code_names([(file, f"x = 1\n{line}\n")])
    assert found.startswith(f"{file}:2: the name '") and "told" in found.lower()


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("a.py", '"""The operator is told."""\nx = 1  # told\ny = "it is told"\nz = stolen'),
        ("a.ts", "/* told */ x = 1; // told\ny = `it is told ${x}`;"),
    ],
)
def test_comments_and_texts_are_not_names(file: str, text: str) -> None:
    assert list(english.code_names([(file, text)])) == []


def test_texts_of_every_kind_are_collected() -> None:
    found = texts()
    assert {t.kind for t in found} == set(KINDS)
    assert any(t.kind == DOCSTRING and t.file == "docs/english.py" for t in found) is False, "packages only"
    assert any(t.kind == HELP and t.file.endswith(".ts") for t in found)
    assert any("{" in t.words for t in found if t.kind == MESSAGE)


def test_shaders_styles_and_data_are_not_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "page.ts").write_text(
        'import { a } from "./some where.js";\n'
        "const glsl = `varying vec4 c;\n  void main() { gl_FragColor = vec4(1.0); if (r > 1.0) discard; }`;\n"
        'c.font = "600 11px system-ui, sans-serif";\n'
        "c.font = `${11 * ratio}px system-ui, sans-serif`;\n"
        'h("div", { class: "section warm hidden", title: "Remove this chart" }); // "a comment in quotes"\n'
        'const label = /["`]/.test(t) ? `there are ${n} vehicles${late ? `, ${late} of them are late` : ""}` : "no vehicles yet";\n'
    )
    (tmp_path / "program.py").write_text(
        '"""A program::\n\n    run this literal block\n\n\\b\nwavesim run     Run a trial\n    with a log.\nwavesim end     End it now\n"""\n'
        'A = "SELECT name, value FROM metadata"\nB = "{_TARGET}, u16 seq | u8 mission_type"\n'
        "C = \"default-src 'none'; script-src 'self'\"\nD = \"<models><model name='a'/></models>\"\n"
        'E = "the value is not a number"\nF = "<sensors> of the fleet cannot inherit"\n'
        'K = "<p>No run gave a value.</p>"\n'
        'G = \'<waypoint north="{n} m" speed="2 m/s"/> <bed depth="9 m"/>\'\n'
        "H = '<workers options=\"...\">: invalid option'\n"
        'I = "{size} and floats_or_gaps(map(type, {value})) or not"\nJ = f"try {x.join(map(str, y))} or the others"\n'
    )
    (tmp_path / "page.md").write_text(
        "| unit | range | meaning |\n|---|---|---|\n| m, km, cm, mm | 0.0001 m .. 1 m | `cannot listen at port 1` |\n"
        "| 3 x m, km, or `mast` | list (3) of float -1e+06..1e+06 | `nu' = nu_r'`, `M = M_RB + M_A` |\n"
        "| s, ms, or `never` | -1.5 .. | up to 3 s |\n"
    )
    monkeypatch.setattr(texts_module, "ROOT", tmp_path)
    monkeypatch.setattr(
        texts_module,
        "tracked",
        lambda *p: (
            ["page.ts"]
            if p[0].endswith("ts")
            else ["program.py"]
            if "*.py" in p[0]
            else ["page.md"]
            if p[0] == "*.md"
            else []
        ),
    )
    assert [(t.line, t.words) for t in texts() if t.file == "page.ts"] == [
        (6, "Remove this chart"),
        (7, "there are {n} vehicles{...}"),
        (7, ", {late} of them are late"),
        (7, "no vehicles yet"),
    ]
    assert [t.words for t in texts() if t.file == "program.py"] == [
        "A program::",
        "wavesim run  Run a trial with a log.",
        "wavesim end  End it now",
        "the value is not a number",
        "<sensors> of the fleet cannot inherit",
        "<p>No run gave a value.</p>",
        '<workers options="...">: invalid option',
        "try {x.join(map(str, y))} or the others",
    ]
    assert [t.words for t in texts() if t.file == "page.md"] == [
        "unit",
        "range",
        "meaning",
        "`cannot listen at port 1`",
        "3 x m, km, or `mast`",
        "s, ms, or `never`",
        "up to 3 s",
    ]


def test_blocks_of_a_page() -> None:
    page = "# Head\n\nA paragraph\nof two lines.\n\n- item\n\n```\ncode\n```\n\n| a | b |\n|---|---|\n| c d | e |\n"
    assert list(blocks(page)) == [
        (3, "A paragraph of two lines.", False),
        (6, "- item", False),
        (12, "a", True),
        (12, "b", True),
        (14, "c d", True),
        (14, "e", True),
    ]


def test_a_sample_is_repeatable_and_has_all_kinds(capsys: pytest.CaptureFixture[str]) -> None:
    def draw(seed: int) -> Iterator[str]:
        sample(["20", "--seed", str(seed)], standalone_mode=False)
        return iter(capsys.readouterr().out.splitlines())

    first, again, other = list(draw(1)), list(draw(1)), list(draw(2))
    assert first == again != other
    assert {line[1:].split("]")[0] for line in first if line.startswith("[")} == set(KINDS)


def test_the_spelling_checker_knows_a_mistake(tmp_path: Path, root: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("The recieved datagram.\n")
    program = Path(sys.executable).parent / "codespell"
    done = subprocess.run([program, "--toml", root / "pyproject.toml", page], capture_output=True, text=True, cwd=root)
    assert done.returncode != 0 and "received" in done.stdout


def test_numbers_and_wrong_wordings_are_not_texts() -> None:
    page = "| rule | avoid | write |\n|---|---|---|\n| a rule | bad words | 0.01 Hz .. 1000 Hz |\n| 0.94 / 0.9 | x | s, ms, us, min, h |\n\n| avoid it | b |\n"
    assert [words for _, words, _ in blocks(page)] == ["rule", "avoid", "write", "a rule", "avoid it", "b"]
