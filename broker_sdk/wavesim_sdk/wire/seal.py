"""Sealed datagrams: encryption and authentication with ChaCha20-Poly1305 (RFC 8439). HKDF-SHA256 (RFC 5869) derives the
keys of a session from a pre-shared key and an exchange of ephemeral keys (X25519, RFC 7748).

The ``cryptography`` package provides all three algorithms (``pip install 'wavesim-sdk[keys]'``). A pre-shared key has
32 bytes; the public key of the server may follow. JOIN carries the ephemeral public key of the client, and WELCOME
carries that of the server, so the keys of a session cannot be derived from the pre-shared key alone. The header is not
encrypted, but it is authenticated together with the payload.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from wavesim_sdk.errors import ConfigError
from wavesim_sdk.wire.codec import Dropped
from wavesim_sdk.wire.key_file import ANY_CLIENT, KEY_BYTES, read_key_file
from wavesim_sdk.wire.key_file import KeyHolder as KeyHolder
from wavesim_sdk.wire.key_file import find_key as find_key
from wavesim_sdk.wire.key_file import read_keys as read_keys
from wavesim_sdk.wire.messages import HEADER_BYTES, Type

NONCE_BYTES = 12
PUBLIC_BYTES = 32
WINDOW = 64  #: size of the replay window in sequence numbers; datagrams with older numbers are dropped
LABEL = b"wavesim/2 "  #: prefix of all labels; the digit is the version of the sealing
JOIN, REFUSE = LABEL + b"join", LABEL + b"refuse"
_TYPE = slice(5, 6)  # the message type in a header
_WELCOME = bytes((Type.WELCOME,))


def derive_key(key: bytes, salt: bytes, info: bytes) -> bytes:
    """Derive a key of 32 bytes by HKDF-SHA256."""
    return HKDF(SHA256(), KEY_BYTES, salt or None, info).derive(key)


def key_id(key: bytes) -> int:
    """Return the ID of a key, as used in a JOIN: the first 8 bytes of SHA-256 over a label and the key, as a
    little-endian integer.
    """
    return int.from_bytes(hashlib.sha256(LABEL + b"key id" + key).digest()[:8], "little")


def public_key(private: bytes) -> bytes:
    """Return the public key of a private X25519 key."""
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


class EphemeralKey:
    """Key pair for the exchange of one session. ``private`` is set for the test vectors; otherwise it is random."""

    def __init__(self, private: bytes = b"") -> None:
        self._private = X25519PrivateKey.from_private_bytes(private) if private else X25519PrivateKey.generate()
        self.public = self._private.public_key().public_bytes_raw()

    def agree(self, public: bytes) -> bytes:
        """Return the shared secret, which the owner of this public key also computes. Raises Dropped if the public key
        is invalid.
        """
        try:
            return self._private.exchange(X25519PublicKey.from_public_bytes(public))
        except ValueError:  # its length is wrong, or every private key would give the same secret
            raise Dropped("seal") from None


class HandshakeSeal:
    """Seal of JOIN and REFUSE messages. A random nonce precedes the sealed payload, so that one key can be used for
    many joins. In a JOIN, the client's ephemeral public key follows the nonce; it is authenticated too.
    """

    def __init__(self, key: bytes, info: bytes, nonce: bytes = b"", public: bytes = b"") -> None:
        self._aead = ChaCha20Poly1305(derive_key(key, b"", info))
        self._nonce, self._public = nonce, public  # the nonce is set for the test vectors; otherwise random
        self._clear_bytes = NONCE_BYTES + (PUBLIC_BYTES if info == JOIN else 0)

    def seal(self, header: bytes, plain: bytes, _sequence: int) -> bytes:
        """Return the nonce and the public key, followed by the sealed payload."""
        nonce = self._nonce or secrets.token_bytes(NONCE_BYTES)
        return nonce + self._public + self._aead.encrypt(nonce, plain, header + self._public)

    def open(self, header: bytes, sealed: bytes, _sequence: int) -> bytes:
        """Return the payload; raise Dropped if the key is wrong or a bit has been changed."""
        clear, sealed = sealed[: self._clear_bytes], sealed[self._clear_bytes :]
        try:
            return self._aead.decrypt(clear[:NONCE_BYTES], sealed, header + clear[NONCE_BYTES:])
        except (InvalidTag, ValueError):
            raise Dropped("seal") from None

    authenticate = open  # a handshake has no replay window


def public_of_join(data: bytes) -> bytes:
    """Return the public key in a sealed JOIN datagram."""
    return data[HEADER_BYTES + NONCE_BYTES :][:PUBLIC_BYTES]


def previous_proof(ticket: int, public: bytes) -> int:
    """Return the value of `previous` in a sealed JOIN. This value proves that the client has the ticket of a session,
    and it is useless in a JOIN with another public key.
    """
    derived = derive_key(ticket.to_bytes(8, "little"), public, LABEL + b"previous")
    return int.from_bytes(derived[:8], "little")


class SessionSeal:
    """Seal of one side of a session: it seals the datagrams that this side sends, and opens those that it receives.

    ``secret`` consists of the pre-shared key and the results of the key exchange; ``salt`` consists of all public data
    of the session. ``public`` is the server's ephemeral public key, which WELCOME carries in front of its sealed
    payload.
    """

    def __init__(self, secret: bytes, salt: bytes, token: int, is_client: bool, public: bytes = b"") -> None:
        def derive(what: bytes) -> bytes:
            return derive_key(secret, salt, LABEL + what + token.to_bytes(8, "little"))

        sides = [ChaCha20Poly1305(derive(side)) for side in (b"client", b"server")]
        self._send, self._receive = sides if is_client else reversed(sides)
        self._highest, self._seen = 0, 0
        self._public = public
        #: number that only the client and the server know, and with which the client resumes the session
        self.ticket = int.from_bytes(derive(b"resume")[:8], "little")

    def seal(self, header: bytes, plain: bytes, sequence: int) -> bytes:
        """Return the sealed payload; use each sequence number only once in a session."""
        sealed = self._send.encrypt(sequence.to_bytes(NONCE_BYTES, "little"), plain, header)
        return self._public + sealed if header[_TYPE] == _WELCOME else sealed

    def open(self, header: bytes, sealed: bytes, sequence: int) -> bytes:
        """Return the payload; raise Dropped if the datagram is forged, changed or repeated."""
        if not self.is_new(sequence):
            raise Dropped("replay")
        plain = self.authenticate(header, sealed, sequence)
        self.record(sequence)
        return plain

    def is_new(self, sequence: int) -> bool:
        """Return whether no datagram with this sequence number has been received yet. A number below the replay window
        counts as received.
        """
        ahead = sequence - self._highest
        return not (ahead <= -WINDOW or (ahead <= 0 and self._seen >> -ahead & 1))

    def authenticate(self, header: bytes, sealed: bytes, sequence: int) -> bytes:
        """Return the payload; raise Dropped if the datagram is forged or changed. The replay window stays unchanged."""
        if header[_TYPE] == _WELCOME:
            sealed = sealed[PUBLIC_BYTES:]
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

    def proves(self, previous: int, public: bytes) -> bool:
        """Return whether a JOIN with this `previous` and this public key comes from the client that opened the session."""
        expected = previous_proof(self.ticket, public)
        return hmac.compare_digest(previous.to_bytes(8, "little"), expected.to_bytes(8, "little"))


def _salt(cookie: bytes, nonce: int, client: bytes, server: bytes) -> bytes:
    return cookie + nonce.to_bytes(8, "little") + client + server


class ClientExchange:
    """Client side of the exchange in one handshake."""

    def __init__(self, key: bytes, ephemeral: EphemeralKey | None = None) -> None:
        self.key, self._ephemeral = key, ephemeral if ephemeral is not None else EphemeralKey()
        self.public = self._ephemeral.public

    def session_seal(self, cookie: bytes, nonce: int, token: int, server_public: bytes) -> SessionSeal:
        """Return the client side of the session's seal. Raises Dropped if the server's public key is invalid."""
        secret = self.key + self._ephemeral.agree(server_public)
        if len(self.key) > KEY_BYTES:  # only the server of this key can compute the same
            secret += self._ephemeral.agree(self.key[KEY_BYTES:])
        return SessionSeal(secret, _salt(cookie, nonce, self.public, server_public), token, is_client=True)


class WelcomeSeal:
    """Seal with which a client opens a WELCOME. The WELCOME carries the server's public key, from which the seal of the
    new session is derived; :attr:`session` contains that seal.
    """

    def __init__(self, exchange: ClientExchange, cookie: bytes, nonce: int, token: int) -> None:
        self._exchange, self._of = exchange, (cookie, nonce, token)
        self.session: SessionSeal | None = None

    def seal(self, header: bytes, plain: bytes, sequence: int) -> bytes:
        """Raise an error, because only a server sends a WELCOME."""
        raise NotImplementedError

    def open(self, header: bytes, sealed: bytes, sequence: int) -> bytes:
        """Return the payload; raise Dropped if the sender does not have the key, or is not the server for which the key
        is valid.
        """
        made = self._exchange.session_seal(*self._of, sealed[:PUBLIC_BYTES])
        plain = made.open(header, sealed, sequence)
        self.session = made
        return plain

    authenticate = open


class ServerExchange:
    """Server side of the exchange in one handshake."""

    def __init__(self, key: bytes, client_public: bytes, static_secret: bytes, ephemeral: EphemeralKey) -> None:
        self._secret = key + ephemeral.agree(client_public) + static_secret
        self._client, self._public = client_public, ephemeral.public

    def session_seal(self, cookie: bytes, nonce: int, token: int) -> SessionSeal:
        """Return the server side of the session's seal."""
        salt = _salt(cookie, nonce, self._client, self._public)
        return SessionSeal(self._secret, salt, token, is_client=False, public=self._public)


