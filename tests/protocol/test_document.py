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

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from wavesim_sdk.tables import Outcome
from wavesim_sdk.wire import codec, protocol_export
from wavesim_sdk.wire import messages as m
from wavesim_sdk.wire import vectors as examples
from wavesim_sdk.wire.messages import MESSAGES, Type
from wavesim_sdk.wire.schema import schema_of
from wavesim_sdk.wire.vectors import to_json_value


@pytest.fixture(scope="module")
def page(root: Path) -> str:
    return (root / "docs" / "PROTOCOL.md").read_text()


def header_table(page: str) -> list[tuple[int, int, str]]:
    """(offset, size, field) rows of section 1, read from the page."""
    rows = re.findall(r"^\| (\d+) \| (\d+) \| (\w+) \|", page, re.MULTILINE)
    return [(int(o), int(s), f) for o, s, f in rows]


def vectors(page: str, place: str = "vectors") -> list[tuple[str, bytes, dict[str, Any]]]:
    """(name, bytes, meaning) of the lines of a place."""
    lines = page.split(f"<!-- {place}:begin -->")[1].split("```")[1].strip().splitlines()
    parts = [re.fullmatch(r"(.*?):? ([0-9a-f]{48,}) (\{.*\})", line) for line in lines]
    return [(p[1], bytes.fromhex(p[2]), json.loads(p[3])) for p in parts if p]


# A reader of msgpack and of declarations, written from the page and the machine-readable schema alone.


def read_msgpack(data: bytes) -> Any:
    """One value and nothing behind it."""
    value, at = _value(data, 0)
    assert at == len(data)
    return value


def _value(data: bytes, at: int) -> tuple[Any, int]:
    first, at = data[at], at + 1
    if first < 0x80 or first >= 0xE0:
        return (first if first < 0x80 else first - 256), at
    if first < 0xC0:
        count = first & (31 if first >= 0xA0 else 15)
        if first >= 0xA0:
            return data[at : at + count].decode(), at + count
        return _many(data, at, count, is_map=first < 0x90)
    simple: dict[int, Any] = {0xC0: None, 0xC2: False, 0xC3: True}
    if first in simple:
        return simple[first], at
    numbers = {
        0xCA: ">f",
        0xCB: ">d",
        0xCC: ">B",
        0xCD: ">H",
        0xCE: ">I",
        0xCF: ">Q",
        0xD0: ">b",
        0xD1: ">h",
        0xD2: ">i",
        0xD3: ">q",
    }
    if first in numbers:
        return struct.unpack_from(numbers[first], data, at)[0], at + struct.calcsize(numbers[first])
    size = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4, 0xDC: 2, 0xDD: 4, 0xDE: 2, 0xDF: 4}[first]
    count, at = int.from_bytes(data[at : at + size], "big"), at + size
    if first >= 0xDC:
        return _many(data, at, count, is_map=first >= 0xDE)
    raw = data[at : at + count]
    return (raw if first < 0xC7 else raw.decode()), at + count


def _many(data: bytes, at: int, count: int, is_map: bool) -> tuple[Any, int]:
    values = []
    for _ in range(count * (2 if is_map else 1)):
        value, at = _value(data, at)
        values.append(value)
    return (dict(zip(values[::2], values[1::2], strict=True)) if is_map else values), at


def fits(value: Any, kind: dict[str, Any], protocol: dict[str, Any]) -> bool:
    """Whether a value is what the schema declares."""
    if value is None:
        return bool(kind.get("nil"))
    match kind["type"]:
        case "int":
            return type(value) is int and kind["minimum"] <= value <= kind["maximum"]
        case "float":
            number = type(value) in (int, float) and value - value == 0
            return number and kind.get("minimum", value) <= value <= kind.get("maximum", value)
        case "str":
            return type(value) is str and len(value.encode()) <= kind["most_bytes"]
        case "bin":
            return type(value) is bytes and kind["least_bytes"] <= len(value) <= kind["most_bytes"]
        case "list":
            size = type(value) is list and kind["least"] <= len(value) <= kind["most"]
            return size and all(fits(v, kind["of"], protocol) for v in value)
        case "struct":
            return fits_all(value, kind["fields"], protocol)
        case "numbered":
            known = {entry["kind"]: entry["fields"] for entry in protocol[kind["family"]]}
            return fits_all(value[1:], known[value[0]], protocol)
    raise AssertionError(kind["type"])


