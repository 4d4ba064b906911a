"""Processes on virtual devices, and their outcomes."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from memboard.collector.format.sizes import counted
from memboard.collector.process.private_folder import TemporaryFolder
from memboard.collector.running.single_rank.calls import Calls
from memboard.collector.virtual.accounting import read_accounting
from memboard.tb_plugin.cli.prediction.rank_process import (
    MESSAGES,
    Ran,
    RankProcess,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from memboard.tb_plugin.cli.prediction.request import Request

_LISTEN_SECONDS: Final = 2.0
"""Time for a process to end that was interrupted, and again once it was terminated."""
_POLL_SECONDS: Final = 0.05
_MAX_CALLED: Final = 32
"""Ranks that run for one other; each takes some 450 MB of the host."""


def launch(request: Request) -> Iterator[Ran]:
    """Run the processes of a request to their end.

    Raises:
        Failure: there can be no virtual device here.
        KeyboardInterrupt: the user has had enough; the processes have ended.
    """
    with TemporaryFolder("memboard-run-") as temporary:
        folder = temporary.path()
        calls_between = Calls(folder / MESSAGES)
        for number, together in enumerate(request.ranks.rounds()):
            with ExitStack() as stack:
                processes = []
                for place, variables in enumerate(together):
                    own = folder / f"{number}-{place}"
                    # Each host has devices of its own.
                    host = variables.get("GROUP_RANK", "0")
                    accounting = folder / f"accounting-{number}-{host}"
                    processes.append(RankProcess(request, variables, accounting, own))
                    stack.callback(processes[-1].end)
                called = _OnDemandRanks(
                    request, together[0], calls_between, folder, number
                )
                stack.callback(called.end)
                _wait(processes, called)
                for process in processes:
                    calls = (
                        _unanswered(process.accounting) if request.is_verbose else ()
                    )
                    yield replace(process.ran(), calls=calls)


class _OnDemandRanks:
    """Ranks that run only because others wait for what they send.

    Each has devices and a recording of its own, and nothing it prints is shown.
    """

    def __init__(
        self,
        request: Request,
        job: Mapping[str, str],
        between: Calls,
        folder: Path,
        number: int,
    ) -> None:
        """`job`: the variables of a rank that runs; `number`: of the round."""
        self._request = request
        self._job = job
        self._between = between
        self._folder = folder
        self._number = number
        self._ranks: dict[int, RankProcess] = {}
        self._over: set[int] = set()

    def update(self) -> None:
        """Start those that are wanted now, and tell the others which have ended."""
        for rank in self._between.wanted():
            if rank in self._ranks:
                continue
            if len(self._ranks) == _MAX_CALLED:
                self._between.over(rank, f"{_MAX_CALLED} ranks run for others already")
                continue
            own = self._folder / f"{self._number}-for-others-{rank}"
            request = replace(self._request, is_quiet=True, run_dir=own / "run")
            variables = self._request.ranks.variables(rank, self._job)
            self._ranks[rank] = RankProcess(request, variables, own / "accounting", own)
        for rank, process in self._ranks.items():
            if not process.is_running and rank not in self._over:
                self._over.add(rank)
                error = process.ran().outcome.error
                self._between.over(rank, error or "it ended without sending them")

    def end(self) -> None:
        for process in self._ranks.values():
            process.end()
        self._between.forget()


def _unanswered(accounting: Path) -> tuple[str, ...]:
    try:
        accounted = read_accounting(accounting)
    except (OSError, ValueError):
        return ()
    return tuple(
        f"{call.library} {call.name} ({counted(call.count, 'time')})"
        for call in (() if accounted is None else accounted.calls)
        if not call.known
    )


def _wait(processes: Sequence[RankProcess], called: _OnDemandRanks) -> None:
    """Until all have ended; where one fails, the others have a little time left.

    Ranks that they wait for are started meanwhile. Each ends itself when its time is up.
    """
    try:
        while True:
            running = [process for process in processes if process.is_running]
            if not running:
                return
            over = [process for process in processes if process not in running]
            if any(process.has_failed for process in over):
                for process in running:
                    process.end_soon("another rank failed before")
            called.update()
            time.sleep(_POLL_SECONDS)
    except KeyboardInterrupt:
        # The terminal may have told them too. What does not listen is ended by our caller.
        _wait_for(processes, _LISTEN_SECONDS)
        for process in processes:
            process.terminate()
        _wait_for(processes, _LISTEN_SECONDS)
        raise


def _wait_for(processes: Sequence[RankProcess], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and any(p.is_running for p in processes):
        time.sleep(_POLL_SECONDS)
