"""Reports about changed keys: names and never a key, in one line."""

from __future__ import annotations

from wavesim_sdk.wire.seal import KeyHolder, Keyring
from wavesim_server.network.key_changes import describe_change, status_of


def ring(*names: str, retired: tuple[str, ...] = (), start: int = 0) -> Keyring:
    return Keyring([KeyHolder(n, bytes([start + k, *range(31)]), n in retired) for k, n in enumerate(names)])


def test_a_report_names_what_changed() -> None:
    old = ring("a", "b", "c", retired=("c",))
    assert describe_change(old, old, []) == "3 keys: no change"
    assert describe_change(old, ring("a", "b", "c", "d", retired=("a", "c")), []) == "4 keys: added d; replaced a"
    assert describe_change(old, ring("a"), []) == "1 keys: revoked b, c"
    assert describe_change(old, ring("x", "b", "c", retired=("c",)), []) == "3 keys: added x; revoked a"
    assert describe_change(old, ring("a", "b", "c"), []) == "3 keys: added c", "it is valid again"


def test_a_report_stays_short() -> None:
    many = ring(*(f"auv-{k:02}" for k in range(60)))
    assert describe_change(ring("z", start=200), many, []) == (
        "60 keys: added auv-00, auv-01, auv-02, auv-03, auv-04, auv-05, auv-06, auv-07 and 52 more; revoked z"
    )
    assert many.holders[0].key.hex() not in repr(many.holders)


def test_the_status_without_keys_has_no_part_about_keys() -> None:
    assert status_of(None, []) == {}
    assert status_of(ring("a", "b", retired=("a",)), []) == {"valid": 1, "replaced_in_use": []}
