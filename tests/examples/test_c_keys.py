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
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
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


@pytest.mark.parametrize(
    ("scalar", "u", "out"),
    [
        (
            "a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4",
            "e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c",
            "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552",
        ),
        (
            "4b66e9d4d1b4673c5ad22691957d6af5c11b6421e0ea01d42ca4169e7918ba0d",
            "e5210f12786811d3f4b7959d0538ae2c31dbe7106fc03c3efc4cd549c715a493",
            "95cbde9476e8907d7aade45cb4b873f88b595a68799fa152e6f8f7647aac7957",
        ),
    ],
)
def test_rfc_7748(ask: Ask, scalar: str, u: str, out: str) -> None:
    assert ask([("x", bytes.fromhex(scalar), bytes.fromhex(u))]) == [bytes.fromhex(out)]


def test_rfc_7748_again_and_again(ask: Ask) -> None:
    """Section 5.2: the result becomes the next scalar, and the scalar the next point."""
    k = u = bytes([9]) + bytes(31)
    results = []
    for _ in range(100):
        (found,) = ask([("x", k, u)])
        assert isinstance(found, bytes)
        k, u = found, k
        results.append(found)
    assert results[0].hex() == "422c8e7a6227d7bca1350b3e2bb7279f7897b87bb6854b783c60e80311ae3079"
    expected = k = u = bytes([9]) + bytes(31)
    for result in results:
        expected = X25519PrivateKey.from_private_bytes(k).exchange(X25519PublicKey.from_public_bytes(u))
        k, u = expected, k
        assert result == expected


def test_exchanges_as_cryptography_does_them(ask: Ask) -> None:
    """Random points, points at or above the modulus, and those that give everybody the same secret."""
    rng = random.Random(11)
    prime = 2**255 - 19
    edges = [
        0,
        1,
        2,
        9,
        prime - 1,
        prime,
        prime + 1,
        prime + 18,
        2**255 - 1,
        2**255,
        2**256 - 1,
        prime - 2,
        2**255 - 38,
    ]
    edges.append(325606250916557431795983626356110631294008115727848805560023387167927233504)  # of order 8
    points = [e.to_bytes(32, "little") for e in edges] + [bytes_with_edges(rng, 32) for _ in range(80)]
    questions: list[Question] = []
    expected: list[bytes | str] = []
    for point in points:
        private = bytes_with_edges(rng, 32)
        questions += [("x", private, point), ("k", private)]
        owner = X25519PrivateKey.from_private_bytes(private)
        try:
            expected.append(owner.exchange(X25519PublicKey.from_public_bytes(point)))
        except ValueError:
            expected.append("no")
        expected.append(owner.public_key().public_bytes_raw())
    assert ask(questions) == expected
    assert expected.count("no") >= 5


# ----------------------------------------------------------------------------------------- as wire/seal.py uses them

KEY, COOKIE, NONCE, TOKEN = bytes(range(32)), bytes(range(16)), 2**63 + 7, 0x8877665544332211
STATIC, OWN = bytes(range(9, 41)), seal.EphemeralKey(bytes(range(50, 82)))
PINNED = KEY + seal.public_key(STATIC)
both_keys = pytest.mark.parametrize("key", [KEY, PINNED], ids=["any server", "one server"])


def header(sequence: int) -> bytes:
    return bytes(16) + struct.pack("<II", sequence, 0)


def server_side(key: bytes = KEY) -> tuple[seal.SessionSeal, Question]:
    """The server's side of a session, and the question that begins the other side."""
    theirs = seal.EphemeralKey()
    ring = seal.Keyring([seal.KeyHolder("a", key)], STATIC)
    made = ring.exchange(ring.holders[0], OWN.public, theirs).session_seal(COOKIE, NONCE, TOKEN)
    place = COOKIE + NONCE.to_bytes(8, "little") + TOKEN.to_bytes(8, "little")
    return made, ("b", key, OWN._private.private_bytes_raw(), theirs.public, place)


@both_keys
def test_join_and_refuse_as_the_server_reads_and_writes_them(ask: Ask, key: bytes) -> None:
    nonce, body = bytes(range(12)), b"a join"
    closed = seal.HandshakeSeal(key, seal.JOIN, nonce, OWN.public).seal(header(2), body, 2)
    refused = seal.HandshakeSeal(key, seal.REFUSE).seal(header(0), b"refused", 0)
    spoiled = refused[:-1] + bytes([refused[-1] ^ 1])
    questions: list[Question] = [
        ("i", key),
        ("j", key, nonce + OWN.public, header(2), body),
        ("r", key, header(0), refused),
        ("r", key, header(0), spoiled),
        ("r", key, header(0), refused[:20]),
        ("v", (2**64 - 5).to_bytes(8, "little"), OWN.public),
    ]
    proof = seal.previous_proof(2**64 - 5, OWN.public).to_bytes(8, "little")
    assert ask(questions) == [seal.key_id(key).to_bytes(8, "little"), closed, b"refused", "no", "no", proof]


@both_keys
def test_both_directions_of_a_session(ask: Ask, key: bytes) -> None:
    server, session = server_side(key)
    ticket, *sent = ask([session, *(("S", header(n), b"to the server") for n in (1, 2, 2**31))])
    assert ticket == server.ticket.to_bytes(8, "little")
    for number, data in zip((1, 2, 2**31), sent, strict=True):
        assert isinstance(data, bytes) and server.open(header(number), data, number) == b"to the server"
    came: list[Question] = [
        ("O", header(n), server.seal(header(n), b"to the client", n)) for n in (1, 2, 2**31, 2**32 - 1)
    ]
    assert ask([session, *came]) == [ticket, *[b"to the client"] * 4]
    invalid: Question = (*session[:3], bytes(32), session[4])
    assert ask([invalid]) == ["no"]


def test_the_window_against_repeats_is_that_of_the_sdk(ask: Ask) -> None:
    """Any order, repeats, forged ones: the same answers as :class:`wavesim_sdk.wire.seal.SessionSeal`."""
    server, session = server_side()
    client = seal.ClientExchange(KEY, OWN).session_seal(COOKIE, NONCE, TOKEN, session[3])
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
    assert ask([session, *questions])[1:] == expected
    assert {"no", "forged", b"x"} <= set(expected)
