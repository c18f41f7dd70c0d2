"""Programs for the campaign tests: functions of factors, and functions that fail."""

from __future__ import annotations

import math
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

_MURDER = Path(os.environ.get("CAMPAIGN_CALLS", "/nowhere")).with_name("murder")
if (
    "wavesim_studies.campaign.worker" in sys.orig_argv and _MURDER.exists()
):  # as if it were killed while it starts, once
    _MURDER.unlink()
    os.kill(os.getpid(), signal.SIGKILL)


def ishigami(factors: dict[str, Any], seed: int) -> dict[str, float]:
    a, b, c = factors["a"], factors["b"], factors["c"]
    return {"y": math.sin(a) + 7.0 * math.sin(b) ** 2 + 0.1 * c**4 * math.sin(a)}


def noisy(factors: dict[str, Any], seed: int) -> dict[str, float]:
    return {"y": factors["a"] + random.Random(seed).gauss(0.0, 1.0)}


def ends(factors: dict[str, Any], seed: int) -> dict[str, float]:
    """In all the ways there are; each call leaves a line."""
    how = factors["how"]
    with Path(os.environ["CAMPAIGN_CALLS"]).open("a") as file:
        file.write(f"{how}\n")
    if how == "dies":
        os._exit(3)
    if how == "raises":
        raise ValueError("of its own accord")
    while how == "hangs":
        time.sleep(0.05)
    print("a program may print what it likes")
    return {"y": 1.0}


def slow(factors: dict[str, Any], seed: int) -> dict[str, float]:
    with Path(os.environ["CAMPAIGN_CALLS"]).open("a") as file:
        file.write(f"{factors['a']:g}\n")
    time.sleep(0.02)
    return {"y": factors["a"]}


def waits(factors: dict[str, Any], seed: int) -> dict[str, float]:
    """It tells who does it, and waits until it may."""
    calls = Path(os.environ["CAMPAIGN_CALLS"])
    with calls.open("a") as file:
        file.write(f"{os.getpid()}\n")
    while not calls.with_name("go").exists():
        time.sleep(0.01)
    return {"y": factors["a"]}


def fly(lab: Any, seconds: float) -> dict[str, float]:
    lab.commands({"a": {"propeller": 8.0}})
    lab.run(seconds, 0.5)
    return {"energy": 5.0}


def depth(result: Any) -> float:
    return float(result.tracks["a"][1]["p_WB_W"][-1, 2])
