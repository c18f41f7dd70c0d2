"""Commands for the studies. Each area has its own module; large packages are imported only when a command runs."""

from __future__ import annotations

import click

from wavesim_studies.campaign.cli import campaign
from wavesim_studies.comparison.cli import compare
from wavesim_studies.exam.cli import exam
from wavesim_studies.field_trials.cli import data
from wavesim_studies.identification.cli import identify
from wavesim_studies.learning_cli import learn
from wavesim_studies.navigation.cli import nav
from wavesim_studies.traffic.cli import traffic


def commands() -> list[click.Command]:
    return [campaign, compare, data, exam, identify, learn, nav, traffic]
