"""The person who owns the key file of the server: replaces and revokes keys while clients are connected, and sometimes
writes an invalid file.

A replaced key is retired: its sessions continue, but no program can join with it. A revoked key is removed: its sessions end
at once. The programs have the newest key of their name, because people give it to them together with the change. Some
are started once more with an earlier key, which must not open a session.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from benchmarks.world.report import Broken
from wavesim_sdk.commander import CommandReply
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.wire.seal import KeyHolder, Keyring
from wavesim_sdk.wire.session import Session
from wavesim_server.network.key_changes import VERB

if TYPE_CHECKING:
    from benchmarks.world.world import World


OUTDATED = 0.2  #: fraction of the sessions that a program begins with an earlier key, if its name has one


class KeyOfficer:
    """The key file, its owner, and what must hold after each change."""

    def __init__(self, world: World, r: random.Random, keys: dict[str, bytes], changes: bool) -> None:
        self.world, self.random = world, r
        self.holders = [KeyHolder(name, key) for name, key in keys.items()]
        self.changes = changes  #: whether the keys change in this world
        self._loaded = Keyring(self.holders)  #: the keys that the server has read
        self._is_invalid = False  #: whether the file is invalid at the moment
        self._earlier: dict[str, list[bytes]] = {}  #: keys of each name that were replaced or revoked
        self.replies: list[CommandReply] = []  #: answers to the command that reads the file again

    def start(self, now: float) -> None:
        """Choose the times of the changes."""
        if self.changes:
            for _ in range(self.random.choice((2, 4, 8))):
                self.world.clock.at(now + self.world.length * self.random.random(), self._change)

    def keyring(self) -> Keyring:
        """Read the key file."""
        if self._is_invalid:
            raise ConfigError("line 1: invalid key")
        self._loaded = Keyring(self.holders)
        return self._loaded

    def keyring_at_start(self) -> Keyring:
        """Read the key file for a server that starts; its owner has mended it before."""
        self._is_invalid = False
        return self.keyring()

    def key(self, name: str) -> bytes:
        """Return the key that a program of this name has; sometimes, it has an earlier one."""
        if not self.world.calm and self._earlier.get(name) and self.random.random() < OUTDATED:
            return self.random.choice(self._earlier[name])
        return self.newest(name)

    def newest(self, name: str) -> bytes:
        """Return the valid key of a name."""
        own = [h.key for h in self.holders if h.name == name and not h.is_retired]
        return own[-1] if own else next(h.key for h in reversed(self.holders) if h.name == "*" and not h.is_retired)

    def joined(self, session: Session) -> None:
        """Check the key of a session that has just begun."""
        holder = session.key_holder
        if holder is None or not self._loaded.includes(holder):
            raise Broken(f"joined with a revoked key: {session.name}")
        if next(h for h in self._loaded.holders if (h.name, h.key) == (holder.name, holder.key)).is_retired:
            raise Broken(f"joined with a replaced key: {session.name}")

    def _change(self, now: float) -> None:
        """Change the file and let the server read it again."""
        front = self.world.server.front
        if self.world.calm or front is None or self.world.server.is_stopped("front"):
            return
        r = self.random
        how = r.choice(("replace", "replace", "revoke", "revoke", "spoil", "nothing"))
        name = r.choice(("*", "auv", "usv"))
        self._is_invalid = how == "spoil"
        if how in ("replace", "revoke"):
            old = [h for h in self.holders if h.name == name]
            self._earlier.setdefault(name, []).extend(h.key for h in old)
            kept = [KeyHolder(h.name, h.key, is_retired=True) for h in old] if how == "replace" else []
            others = [h for h in self.holders if h.name != name]
            self.holders = [*others, *kept, KeyHolder(name, r.randbytes(32))]
        before = dict(front.sessions.by_token)
        self.world.note(f"keys {how}", name)
        reply = self._reload()
        if reply.ok == self._is_invalid:
            raise Broken(f"reload-keys was answered wrongly: {reply}")
        after = front.sessions.by_token
        for token, session in before.items():
            holder = session.key_holder
            valid = holder is not None and any((h.name, h.key) == (holder.name, holder.key) for h in self.holders)
            if valid != (token in after):
                state = "continues with a revoked key" if token in after else "ended, although its key is valid"
                raise Broken(f"a session {state}: {session.name} after '{how}' of the key of '{name}'")
        for client in self.world.clients:
            client.has_new_key(now)

    def _reload(self) -> CommandReply:
        """Send the command, which the front answers at once."""
        self.replies.clear()
        self.world.commander.send(VERB)
        if len(self.replies) != 1:
            raise Broken(f"{VERB} has {len(self.replies)} answers")
        return self.replies[0]