def fits_all(values: Any, fields: list[dict[str, Any]], protocol: dict[str, Any]) -> bool:
    return type(values) is list and all(fits(v, f, protocol) for v, f in zip(values, fields, strict=False))


@pytest.mark.parametrize("place", ["vectors", "alternatives"])
def test_a_reader_of_the_page_reads_the_vectors(page: str, place: str) -> None:
    table = header_table(page)
    assert [f for _, _, f in table] == ["magic", "version", "type", "flags", "token", "sequence", "ack"]
    size = table[-1][0] + table[-1][1]
    found = vectors(page, place)
    assert len(found) >= len(Type) if place == "vectors" else len(found) == 9
    names = dict(re.findall(r"^\| (\d+) \| ([A-Z_]+) \| (?:client|server) \|", page, re.MULTILINE))
    protocol = json.loads(protocol_export.FILE.read_text())
    declared = {entry["type"]: entry for entry in protocol["messages"]}
    for name, data, meaning in found:
        fields = {f: int.from_bytes(data[o : o + s], "little") for o, s, f in table}
        assert data[:4] == b"WVSM" and fields["version"] == 2 and fields["flags"] == 0
        assert {k: fields[k] for k in ("type", "token", "sequence", "ack")} == {
            k: meaning[k] for k in ("type", "token", "sequence", "ack")
        }
        body = read_msgpack(data[size:])
        assert names[str(fields["type"])] == declared[fields["type"]]["name"] and name.startswith(
            names[str(fields["type"])]
        )
        assert to_json_value(body[: len(meaning["body"])]) == meaning["body"], name
        assert len(body) >= len(declared[fields["type"]]["fields"])
        assert fits_all(body, declared[fields["type"]]["fields"], protocol), name


@pytest.mark.parametrize("place", ["vectors", "alternatives"])
def test_the_code_reads_the_pages_vectors(page: str, place: str) -> None:
    for _, data, meaning in vectors(page, place):
        kind = Type(meaning["type"])
        header = codec.decode_header(data, MESSAGES[kind][0])
        assert header.token == meaning["token"]
        message = codec.decode_payload(data, header)
        assert to_json_value(schema_of(type(message)).encode(message)) == meaning["body"]


def test_the_vectors_hold_what_a_reader_may_get_wrong(page: str) -> None:
    """Integers that no double holds, each event and request, non-ASCII names."""
    found = vectors(page)
    assert {d[5] for _, d, _ in found} == set(Type)
    text = json.dumps([meaning["body"] for _, _, meaning in found])
    assert str(2**53 + 1) in text and str(2**64 - 1) in text and "\\u00e5" in text
    protocol = protocol_export.protocol()
    for family, kind in (("events", Type.EVENTS), ("requests", Type.REQUESTS)):
        seen = {item[0] for _, _, meaning in found if meaning["type"] == kind for item in meaning["body"][1]}
        assert seen == {entry["kind"] for entry in protocol[family]}


def hkdf(key: bytes, salt: bytes, info: bytes) -> bytes:
    """RFC 5869 for 32 bytes, by hand."""
    extracted = hmac.digest(salt or bytes(32), key, "sha256")
    return hmac.digest(extracted, info + b"\x01", "sha256")


def x25519(private: bytes, public: bytes) -> bytes:
    return X25519PrivateKey.from_private_bytes(private).exchange(X25519PublicKey.from_public_bytes(public))


