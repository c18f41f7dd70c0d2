"""Sealed datagrams, which are authenticated and encrypted by ChaCha20-Poly1305 (RFC 8439) with keys derived by
HKDF-SHA256 (RFC 5869).

The ``cryptography`` package provides both algorithms (``pip install 'wavesim-sdk[keys]'``). A pre-shared key has 32
bytes; each session derives two keys from it, one for each direction. The header is not encrypted, but it is
authenticated together with the payload.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from wavesim_sdk.errors import ConfigError
from wavesim_sdk.wire.codec import Dropped

KEY_BYTES = 32
NONCE_BYTES = 12
WINDOW = 64  #: maximum number of sequence numbers by which a datagram may arrive out of order


def derive_key(key: bytes, salt: bytes, info: bytes) -> bytes:
    """Derive a key of 32 bytes by HKDF-SHA256."""
    return HKDF(SHA256(), KEY_BYTES, salt or None, info).derive(key)


def key_id(key: bytes) -> int:
    """Return the number of a key as used in a JOIN: the first 8 bytes of SHA-256 over a label and the key,
    little-endian.
    """
    return int.from_bytes(hashlib.sha256(b"wavesim/1 key id" + key).digest()[:8], "little")


class HandshakeSeal:
    """Seal of JOIN and REFUSE messages. A random nonce precedes the sealed payload, so that one key can be used for
    many joins.
    """

    def __init__(self, key: bytes, info: bytes, nonce: bytes = b"") -> None:
        self._aead = ChaCha20Poly1305(derive_key(key, b"", info))
        self._nonce = nonce  # set for the test vectors; otherwise random

    def seal(self, header: bytes, plain: bytes, _sequence: int) -> bytes:
        """Return the nonce followed by the sealed payload."""
        nonce = self._nonce or secrets.token_bytes(NONCE_BYTES)
        return nonce + self._aead.encrypt(nonce, plain, header)

    def open(self, header: bytes, sealed: bytes, _sequence: int) -> bytes:
        """Return the payload; raise Dropped if the key is wrong or a bit has been changed."""
        try:
            return self._aead.decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], header)
        except (InvalidTag, ValueError):
            raise Dropped("seal") from None

    authenticate = open  # a handshake has no replay window


JOIN, REFUSE = b"wavesim/1 join", b"wavesim/1 refuse"


class SessionSeal:
    """Seals the datagrams that one side of a session sends, and opens those that it receives."""

    def __init__(self, key: bytes, cookie: bytes, nonce: int, token: int, is_client: bool) -> None:
        salt = cookie + nonce.to_bytes(8, "little")
        sides = [
            ChaCha20Poly1305(derive_key(key, salt, b"wavesim/1 " + side + token.to_bytes(8, "little")))
            for side in (b"client", b"server")
        ]
        self._send, self._receive = sides if is_client else reversed(sides)
        self._highest, self._seen = 0, 0

    def seal(self, header: bytes, plain: bytes, sequence: int) -> bytes:
        """Return the sealed payload; use each sequence number only once in a session."""
        return self._send.encrypt(sequence.to_bytes(NONCE_BYTES, "little"), plain, header)

    def open(self, header: bytes, sealed: bytes, sequence: int) -> bytes:
        """Return the payload; raise Dropped if the datagram is forged, changed or repeated."""
        ahead = sequence - self._highest
        if ahead <= -WINDOW or (ahead <= 0 and self._seen >> -ahead & 1):
            raise Dropped("replay")
        plain = self.authenticate(header, sealed, sequence)
        self.record(sequence)
        return plain

    def authenticate(self, header: bytes, sealed: bytes, sequence: int) -> bytes:
        """Return the payload; raise Dropped if the datagram is forged or changed. The replay window stays unchanged."""
        try:
            return self._receive.decrypt(sequence.to_bytes(NONCE_BYTES, "little"), sealed, header)
        except (InvalidTag, ValueError):
            raise Dropped("seal") from None

    def record(self, sequence: int) -> None:
        """Record a sequence number in the replay window, so that a repeated datagram is dropped."""
        ahead = sequence - self._highest
        if ahead > 0:
            self._seen = (self._seen << ahead | 1) & (1 << WINDOW) - 1
            self._highest = sequence
        elif ahead > -WINDOW:
            self._seen |= 1 << -ahead


@dataclass(frozen=True)
class KeyHolder:
    """Key, with the name of the client that may join with it; ``*`` means any client."""

    name: str
    key: bytes


class Keyring:
    """The pre-shared keys of a server."""

    def __init__(self, holders: list[KeyHolder]) -> None:
        self.by_id = {key_id(h.key): h for h in holders}
        self._open = {h.key: HandshakeSeal(h.key, JOIN) for h in holders}
        self._refuse = {h.key: HandshakeSeal(h.key, REFUSE) for h in holders}

    def join_seal(self, holder: KeyHolder) -> HandshakeSeal:
        """Return the seal that decrypts a JOIN from a key holder."""
        return self._open[holder.key]

    def refuse_seal(self, holder: KeyHolder) -> HandshakeSeal:
        """Return the seal for a REFUSE to a key holder."""
        return self._refuse[holder.key]

    def session_seal(self, holder: KeyHolder, cookie: bytes, nonce: int, token: int) -> SessionSeal:
        """Return the server side of a session's seal."""
        return SessionSeal(holder.key, cookie, nonce, token, is_client=False)


def read_keys(path: Path) -> list[KeyHolder]:
    """Read the keys from a key file. Each line is ``NAME KEY``: the name of a client or ``*``, followed by 64
    hexadecimal digits.

    Raises ConfigError if the file is invalid, or if users other than the owner may read it.
    """
    try:
        if path.stat().st_mode & 0o077:
            raise ConfigError("other users may read this key file; restrict it to its owner (chmod 600)", str(path))
        lines = path.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError as error:
        raise ConfigError(f"cannot read the key file: {error.strerror}", str(path)) from None
    holders: list[KeyHolder] = []
    for number, line in enumerate(lines, 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        try:
            key = bytes.fromhex(words[1]) if len(words) == 2 else b""
        except ValueError:
            key = b""
        if len(key) != KEY_BYTES:
            raise ConfigError("expected a line `NAME KEY` with a key of 64 hexadecimal digits", str(path), number)
        if any(h.key == key for h in holders):
            raise ConfigError("duplicate key; each client needs its own", str(path), number)
        holders.append(KeyHolder(words[0], key))
    if not holders:
        raise ConfigError("the key file has no keys; generate some with `wavesim keys`", str(path))
    return holders


def find_key(path: Path, name: str) -> bytes:
    """Return the key of a client: the key for its name if there is one, otherwise the key for all names (``*``)."""
    holders = read_keys(path)
    for wanted in (name, "*"):
        for h in holders:
            if h.name == wanted:
                return h.key
    raise ConfigError(f"the key file has no key for '{name}' and no key for all clients (*)", str(path))
