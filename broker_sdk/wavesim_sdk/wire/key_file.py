"""Key files, which list the names and keys of the clients that may join a server.

Each line of a key file is one of::

    @server PRIVATE                 private key of the server (X25519); only in the server's file
    NAME KEY [SERVER] [retired]     pre-shared key of a client; ``*`` means any name without a line of its own

KEY and SERVER have 64 hexadecimal digits. SERVER is the public key of the server for which the line was made. A line
with the word ``retired`` belongs to a key that was replaced: the sessions of this key continue, but the key cannot open
new ones.
"""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from wavesim_sdk.errors import ConfigError

KEY_BYTES = 32
ANY_CLIENT = "*"  #: name of a key that is valid for every client whose name does not have its own key
SERVER = "@server"  #: first word of the line with the private key of the server
RETIRED = "retired"
_KEEP = "surrogateescape"  # so that a changed file keeps comments in any encoding
_EXPECTED = "expected a line `NAME KEY` with a key of 64 hexadecimal digits"


@dataclass(frozen=True)
class KeyHolder:
    """Key, with the name of the client that may join with it; ``*`` means any client.

    The key has 32 bytes. A key that is valid for one server only is followed by the public key of that server (64 bytes
    in total).
    """

    name: str
    key: bytes = field(repr=False)
    is_retired: bool = False


@dataclass(frozen=True)
class KeyFile:
    """The content of a key file."""

    holders: list[KeyHolder]
    server_private: bytes = field(default=b"", repr=False)  #: private key of the server; empty if there is none


def read_key_file(path: Path) -> KeyFile:
    """Read a key file. Raises ConfigError if it is invalid, or if users other than the owner may read it."""
    found = _parse(path, _read_lines(path))
    if not found.holders:
        raise ConfigError("the key file has no keys; generate some with `wavesim keys`", str(path))
    return found


def read_keys(path: Path) -> list[KeyHolder]:
    """Return the keys in a key file. Raises ConfigError as :func:`read_key_file` does."""
    return read_key_file(path).holders


def find_key(path: Path, name: str) -> bytes:
    """Return the key of a client: the newest key for its name if there is one, otherwise the newest for all names
    (``*``).
    """
    valid = {h.name: h.key for h in read_keys(path) if not h.is_retired}
    for wanted in (name, ANY_CLIENT):
        if wanted in valid:
            return valid[wanted]
    raise ConfigError(f"the key file has no key for '{name}' and no key for all clients (*)", str(path))


def _read_lines(path: Path, errors: str = "replace") -> list[str]:
    try:
        if path.stat().st_mode & 0o077:
            raise ConfigError("other users may read this key file; restrict it to its owner (chmod 600)", str(path))
        return path.read_text(encoding="ascii", errors=errors).splitlines()
    except OSError as error:
        raise ConfigError(f"cannot read the key file: {error.strerror}", str(path)) from None


def _parse(path: Path, lines: Sequence[str]) -> KeyFile:
    holders: list[KeyHolder] = []
    private = b""
    for number, line in enumerate(lines, 1):
        words = _words(line)
        if not words:
            continue
        retired = words[-1] == RETIRED and len(words) > 2
        if retired:
            words.pop()
        numbers = [_number(word) for word in words[1:]]
        if not 1 <= len(numbers) <= 2 or any(len(n) != KEY_BYTES for n in numbers):
            raise ConfigError(_EXPECTED, str(path), number)
        if words[0] == SERVER:
            if private or retired or len(numbers) != 1:
                raise ConfigError(f"expected one line `{SERVER} KEY` with a private key", str(path), number)
            private = numbers[0]
            continue
        if any(h.key[:KEY_BYTES] == numbers[0] for h in holders):
            raise ConfigError("duplicate key; each client needs its own", str(path), number)
        holders.append(KeyHolder(words[0], b"".join(numbers), retired))
    return KeyFile(holders, private)


def _words(line: str) -> list[str]:
    return line.split("#")[0].split()


def _number(word: str) -> bytes:
    try:
        return bytes.fromhex(word)
    except ValueError:
        return b""


# -- changes ----------------------------------------------------------------------------------------------------


def add_keys(path: Path, names: Sequence[str], public_key: Callable[[bytes], bytes], replace: bool = False) -> None:
    """Add a new key for each name to a key file, and create the file if it is missing.

    ``public_key`` is the function that returns the public key for a private key. With ``replace``, the earlier keys of
    the names are retired.
    """
    for name in names:
        if _words(name) != [name] or name.startswith("@"):
            raise ConfigError(
                f"invalid name {name!r}: use a name without spaces, without # and without a leading @", str(path)
            )
    lines = _read_lines(path, _KEEP) if path.exists() or path.is_symlink() else []
    found = _parse(path, lines)
    if replace:
        _check_present(path, found, names)
        lines = [_retired(line) if (w := _words(line)) and w[0] in names else line for line in lines]
    private = found.server_private
    if not private:
        private = secrets.token_bytes(KEY_BYTES)
        lines = [*lines, f"{SERVER} {private.hex()}  # private key of the server: clients must not have this line"]
    public = public_key(private).hex()
    _write(path, [*lines, *(f"{name} {secrets.token_hex(KEY_BYTES)} {public}" for name in names)])


def revoke_keys(path: Path, names: Sequence[str]) -> int:
    """Remove all keys of these names from a key file, and return their number."""
    lines = _read_lines(path, _KEEP)
    _check_present(path, _parse(path, lines), names)
    kept = [line for line in lines if not (w := _words(line)) or w[0] not in names]
    _write(path, kept)
    return len(lines) - len(kept)


def _check_present(path: Path, found: KeyFile, names: Sequence[str]) -> None:
    known = {h.name for h in found.holders}
    for name in names:
        if name not in known:
            raise ConfigError(f"the key file has no key for '{name}'", str(path))


def _retired(line: str) -> str:
    words = _words(line)
    return line if words[-1] == RETIRED else " ".join([*words, RETIRED])


def _write(path: Path, lines: Sequence[str]) -> None:
    """Write a key file atomically: replace it only when the new file is complete, because a server may read it at any
    time.
    """
    try:
        if path.is_symlink():  # the link's target may be a file that other programs own
            raise ConfigError("this key file is a symbolic link; specify the file to which it points", str(path))
        descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # with mode 600
        try:
            with os.fdopen(descriptor, "w", encoding="ascii", errors=_KEEP) as out:
                out.write("".join(f"{line}\n" for line in lines))
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink()
            raise
    except OSError as error:
        raise ConfigError(f"cannot write the key file: {error.strerror}", str(path)) from None