@pytest.mark.parametrize("suffix", ["", " with the server's public key"])
def test_a_reader_of_the_page_opens_the_sealed_vectors(page: str, suffix: str) -> None:
    lines = page.split("<!-- sealed:begin -->")[1].split("```")[1].strip().splitlines()
    facts = dict(line.split(" = ") for line in lines if " = " in line)
    sealed = dict(line.rsplit(": ", 1) for line in lines if ": " in line)
    assert {name.removesuffix(" with the server's public key") for name in sealed} == {
        "JOIN", "REFUSE", "WELCOME", "ACTUATE", "KEEPALIVE", "JOIN that resumes this session",
    }  # fmt: skip
    assert len(sealed) == 12
    key, cookie = bytes.fromhex(facts["key"]), bytes.fromhex(facts["cookie"])
    token = bytes.fromhex(facts["token, as bytes in header order"])
    key_id = bytes.fromhex(
        facts["ID of the key that contains the server's public key" if suffix else "key ID, as bytes in header order"]
    )
    fixed = bytes.fromhex(facts["sealing nonce of JOIN and REFUSE"])
    own, theirs, static = (
        bytes.fromhex(facts[k])
        for k in (
            "ephemeral private key of the client",
            "ephemeral private key of the server",
            "private key of the server",
        )
    )
    base = bytes([9]) + bytes(31)
    if suffix:
        key += bytes.fromhex(facts["public key of the server"])
        assert key[32:] == x25519(static, base)
    publics = {"client": x25519(own, base), "server": x25519(theirs, base)}
    secret = key + x25519(own, publics["server"]) + (x25519(own, key[32:]) if suffix else b"")
    assert secret == key + x25519(theirs, publics["client"]) + (x25519(static, publics["client"]) if suffix else b"")
    salt = cookie + int(facts["nonce of the JOIN"]).to_bytes(8, "little") + publics["client"] + publics["server"]
    assert hashlib.sha256(b"wavesim/2 key id" + key).digest()[:8] == key_id
    ticket = hkdf(secret, salt, b"wavesim/2 resume" + token)[:8]
    assert int(facts[f"ticket of the session{suffix}"]) == int.from_bytes(ticket, "little")
    for name in ("JOIN", "REFUSE", "WELCOME", "ACTUATE", "KEEPALIVE", "JOIN that resumes this session"):
        data = bytes.fromhex(sealed[name + suffix])
        header, body = data[:24], data[24:]
        assert header[6] == 1
        sequence = int.from_bytes(header[16:20], "little")
        more = header
        if name.startswith(("JOIN", "REFUSE")):
            joins = name != "REFUSE"
            aead = ChaCha20Poly1305(hkdf(key, b"", b"wavesim/2 " + (b"join" if joins else b"refuse")))
            use, body = body[:12], body[12:]
            assert use == fixed and header[8:16] == (key_id if joins else bytes(8))
            if joins:
                more, body = header + body[:32], body[32:]
                assert more[24:] == publics["client"]
        else:
            side = b"client" if name == "ACTUATE" else b"server"
            aead = ChaCha20Poly1305(hkdf(secret, salt, b"wavesim/2 " + side + token))
            use = sequence.to_bytes(12, "little")
            assert header[8:16] == token
            if name == "WELCOME":
                assert body[:32] == publics["server"]
                body = body[32:]
        found = read_msgpack(aead.decrypt(use, body, more))
        wanted = {"JOIN": [cookie, 7], "REFUSE": [7, 2], "WELCOME": [7, 3], "ACTUATE": [[9.5]], "KEEPALIVE": [12]}
        assert found[:2] == wanted[name.split(" ")[0]], name
        if "resumes" in name:
            proof = hkdf(ticket, publics["client"], b"wavesim/2 previous")[:8]
            assert found[9] == int.from_bytes(proof, "little")


