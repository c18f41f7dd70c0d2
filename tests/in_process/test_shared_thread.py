"""Programs that share a thread as greenlets, and those that need a thread of their own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.in_process.conftest import output
from wavesim_server.in_process.program_imports import may_share_thread
from wavesim_server.in_process.trial import InProcessTrial
from wavesim_server.resources import remove_leftovers
from wavesim_server.trial import ParticipantFailed

pytestmark = [pytest.mark.system, pytest.mark.timeout(120)]
Make = Callable[..., InProcessTrial]

DRIVE = """
with Broker(a.vehicle, SERVER, lockstep=0.1) as broker:
    for step in broker.steps():
        broker.answer({"propeller": 8.0})
"""


@pytest.mark.parametrize(
    ("source", "shares"),
    [
        ("import math, random\nfrom numpy import array\nfrom wavesim_sdk.broker import Broker", True),
        ("import helper", True),
        ("from package.part import thing", True),
        ("from . import thing", True),
        ("import asyncio", False),
        ("def later():\n    from threading import Thread", False),
        ("from concurrent.futures import ThreadPoolExecutor", False),
        ("import package_that_nobody_knows", False),
        ("import threaded_helper", False),
        ("import threaded_package", False),
        ("module = __import__('threading')", False),
        ("this is no Python", False),
    ],
)
def test_the_imports_of_a_program_show_whether_it_may_share_a_thread(tmp_path: Path, source: str, shares: bool) -> None:
    files = {
        "helper.py": "import helper, json\n",
        "package/__init__.py": "",
        "package/part.py": "from .other import thing\n",
        "package/other.py": "thing = 1\n",
        "threaded_helper.py": "import threading\n",
        "threaded_package/__init__.py": "",
        "threaded_package/part.py": "import queue\n",
        "program.py": source,
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert may_share_thread(tmp_path / "program.py") is shares


def test_programs_share_a_thread_but_not_its_state(make_trial: Make) -> None:
    """Recursion depth, context variables and the handled exception belong to each program."""
    source = """
import contextvars, decimal, sys
mine = contextvars.ContextVar("mine")
mine.set(a.vehicle)
decimal.getcontext().prec = 5 + len(a.vehicle)

def deep(broker, left):
    if left:
        deep(broker, left - 1)
        return
    for step in broker.poll(0.5):
        broker.answer({"propeller": 8.0})

with Broker(a.vehicle, SERVER, lockstep=0.1) as broker:
    try:
        raise ValueError(a.vehicle)
    except ValueError:
        while not broker.ended:
            deep(broker, 700)
            assert str(sys.exc_info()[1]) == a.vehicle
print(mine.get(), decimal.Decimal(1) / 3)
"""
    trial = make_trial(one=source, three=source, other=DRIVE)
    trial.run(plots=False)
    trial.check()
    assert len({p.thread for p in trial.host.programs}) == 1
    assert output(trial, "one") == "one 0.33333333\n" and output(trial, "three") == "three 0.3333333333\n"


def test_a_program_with_an_event_loop_has_a_thread_of_its_own(make_trial: Make) -> None:
    waits = """
import asyncio
async def main():
    async with AsyncBroker(a.vehicle, SERVER, lockstep=0.1) as broker:
        async for step in broker.steps():
            broker.answer({"propeller": 8.0})
asyncio.run(main())
print("end")
"""
    trial = make_trial(one=DRIVE, two=waits, three=waits, four=DRIVE)
    trial.run(plots=False)
    trial.check()
    assert output(trial, "two") == output(trial, "three") == "end\n"
    one, two, three, four = (p.thread for p in trial.host.programs)
    assert one is four and len({one, two, three}) == 3


def test_a_hidden_thread_that_uses_a_broker_is_refused(make_trial: Make) -> None:
    """A library starts the thread, so that the imports of the program do not show it."""
    source = """
from numpy.testing._private.utils import threading  # as some library would
failures = []
def drive():
    try:
        with Broker(a.vehicle, SERVER, lockstep=0.1) as broker:
            broker.poll(1.0)
    except Exception as error:
        failures.append(error)
thread = threading.Thread(target=drive)
thread.start()
thread.join()
raise failures[0]
"""
    trial = make_trial(one=source, two=DRIVE)
    with pytest.raises(ParticipantFailed, match=r"program-one uses a broker in a second thread.*import threading"):
        trial.run(plots=False)


def test_the_others_end_in_order_when_one_hangs_after_the_end(make_trial: Make) -> None:
    """A greenlet that ignores the end of the trial is interrupted; the others then end as usual."""
    ends = DRIVE + 'print("end of", a.vehicle)\n'
    hangs = """
try:
    with Broker(a.vehicle, SERVER, lockstep=0.1) as broker:
        for step in broker.steps():
            broker.answer({"propeller": 8.0})
            if step.time > 0.85:
                sys.exit(3)
finally:
    while a.vehicle == "bad" and broker.session.phase.name != "nothing":
        pass
"""
    before = threading.active_count()
    trial = make_trial(limit=1.0, one=ends, bad=hangs, two=ends)
    with pytest.raises(ParticipantFailed, match=r"program-bad did not answer its step within 1 s .*bad\.py:\d+"):
        trial.run(plots=False)
    assert threading.active_count() == before
    assert [p.exit_code is not None for p in trial.host.programs] == [True] * 3
    assert remove_leftovers(trial.name) == []