class Keyring:
    """The keys of a server: the pre-shared keys of its clients, and the private key of the server, which it needs for
    pre-shared keys that are valid for this server only.
    """

    def __init__(self, holders: Sequence[KeyHolder], server_private: bytes = b"") -> None:
        self.holders = tuple(holders)
        self.by_id = {key_id(h.key): h for h in holders}
        self._names = {h.name for h in holders} - {ANY_CLIENT}
        self._static = X25519PrivateKey.from_private_bytes(server_private) if server_private else None
        self._open = {h.key: HandshakeSeal(h.key, JOIN) for h in holders}
        self._refuse = {h.key: HandshakeSeal(h.key, REFUSE) for h in holders}

    def join_seal(self, holder: KeyHolder) -> HandshakeSeal:
        """Return the seal that decrypts a JOIN from a key holder."""
        return self._open[holder.key]

    def refuse_seal(self, holder: KeyHolder) -> HandshakeSeal:
        """Return the seal for a REFUSE to a key holder."""
        return self._refuse[holder.key]

    def exchange(
        self, holder: KeyHolder, client_public: bytes, ephemeral: EphemeralKey | None = None
    ) -> ServerExchange:
        """Return the server side of an exchange with a client, given the public key of the client. Raises Dropped if
        that key is invalid.
        """
        static = b""
        if len(holder.key) > KEY_BYTES:
            assert self._static is not None  # read_keyring checks that
            try:
                static = self._static.exchange(X25519PublicKey.from_public_bytes(client_public))
            except ValueError:
                raise Dropped("seal") from None
        return ServerExchange(holder.key, client_public, static, ephemeral if ephemeral is not None else EphemeralKey())

    def public_of_join(self, data: bytes) -> bytes:
        """Return the public key in a sealed JOIN datagram."""
        return public_of_join(data)

    def has_own_key(self, name: str) -> bool:
        """Return whether a name has its own key. A key for all names is not valid for such a name."""
        return name in self._names

    def includes(self, holder: KeyHolder) -> bool:
        """Return whether a key is still in this keyring under its name, in use or retired."""
        return any((h.name, h.key) == (holder.name, holder.key) for h in self.holders)


def read_keyring(path: Path) -> Keyring:
    """Read the key file of a server. Raises ConfigError if it is invalid or has a key that is valid for another server."""
    found = read_key_file(path)
    own = public_key(found.server_private) if found.server_private else b""
    for holder in found.holders:
        if holder.key[KEY_BYTES:] not in (b"", own):
            raise ConfigError(
                f"the key of '{holder.name}' belongs to a different server: the `@server` line of this key file has a different "
                "key, or is missing",
                str(path),
            )
    return Keyring(found.holders, found.server_private)