def test_a_reader_of_the_page_reads_a_body_of_the_fleet(page: str) -> None:
    rows = re.findall(
        r"^\| (\d+) \| (\w+) \| ([uf])(\d)(?: x (\d))? \|", page.split("<!-- fleet:begin -->")[1], re.MULTILINE
    )
    bodies = next(d for n, d, _ in vectors(page) if n == "FLEET")[24:]
    record = read_msgpack(bodies)[5]
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
    assert set(re.findall(r"\(`(\w+)`\)", rules)) == set(codec.DROP_REASONS)


def rows(page: str, place: str) -> list[list[str]]:
    """Cells of the table at a place."""
    lines = page.split(f"<!-- {place}:begin -->")[1].split(f"<!-- {place}:end -->")[0].strip().splitlines()[2:]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def test_the_page_says_the_codes_and_columns_itself(page: str) -> None:
    """No need to look elsewhere: outcomes, refusals, rights, and what each sensor tells."""
    assert {(int(r[0]), r[1]) for r in rows(page, "outcomes")} == {(int(o), o.name) for o in Outcome}
    assert {(int(r[0]), r[1]) for r in rows(page, "refusals")} == {(int(c), c.name) for c in m.Refusal}
    assert {int(r[0]): r[1] for r in rows(page, "rights")} == {int(r): str(r.name).lower() for r in m.Right}
    sensors = {(r[0], r[1]): (r[2], r[3]) for r in rows(page, "sensors")}
    assert sensors["ctd", "`temperature`"] == ("1", "C") and sensors["multibeam", "`range`"] == ("256", "m")
    assert len({sensor for sensor, _ in sensors}) >= 20
    efforts = rows(page, "effort")
    assert efforts[0][:2] == ["0..5", "acceleration"] and efforts[-1][0] == "42..47"


def test_limits_of_the_page_are_those_of_the_code(page: str) -> None:
    from wavesim_sdk.wire import address_validation, client, recently_ended, reliable

    for text in (
        f"**{m.MAX_DATAGRAM} bytes**",
        f"has at least {m.MIN_HELLO} bytes",
        f"has at most {m.MAX_ITEMS} items",
        f"{reliable.MAX_PENDING} events",
        f"at most {client.LEAVE_TRIES} times",
        f"for {recently_ended.KEPT_S:.0f} s",
        f"valid for {address_validation.COOKIE_PERIOD_S:.0f} to {2 * address_validation.COOKIE_PERIOD_S:.0f} s",
        f"every {client.RETRY_S * 1e3:.0f} ms",
        f"at least {reliable.MIN_TIMEOUT_S * 1e3:.0f} ms and at most {reliable.MAX_TIMEOUT_S:.0f} s",
        f"Before the first measurement, it is {reliable.FIRST_WAIT_S * 1e3:.0f} ms",
        f"at most {codec.MAX_HANDSHAKE_ELEMENTS} elements",
        f"nested at most {m.MAX_DEPTH} deep",
        f"{address_validation.TOTAL_HANDSHAKE_RATE:.0f} HELLO and",
    ):
        assert text in page, text


def test_each_generated_part_of_the_page_is_that_of_the_code(page: str) -> None:
    parts = {
        **protocol_export.protocol_tables(),
        "vectors": examples.vectors_markdown(),
        "alternatives": examples.alternatives_markdown(),
        "sealed": examples.sealed_markdown(),
    }
    for place, text in parts.items():
        assert page.split(f"<!-- {place}:begin -->\n")[1].split(f"\n<!-- {place}:end -->")[0] == text
    assert protocol_export.FILE.read_text() == protocol_export.protocol_json()


def test_the_shipped_schema_is_that_of_the_code(root: Path) -> None:
    """As package data, and printed on request."""
    assert protocol_export.FILE.read_text() == protocol_export.protocol_json()
    assert "wire/protocol.json" in (root / "broker_sdk" / "pyproject.toml").read_text()
    done = subprocess.run(
        [sys.executable, "-m", "wavesim_sdk.wire.protocol_export"], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == protocol_export.protocol() and done.stderr == ""


def test_generated_pages_are_up_to_date(root: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(root / "docs" / "generate.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
