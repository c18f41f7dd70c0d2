"""Processes that compute rays, transmission loss and sound-speed sections for the pages of a viewer.

The viewer does not contain the acoustic model. On the first request, it starts ``wavesim acoustics --serve``, which
reads and writes one JSON object per line. The process computes one request at a time; if that request is cancelled, the
process ends. It has a low priority, so that a simulation on the same machine keeps its pace, and ends when no page has
needed it for some time.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import sys
from collections.abc import Sequence
from typing import Any

from wavesim_viz.xml_trees import RequestFailed

COMMAND = (sys.executable, "-m", "wavesim_sdk", "acoustics", "--serve")
ANSWER_S = 600.0  #: maximum time in s for one answer; the first one may include the compilation of the kernels
IDLE_S = 300.0  #: time in s without requests after which the process ends
END_S = 5.0  #: maximum time in s that the process may take to end
MOST_LINE = 64 << 20  #: maximum size of an answer in bytes
MOST_WAITING = 8  #: maximum number of requests that are in progress or waiting
NICENESS = 10


class _ProcessEnded(Exception):
    """Raised if the process ends before it has answered."""


class AcousticsProcess:
    """An acoustics process, which runs while pages send requests."""

    def __init__(self, command: Sequence[str] = COMMAND, answer_s: float = ANSWER_S, idle_s: float = IDLE_S) -> None:
        self._command, self.answer_s, self._idle_s = tuple(command), answer_s, idle_s
        self._process: asyncio.subprocess.Process | None = None
        self._errors = bytearray()  #: last output of the process to standard error
        self._reader: asyncio.Task[None] | None = None
        self._idle: asyncio.TimerHandle | None = None
        self._numbers = itertools.count(1)
        self._waiting = 0
        self._one_at_a_time = asyncio.Lock()

    @property
    def pid(self) -> int | None:
        """Return the process ID, or None if the process is not running."""
        return self._process.pid if self._process is not None and self._process.returncode is None else None

    async def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a request. Raises RequestFailed with a one-sentence reason.

        If the process ends before it has answered, a second one is started. If that one also ends, the request fails.
        """
        if self._waiting >= MOST_WAITING:
            raise RequestFailed("the viewer is computing the requests of other pages; try again in a moment")
        self._waiting += 1
        try:
            async with self._one_at_a_time:
                if self._idle is not None:
                    self._idle.cancel()
                try:
                    answer = await self._attempt(request)
                except _ProcessEnded:
                    answer = await self._attempt(request)
                self._idle = asyncio.get_running_loop().call_later(self._idle_s, self._end_if_idle)
        except _ProcessEnded as ended:
            raise RequestFailed(f"the acoustics process ended: {ended}") from None
        finally:
            self._waiting -= 1
        if "error" in answer:
            raise RequestFailed(str(answer["error"]))
        return answer

    async def _attempt(self, request: dict[str, Any]) -> dict[str, Any]:
        process = self._process if self.pid is not None and self._process is not None else await self._start()
        assert process.stdin is not None and process.stdout is not None
        number = next(self._numbers)
        try:
            async with asyncio.timeout(self.answer_s):
                process.stdin.write(json.dumps({"id": number, **request}).encode() + b"\n")
                await process.stdin.drain()
                while line := await process.stdout.readline():
                    answer = json.loads(line)
                    if not isinstance(answer, dict):
                        raise ValueError("its answer is not a JSON object")
                    if answer.get("id") == number:
                        return dict(answer)
        except TimeoutError:
            await self.close()
            raise RequestFailed(f"the acoustics process did not answer within {self.answer_s:g} s") from None
        except (ConnectionError, ValueError) as error:  # it has ended, or writes something else
            await self.close()
            raise _ProcessEnded(self._reason(str(error))) from None
        except asyncio.CancelledError:
            await self.close()  # its answer would be taken for that of the next request
            raise
        await self.close()
        raise _ProcessEnded(self._reason("it closed its output"))

    async def _start(self) -> asyncio.subprocess.Process:
        await self.close()
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=MOST_LINE,
                start_new_session=True,  # Ctrl-C ends the viewer, which then ends this process
            )
        except OSError as error:
            raise RequestFailed(f"cannot start the acoustics process: {error.strerror}") from None
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, process.pid, NICENESS)
        self._process = process
        self._errors.clear()
        self._reader = asyncio.create_task(self._read_errors(process))
        return process

    async def _read_errors(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        while data := await process.stderr.read(4096):
            self._errors += data
            del self._errors[:-4096]

    def _reason(self, otherwise: str) -> str:
        """Return the last line that the process wrote to standard error, without its prefix."""
        lines = self._errors.decode(errors="replace").strip().splitlines()
        return lines[-1].removeprefix("wavesim: ").removeprefix("Error: ") if lines else otherwise

    def _end_if_idle(self) -> None:
        if not self._waiting and self._process is not None:
            self._end = asyncio.get_running_loop().create_task(self.close())

    async def close(self) -> None:
        """End the process, if it is running."""
        process, self._process = self._process, None
        reader, self._reader = self._reader, None
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()  # it ends with its input
        try:
            async with asyncio.timeout(END_S):
                with contextlib.suppress(ProcessLookupError):
                    process.terminate()
                await process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        if reader is not None:
            await reader
