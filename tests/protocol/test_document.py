"""docs/PROTOCOL.md is the standard: a reader written from the page alone reads its vectors, and the
page's tables are those of the code."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgpack
import pytest

from wavesim_sdk.wire import codec
from wavesim_sdk.wire.messages import MESSAGES, Type


@pytest.fixture(scope="module")
def page(root: Path) -> str:
    return (root / "docs" / "PROTOCOL.md").read_text()


def header_table(page: str) -> list[tuple[int, int, str]]:
    """(offset, size, field) rows of section 1, read from the page."""
    rows = re.findall(r"^\| (\d+) \| (\d+) \| (\w+) \|", page, re.MULTILINE)
    return [(int(o), int(s), f) for o, s, f in rows]


def vectors(page: str) -> list[tuple[str, bytes, dict[str, Any]]]:
    lines = page.split("<!-- vectors:begin -->")[1].split("```")[1].strip().splitlines()
    parts = [line.split(" ", 2) for line in lines]
    return [(n, bytes.fromhex(h), json.loads(m)) for n, h, m in parts]


def plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"bin": value.hex()}
    if isinstance(value, list):
        return [plain(v) for v in value]
    return {k: plain(v) for k, v in value.items()} if isinstance(value, dict) else value


def test_a_reader_of_the_page_reads_the_vectors(page: str) -> None:
    table = header_table(page)
    assert [f for _, _, f in table] == ["magic", "version", "type", "flags", "token", "sequence", "ack"]
    size = table[-1][0] + table[-1][1]
    found = vectors(page)
    assert len(found) == len(Type)
    for name, data, meaning in found:
        fields = {f: int.from_bytes(data[o : o + s], "little") for o, s, f in table}
        assert data[:4] == b"WVSM"
        assert fields["version"] == 1 and fields["flags"] == 0
        assert {k: fields[k] for k in ("type", "token", "sequence", "ack")} == {
            k: meaning[k] for k in ("type", "token", "sequence", "ack")
        }
        assert plain(msgpack.unpackb(data[size:])) == meaning["body"], name


def test_the_code_reads_the_pages_vectors(page: str) -> None:
    for _, data, meaning in vectors(page):
        kind = Type(meaning["type"])
        header = codec.decode_header(data, MESSAGES[kind][0])
        assert header.token == meaning["token"]
        assert plain(codec.decode_body(data, header.type)) == meaning["body"]


def test_the_drop_reasons_of_the_page_are_those_of_the_code(page: str) -> None:
    rules = page.split("### Receive rules")[1].split("## 2.")[0]
    assert set(re.findall(r"\(`(\w+)`\)", rules)) == set(codec.REASONS)


def test_generated_pages_are_up_to_date(root: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(root / "docs" / "generate.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
