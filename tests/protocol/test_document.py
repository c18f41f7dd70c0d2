"""docs/PROTOCOL.md is the standard: a reader written from the page alone reads its vectors, and the
page's tables are those of the code."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgpack
import pytest
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

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
        assert plain(codec.decode_body(data, header)) == meaning["body"]


def hkdf(key: bytes, salt: bytes, info: bytes) -> bytes:
    """RFC 5869 for 32 bytes, by hand."""
    extracted = hmac.digest(salt or bytes(32), key, "sha256")
    return hmac.digest(extracted, info + b"\x01", "sha256")


def test_a_reader_of_the_page_opens_the_sealed_vectors(page: str) -> None:
    lines = page.split("<!-- sealed:begin -->")[1].split("```")[1].strip().splitlines()
    facts = dict(line.split(" = ") for line in lines if " = " in line)
    sealed = dict(line.rsplit(": ", 1) for line in lines if ": " in line)
    key, cookie = bytes.fromhex(facts["key"]), bytes.fromhex(facts["cookie"])
    token, nonce = int(facts["token"], 16), int(facts["nonce of the JOIN"])
    salt = cookie + nonce.to_bytes(8, "little")
    assert hashlib.sha256(b"wavesim/1 key id" + key).digest()[:8] == int(facts["key id"], 16).to_bytes(8, "little")
    for name, text in sealed.items():
        data = bytes.fromhex(text)
        header, body = data[:24], data[24:]
        assert header[6] == 1
        sequence = int.from_bytes(header[16:20], "little")
        if name.startswith("JOIN"):
            aead, use, body = ChaCha20Poly1305(hkdf(key, b"", b"wavesim/1 join")), body[:12], body[12:]
            assert header[8:16] == int(facts["key id"], 16).to_bytes(8, "little")
        else:
            side = b"client" if name == "ACTUATE" else b"server"
            own = hkdf(key, salt, b"wavesim/1 " + side + token.to_bytes(8, "little"))
            aead, use = ChaCha20Poly1305(own), sequence.to_bytes(12, "little")
        found = msgpack.unpackb(aead.decrypt(use, body, header))
        assert found[:2] == {"J": [cookie, 7], "W": [7, 3], "A": [[9.5]], "K": [12]}[name[0]], name


def test_a_reader_of_the_page_reads_a_body_of_the_fleet(page: str) -> None:
    rows = re.findall(
        r"^\| (\d+) \| (\w+) \| ([uf])(\d)(?: x (\d))? \|", page.split("<!-- fleet:begin -->")[1], re.MULTILINE
    )
    bodies = next(d for n, d, _ in vectors(page) if n == "FLEET")[24:]
    record = msgpack.unpackb(bodies)[5]
    assert len(record) == 68 == int(rows[-1][0]) + int(rows[-1][3]) * int(rows[-1][4])
    found = {
        name: struct.unpack_from(
            f"<{count or 1}{ {'u4': 'I', 'f8': 'd', 'f4': 'f'}[kind + size] }", record, int(offset)
        )
        for offset, name, kind, size, count in rows
    }
    assert found["id"] == (3,) and found["p_WB_W"] == (1.5, -2.0, 10.0) and found["v_WB_B"] == (1.25, 0.0, 0.5)


def test_the_drop_reasons_of_the_page_are_those_of_the_code(page: str) -> None:
    rules = page.split("### Receive rules")[1].split("## 2.")[0]
    assert set(re.findall(r"\(`(\w+)`\)", rules)) == set(codec.REASONS)


def test_generated_pages_are_up_to_date(root: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(root / "docs" / "generate.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
