"""Modem presets: each is a valid transducer, the file overrides it, and each value has a source or is marked."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from wavesim_sdk import cli
from wavesim_sdk.errors import ConfigError
from wavesim_world import modem_presets
from wavesim_world.config import load_text
from wavesim_world.config.acoustics import TransducerConfig


def transducer(text: str) -> TransducerConfig:
    loaded = load_text(
        f'<wavesim><time/><world/><fleet><buoy name="a" model="buoy" position="0 0 5 m">{text}</buoy></fleet></wavesim>'
    )
    found = loaded.transducer(loaded.config.fleet.bodies[0])
    assert found is not None
    return found


@pytest.mark.parametrize("name", modem_presets.PRESETS)
def test_each_preset_is_a_transducer(name: str) -> None:
    by_name = transducer(f'<transducer preset="{name}"/>')
    written_out = transducer(modem_presets.expanded(name))
    assert by_name.preset == name and written_out.preset == ""
    same = {k: v for k, v in vars(by_name).items() if k != "preset"}
    assert same == {k: v for k, v in vars(written_out).items() if k != "preset"}
    assert all(v.source for v in modem_presets.PRESETS[name].values)
    assert len({v.key for v in modem_presets.PRESETS[name].values}) == len(modem_presets.PRESETS[name].values)


def test_the_file_overrides_the_preset() -> None:
    t = transducer(
        '<transducer preset="nano-v3" source_level="188 dB"><modem address="7" bit_rate="320"/></transducer>'
    )
    assert t.source_level == 188.0, "also with a value that is the default of the key"
    assert t.modem is not None and (t.modem.address, t.modem.bit_rate, t.modem.payload) == (7, 320.0, 64)
    assert t.turn_around == 0.040 and t.timing_resolution == 31.25e-6
    own = transducer(
        '<transducer preset="seatrac-x150"><head><hydrophone position="0 0 0 m"/><hydrophone position="0.1 0 0 m"/>'
        '<hydrophone position="0 0.1 0 m"/><hydrophone position="0 0 0.1 m"/></head></transducer>'
    )
    assert own.head is not None and len(own.head.hydrophone) == 4 and own.head.timing_noise == 0.5e-6


def test_the_packet_of_the_nano_modem_lasts_as_its_maker_says() -> None:
    modem = transducer('<transducer preset="nano-v3"/>').modem
    assert modem is not None
    for n in (1, 16, 64):
        assert modem.preamble + 8 * n / modem.bit_rate == pytest.approx(0.105 + (n + 16) / 80.0)


def test_an_unknown_preset_is_named_with_its_line() -> None:
    with pytest.raises(ConfigError, match=r"unknown modem preset 'nano'; did you mean 'nano-v3'.*wavesim modems"):
        transducer('<transducer preset="nano"/>')


def test_the_command_lists_and_describes_them() -> None:
    cli.load_commands()
    run = CliRunner().invoke
    table = run(cli.cli, ["modems"]).output
    assert all(name in table for name in modem_presets.PRESETS)
    described = run(cli.cli, ["modems", "seatrac-x150", "gaps-m7"]).output
    assert described.count("assumed") >= 10 and '<transducer preset="gaps-m7"/>' in described
    wrong = run(cli.cli, ["modems", "seatrack"])
    assert wrong.exit_code == 2 and "did you mean" in wrong.output


def test_a_log_of_a_preset_can_be_read_without_the_file(tmp_path: Path) -> None:
    from wavesim_world.config.standalone_xml import load_standalone

    text = '<wavesim><fleet><buoy name="a" model="buoy" position="0 0 5 m"><transducer preset="wl-m64"/></buoy></fleet></wavesim>'
    loaded, _ = load_standalone(text)
    found = loaded.transducer(loaded.config.fleet.bodies[0])
    assert found is not None and found.listen_low == 125e3
