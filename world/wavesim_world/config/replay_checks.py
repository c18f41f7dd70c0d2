"""Checks of the replays of measured channels in a configuration, without reading their files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wavesim_sdk.front_tables import FRONT_ELEMENTS
from wavesim_sdk.names import suggest_name
from wavesim_world.config.acoustics import ChannelReplay
from wavesim_world.config.loaded import LoadedConfig
from wavesim_world.config.sensors import InstrumentConfig
from wavesim_world.config.validation import fail_at


def check(loaded: LoadedConfig) -> None:
    """Raise ConfigError for the first <replay> that cannot be used."""
    bodies = {b.name: b for b in loaded.config.fleet.bodies}
    seen: set[tuple[str, str, str]] = set()
    for replay in loaded.config.acoustics.replay:
        listener = replay.receiver.partition(".")[0]
        for name in (replay.source, listener):
            if name not in bodies:
                fail_at(replay.place, f"<replay>: there is no body '{name}'{suggest_name(name, sorted(bodies))}")
        if replay.source == listener:
            fail_at(replay.place, f"<replay>: '{listener}' cannot hear itself through a measured channel")
        if loaded.transducer(bodies[replay.source]) is None:
            fail_at(replay.place, f"<replay>: '{replay.source}' has no transducer, so it transmits nothing")
        found = list(hydrophones(loaded, replay))
        if not found:
            fail_at(
                replay.place, f"<replay>: there is no hydrophone '{replay.receiver}'; add a <hydrophone> or change `to`"
            )
        _check_receivers(replay, found)
        for instrument in found:
            pair = replay.source, listener, instrument.name
            if pair in seen:
                fail_at(replay.place, f"<replay>: two replays lead from '{pair[0]}' to '{listener}.{instrument.name}'")
            seen.add(pair)


def hydrophones(loaded: LoadedConfig, replay: ChannelReplay) -> Iterator[InstrumentConfig]:
    """Yield the hydrophones that hear the signals of a replay."""
    listener, _, chosen = replay.receiver.partition(".")
    for body in loaded.config.fleet.bodies:
        if body.name == listener:
            for instrument in loaded.suite(body):
                if instrument.type == "hydrophone" and chosen in ("", instrument.name):
                    yield instrument


def _check_receivers(replay: ChannelReplay, found: list[InstrumentConfig]) -> None:
    """Check the numbers of the receivers against the elements of the hydrophones."""
    numbers = replay.receivers
    if not numbers or len(numbers) > FRONT_ELEMENTS or any(n != int(n) for n in numbers):
        fail_at(replay.place, f"<replay>: `receivers` must be 1 to {FRONT_ELEMENTS} whole numbers from 1")
    for instrument in found:
        hydrophone: Any = instrument.parameters
        elements = len(hydrophone.element_positions)
        if len(numbers) not in (1, elements):
            fail_at(
                replay.place,
                f"<replay>: `receivers` has {len(numbers)} numbers, but the hydrophone '{instrument.name}' has "
                f"{elements} elements; give one number"
                + (", or one for each element" if elements <= FRONT_ELEMENTS else ""),
            )
