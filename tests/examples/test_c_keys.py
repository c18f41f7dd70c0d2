"""wavesim_keys.h: the vectors of RFC 8439 and RFC 5869, and the same results as the package ``cryptography`` for any
input.
"""

from __future__ import annotations

import random
import re
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256, Hash
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.poly1305 import Poly1305

from tests.examples.compiled import SANITIZED, compiled, tool
from wavesim_sdk.wire import seal

Question = tuple[str, *tuple[bytes, ...]]
Ask = Callable[[list[Question]], list[bytes | str]]
FAILS = {0xFFFF: "no", 0xFFFE: "forged"}
SUNSCREEN = b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, sunscreen would be it."


@pytest.fixture(scope="module")
def ask(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Ask:
    source, out = root / "tests/examples/c/keys.c", tmp_path_factory.mktemp("c") / "keys"
    program = compiled(source, out, f"-I{root / 'examples/c-broker'}", *SANITIZED)

    def run(questions: list[Question]) -> list[bytes | str]:
        stream = b"".join(
            what.encode() + b"".join(struct.pack("<H", len(a)) + a for a in arguments) for what, *arguments in questions
        )
        done = subprocess.run([program], input=stream, capture_output=True, timeout=100)
        assert done.returncode == 0, done.stderr.decode()[-3000:]
        answers: list[bytes | str] = []
        at = 0
        while at < len(done.stdout):
            (size,) = struct.unpack_from("<H", done.stdout, at)
            at += 2
            answers.append(FAILS.get(size) or done.stdout[at : at + size])
            at += 0 if size in FAILS else size
        return answers

    return run


def test_rfc_8439(ask: Ask) -> None:
    key = bytes(range(0x80, 0xA0))
    nonce, ad = bytes.fromhex("070000004041424344454647"), bytes.fromhex("50515253c0c1c2c3c4c5c6c7")
    stream, tag, sealed = ask(
        [
            ("c", bytes(range(32)), bytes.fromhex("01000000000000000000004a00000000"), SUNSCREEN),
            (
                "p",
                bytes.fromhex("85d6be7857556d337f4452fe42d506a80103808afb0db2fd4abff6af4149f51b"),
                b"Cryptographic Forum Research Group",
            ),
            ("s", key, nonce, ad, SUNSCREEN),
        ]
    )
    assert isinstance(stream, bytes) and isinstance(tag, bytes) and isinstance(sealed, bytes)
    assert stream.hex().startswith("6e2e359a2568f98041ba0728dd0d6981e97e7aec1d4360c20a27afccfd9fae0b")
    assert tag.hex() == "a8061dc1305136c6c22b8baf0c0127a9"
    assert sealed.hex().startswith("d31a8d34648e60db7b86afbc53ef7ec2")
    assert sealed[-16:].hex() == "1ae10b594f09e26a7e902ecbd0600691"
    assert ask([("o", key, nonce, ad, sealed)]) == [SUNSCREEN]


@pytest.mark.parametrize(
    ("r", "s", "data", "tag"),
    [  # appendix A.3: where carries and the last reduction go wrong
        ("02" + "00" * 15, "00" * 16, "ff" * 16, "03" + "00" * 15),
        ("02" + "00" * 15, "ff" * 16, "02" + "00" * 15, "03" + "00" * 15),
        ("01" + "00" * 15, "00" * 16, "ff" * 16 + "f0" + "ff" * 15 + "11" + "00" * 15, "05" + "00" * 15),
        ("01" + "00" * 15, "00" * 16, "ff" * 16 + "fb" + "fe" * 15 + "01" * 16, "00" * 16),
        ("02" + "00" * 15, "00" * 16, "fd" + "ff" * 15, "fa" + "ff" * 15),
    ],
)
def test_rfc_8439_appendix(ask: Ask, r: str, s: str, data: str, tag: str) -> None:
    assert ask([("p", bytes.fromhex(r + s), bytes.fromhex(data))]) == [bytes.fromhex(tag)]


@pytest.mark.parametrize(
    ("key", "salt", "info", "out"),
    [
        (
            b"\x0b" * 22,
            bytes(range(13)),
            bytes(range(0xF0, 0xFA)),
            "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865",
        ),
        (
            bytes(range(0x50)),
            bytes(range(0x60, 0xB0)),
            bytes(range(0xB0, 0x100)),
            "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41c65e590e09"
            "da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87",
        ),
        (
            b"\x0b" * 22,
            b"",
            b"",
            "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8",
        ),
    ],
)
def test_rfc_5869(ask: Ask, key: bytes, salt: bytes, info: bytes, out: str) -> None:
    (found,) = ask([("h", key, salt, info)])
    assert isinstance(found, bytes) and found.hex()[: len(out)] == out


def bytes_with_edges(rng: random.Random, size: int) -> bytes:
    """Now and then bytes at which limbs and carries are full."""
    if rng.random() < 0.3:
        return bytes(rng.choice((0, 1, 2, 0xFA, 0xFB, 0xFC, 0xFE, 0xFF, 0xFF, 0xFF)) for _ in range(size))
    return rng.randbytes(size)


def test_any_bytes_as_cryptography_does_it(ask: Ask) -> None:
    """2000 of each, of all lengths that a datagram can have."""
    rng = random.Random(7)
    questions: list[Question] = []
    expected: list[bytes | str] = []
    for size in [*range(270), *(rng.randrange(1300) for _ in range(1730))]:
        key, nonce, ad, data = (
            bytes_with_edges(rng, n) for n in (32, 12, rng.choice((0, 1, 15, 16, 17, 24, 40)), size)
        )
        questions.append(("p", key, data))
        expected.append(Poly1305.generate_tag(key, data))
        sealed = ChaCha20Poly1305(key).encrypt(nonce, data, ad)
        questions += [("s", key, nonce, ad, data), ("o", key, nonce, ad, sealed)]
        expected += [sealed, data]
        counter = struct.pack("<I", rng.randrange(2**32 - 64)) + nonce
        questions.append(("c", key, counter, data))
        expected.append(Cipher(algorithms.ChaCha20(key, counter), None).encryptor().update(data))
        digest = Hash(SHA256())
        digest.update(data)
        questions.append(("H", data))
        expected.append(digest.finalize())
        material, salt, info = (rng.randbytes(rng.randrange(140)) for _ in range(3))
        questions.append(("h", material, salt, info))
        expected.append(HKDF(SHA256(), 82, salt or None, info).derive(material))
    assert ask(questions) == expected


def test_one_changed_bit_does_not_open(ask: Ask) -> None:
    """In the sealed body, the tag, the additional data, the nonce or the key: nothing is written."""
    key, nonce, ad, plain = bytes(range(32)), bytes(12), bytes(24), b"an actuator command"
    sealed = ChaCha20Poly1305(key).encrypt(nonce, plain, ad)
    arguments = [key, nonce, ad, sealed]
    questions: list[Question] = []
    for which, argument in enumerate(arguments):
        for bit in range(8 * len(argument)):
            changed = bytearray(argument)
            changed[bit // 8] ^= 1 << bit % 8
            questions.append(("o", *arguments[:which], bytes(changed), *arguments[which + 1 :]))
    questions += [("o", key, nonce, ad, sealed[:size]) for size in range(len(sealed))]
    assert set(ask(questions)) == {"no"}


def test_a_tag_is_compared_in_constant_time(root: Path, tmp_path: Path) -> None:
    """Wherever a tag differs, every line of the header runs as many times."""
    gcov = tool("gcov")
    key, nonce, ad = bytes(range(32)), bytes(12), bytes(24)
    sealed = ChaCha20Poly1305(key).encrypt(nonce, b"an actuator command", ad)
    counts = set()
    program = compiled(
        root / "tests/examples/c/keys.c", tmp_path / "keys", f"-I{root / 'examples/c-broker'}", "-O0", "--coverage"
    )
    for at in range(16):
        for left in tmp_path.glob("*.gcda"):
            left.unlink()
        forged = bytearray(sealed)
        forged[len(sealed) - 16 + at] ^= 0x80
        stream = b"o" + b"".join(struct.pack("<H", len(a)) + a for a in (key, nonce, ad, bytes(forged)))
        assert subprocess.run([program], input=stream, capture_output=True, cwd=tmp_path).stdout == b"\xff\xff"
        (notes,) = tmp_path.glob("*.gcda")
        done = subprocess.run([gcov, "-t", str(notes)], cwd=tmp_path, capture_output=True, text=True, check=True)
        lines = done.stdout.split("wavesim_keys.h", 1)[1]
        counts.add(tuple(re.findall(r"^ +(\d+|#####):", lines, re.MULTILINE)))
    (same,) = counts
    assert len(same) > 80


# ----------------------------------------------------------------------------------------- as wire/seal.py uses them

KEY, COOKIE, NONCE, TOKEN = bytes(range(32)), bytes(range(16)), 2**63 + 7, 0x8877665544332211


def header(sequence: int) -> bytes:
    return bytes(16) + struct.pack("<II", sequence, 0)


def session() -> Question:
    return ("b", KEY, COOKIE, NONCE.to_bytes(8, "little"), TOKEN.to_bytes(8, "little"))


def test_join_and_refuse_as_the_server_reads_and_writes_them(ask: Ask) -> None:
    nonce, body = bytes(range(12)), b"a join"
    closed = seal.HandshakeSeal(KEY, seal.JOIN, nonce).seal(header(2), body, 2)
    refused = seal.HandshakeSeal(KEY, seal.REFUSE).seal(header(0), b"refused", 0)
    spoiled = refused[:-1] + bytes([refused[-1] ^ 1])
    questions: list[Question] = [
        ("i", KEY),
        ("j", KEY, nonce, header(2), body),
        ("r", KEY, header(0), refused),
        ("r", KEY, header(0), spoiled),
        ("r", KEY, header(0), refused[:20]),
    ]
    assert ask(questions) == [seal.key_id(KEY).to_bytes(8, "little"), closed, b"refused", "no", "no"]


def test_both_directions_of_a_session(ask: Ask) -> None:
    server = seal.SessionSeal(KEY, COOKIE, NONCE, TOKEN, is_client=False)
    sent = ask([session(), *(("S", header(n), b"to the server") for n in (1, 2, 2**31))])
    for number, data in zip((1, 2, 2**31), sent, strict=True):
        assert isinstance(data, bytes) and server.open(header(number), data, number) == b"to the server"
    came: list[Question] = [
        ("O", header(n), server.seal(header(n), b"to the client", n)) for n in (1, 2, 2**31, 2**32 - 1)
    ]
    assert ask([session(), *came]) == [b"to the client"] * 4


def test_the_window_against_repeats_is_that_of_the_sdk(ask: Ask) -> None:
    """Any order, repeats, forged ones: the same answers as :class:`wavesim_sdk.wire.seal.SessionSeal`."""
    server = seal.SessionSeal(KEY, COOKIE, NONCE, TOKEN, is_client=False)
    client = seal.SessionSeal(KEY, COOKIE, NONCE, TOKEN, is_client=True)
    rng, at = random.Random(3), 100
    questions: list[Question] = []
    expected: list[bytes | str] = []
    for _ in range(4000):
        at = min(at + rng.choice((0, 0, 1, 1, 2, 63, 64, 65, 1000)) * (rng.random() < 0.2), 2**32 - 1)
        number = max(at - rng.choice((0, 1, 2, 5, 62, 63, 64, 65, 90)), 0)
        data = server.seal(header(number), b"x", number)
        if rng.random() < 0.2:
            data = data[:-1] + bytes([data[-1] ^ 4])
        questions.append(("O", header(number), data))
        try:
            expected.append(client.open(header(number), data, number))
        except seal.Dropped as dropped:
            expected.append({"replay": "no", "seal": "forged"}[dropped.reason])
    assert ask([session(), *questions]) == expected
    assert {"no", "forged", b"x"} <= set(expected)
