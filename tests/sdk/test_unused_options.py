"""Options without effect are refused, and options with an effect are accepted."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from wavesim_sdk.cli import cli, load_commands

load_commands()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            "log export a.mcap --csv c --vehicle lauv",
            "--vehicle has no effect without --xtf, --kmall, --ros, --coco, --png or --numpy",
        ),
        (
            "log export a.mcap --csv c --sonar s",
            "--sonar has no effect without --xtf, --kmall, --ros, --coco, --png or --numpy",
        ),
        ("plot a.mcap --cell 0.5", "--cell has no effect without --mosaic"),
        ("plot a.mcap --geotiff", "--geotiff has no effect without --mosaic"),
        ("check --schema --json", "--json has no effect with --schema"),
        ("check --schema other.xml", "config has no effect with --schema"),
        ("status --json --prometheus", "--json has no effect with --prometheus"),
        ("conformance --at 127.0.0.1:1 --body a --sensor ctd", "--sensor has no effect with --at"),
        ("conformance --at 127.0.0.1:1 --body a --step 0.01", "--step has no effect with --at"),
        ("conformance --step 0.01 prog", "--step has no effect without --sensor"),
        ("conformance --body a prog", "--body has no effect without --at"),
        ("keys absent.keys a --revoke --replace", "--replace has no effect with --revoke"),
        ("keys absent.keys --revoke", "--revoke requires NAMES"),
        ("mailbox a --queue /q --pid 1", "--pid has no effect without --signal"),
    ],
)
def test_an_option_without_an_effect_is_refused(words: str, said: str) -> None:
    done = CliRunner().invoke(cli, words.split())
    assert done.exit_code == 2 and said in done.stderr, done.output


@pytest.mark.parametrize(
    "words", ["plot absent.mcap", "plot --mosaic --cell 0.5 absent.mcap", "check --json absent.xml"]
)
def test_what_has_an_effect_is_taken(words: str) -> None:
    done = CliRunner().invoke(cli, words.split())
    assert "absent" in done.stderr and "no effect" not in done.stderr
