"""The status for people: only what matters, and every value on request."""

from __future__ import annotations

from typing import Any

from wavesim_sdk import status_text

STATUS: dict[str, Any] = {
    "name": "demo",
    "configuration": "config.xml",
    "seed": 7,
    "tick": 250,
    "time_ns": 10**9,
    "state": "running",
    "realtime_factor": 9.96,
    "vehicles": 2,
    "buoys": 1,
    "address": ["127.0.0.1", 9750],
    "clients": [],
    "observers": [],
    "missing": [],
    "slow": [],
    "drops": {},
    "acoustic_refused": {},
    "damage": [],
    "log": "ok",
    "events_dropped": 0,
}


def test_a_quiet_server_takes_five_lines() -> None:
    assert status_text.summary(STATUS) == [
        "server     demo: running at 1.000 s (tick 250), 10.0 x real time",
        "address    UDP 127.0.0.1:9750",
        "file       config.xml, seed 7",
        "bodies     2 vehicles, 1 buoys",
        "log        ok",
    ]


def test_keys_that_nobody_replaced_take_no_line() -> None:
    quiet = STATUS | {"keys": {"valid": 2, "replaced_in_use": []}}
    assert status_text.summary(quiet) == status_text.summary(STATUS)
    assert "keys               {'valid': 2, 'replaced_in_use': []}" in status_text.all_values(quiet)


def test_trouble_appears_when_there_is_some() -> None:
    client = {"name": "auv", "role": "pilot", "address": "127.0.0.1:1", "rtt_ms": 0.2}
    client |= {"waited_for": True, "lockstep_s": 0.1, "waited_s": 3.0, "budget_left_s": 2.0}
    found = status_text.summary(
        STATUS
        | {"clients": [client], "missing": ["boat"], "slow": ["auv"], "drops": {"size": 7}, "events_dropped": 2}
        | {"damage": ["the log is full"], "acoustic_refused": {"auv": 4}, "observers": ["viewer"]}
        | {"keys": {"valid": 2, "replaced_in_use": ["auv", "usv"]}}
    )[5:]
    assert found == [
        "client     auv (pilot) from 127.0.0.1:1, round trip 0.2 ms, lockstep is waiting for it, waited 3.0 s in total, budget left 2.0 s",
        "observer   viewer",
        "keys       replaced, but still in use: auv, usv",
        "missing    boat: a required program has not joined",
        "slow       auv: the simulation waits for these clients",
        "trouble    2 records are missing from the log",
        "trouble    ignored datagrams: 7 size",
        "trouble    refused acoustic requests: 4 from auv",
        "trouble    the log is full",
    ]
    assert len(status_text.all_values(STATUS)) == len(STATUS) - 1
