"""Changes between two readings of a key file, and the report about them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from wavesim_sdk.wire.session import Session

if TYPE_CHECKING:
    from wavesim_sdk.wire.seal import KeyHolder, Keyring

VERB = "reload-keys"  #: commander verb with which the server reads its key file again
MAX_NAMES = 8  #: maximum number of names in a report


def describe_change(old: Keyring, new: Keyring, ended: Sequence[Session]) -> str:
    """Return what has changed between two keyrings and which sessions have ended, as one line without any key."""
    before, after = _states(old), _states(new)
    found = {
        "added": [h[0] for h, is_retired in after.items() if h not in before or before[h] > is_retired],
        "replaced": [h[0] for h, is_retired in after.items() if is_retired and before.get(h) is False],
        "revoked": [name for name, key in before if (name, key) not in after],
        "ended": [f"{s.name} ({s.role.name.lower()})" for s in ended],
    }
    parts = [f"{what} {_few(names)}" for what, names in found.items() if names]
    return f"{len(after)} keys: {'; '.join(parts) if parts else 'no change'}"


def status_of(keys: Keyring | None, sessions: Iterable[Session]) -> dict[str, Any]:
    """Return the part of the status that concerns keys: the number of valid keys, and the names of the sessions whose
    keys have been replaced since they joined.
    """
    if keys is None:
        return {}
    retired = {h.key for h in keys.holders if h.is_retired}
    replaced = {s.name for s in sessions if s.key_holder is not None and s.key_holder.key in retired}
    return {"valid": len(keys.holders) - len(retired), "replaced_in_use": sorted(replaced)}


def _states(keys: Keyring) -> dict[tuple[str, bytes], bool]:
    holders: Sequence[KeyHolder] = keys.holders
    return {(h.name, h.key): h.is_retired for h in holders}


def _few(names: Sequence[str]) -> str:
    shown = sorted(names)[:MAX_NAMES]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
