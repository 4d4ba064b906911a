"""Starts processes on virtual devices and collects what came of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from collector.cli.failure import Failure
from collector.cli.prediction.request import WARM_UP_STEPS
from collector.config import variable
from collector.running.plan import Outcome, Plan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from collector.cli.prediction.request import Request

_SETTINGS: Final = {
    "enabled": "true",
    # Steps take no time on a virtual device: allocations come as fast as they can.
    "oom.history_pct": "100",
    "oom.max_entries": "300000",
}
"""Of the recording, unless the environment says otherwise."""

_ALLOC_CONF: Final = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
"""torch's variable by its old and its new name."""

_START: Final = """
import sys
try:
    import collector.running.child
except ImportError:
    sys.path.append({folder!r})
    import collector.running.child
collector.running.child.run_plan({plan!r})
"""
"""Another Python need not have us installed: its own packages come before ours."""

_END_SECONDS: Final = 60.0
"""How long a process may take to end after its figures are written."""
_ALONE_SECONDS: Final = 10.0
"""How long ranks may go on once one of them has failed."""
_POLL_SECONDS: Final = 0.05
_LAST_WORDS: Final = 2000

_ABORTED: Final = (
    "memboard: the program aborted after its last line, while Python was ending (a thread "
    "of torch's came back to Python too late, most often): what was measured is whole"
)


@dataclass(frozen=True, slots=True)
class Ran:
    """One process that has ended."""

    outcome: Outcome
    words: str = ""
    """The end of what it printed, where that was kept from the terminal."""
    calls: tuple[str, ...] = ()
    """Functions of NVIDIA's libraries that nothing answers, each with its count, of all
    processes that share its devices."""


def ran(request: Request) -> list[Ran]:
    """Run the processes of a request to their end.

    Raises:
        Failure: there can be no virtual device here; says what helps.
        KeyboardInterrupt: the user has had enough; the processes have ended.
    """
    done = []
    with tempfile.TemporaryDirectory(prefix="memboard-run-") as name:
        folder = Path(name)
        (folder / "messages").mkdir()
        for number, together in enumerate(request.ranks.rounds()):
            with ExitStack() as stack:
                books = folder / f"books-{number}"
                processes = []
                for place, variables in enumerate(together):
                    environment = _environment(request, books, variables)
                    own = folder / f"{number}-{place}"
                    own.mkdir()
                    processes.append(_Process(request, environment, own, folder))
                    stack.callback(processes[-1].end)
                _wait(processes)
                calls = _unanswered(books) if request.is_verbose else ()
                done += [replace(process.ran(), calls=calls) for process in processes]
    return done


class _Process:
    """One process of a request."""

    def __init__(
        self, request: Request, environment: Mapping[str, str], own: Path, folder: Path
    ) -> None:
        """`own` is its own folder, `folder` the one that all of the request have."""
        self._request = request
        self._outcome = own / "outcome.json"
        self._words: IO[bytes] | None = None
        self._is_written = False
        self._rank = int(environment.get("RANK", "0"))
        self._plan = _plan(request, self._outcome, folder / "messages")
        self._plan.write(own / "plan.json")
        start = _START.format(
            folder=str(Path(__file__).parents[3]), plan=str(own / "plan.json")
        )
        if request.is_quiet:
            self._words = (own / "words").open("w+b")
        self._began = time.monotonic()
        self._deadline = self._began + request.timeout_seconds + _END_SECONDS
        self._why = ""
        self._process = subprocess.Popen(  # noqa: S603  # the user's own program
            [request.python, "-c", start],
            env=dict(environment),
            # Our own output is the answer: it may be a program that reads it.
            stdout=sys.stderr if self._words is None else self._words,
            stderr=None if self._words is None else subprocess.STDOUT,
        )

    @property
    def is_running(self) -> bool:
        """Whether it has not ended; one that is late is ended."""
        if self._process.poll() is not None:
            return False
        now = time.monotonic()
        if not self._is_written and self._outcome.exists():
            self._is_written = True
            self._deadline = min(self._deadline, now + _END_SECONDS)
        if now > self._deadline:
            self.end()
            return False
        return True

    @property
    def has_failed(self) -> bool:
        """Whether it has ended otherwise than by its steps."""
        ended = Outcome.read(self._outcome).ended
        return ended not in ("stopped", "finished")

    def hurry(self, why: str) -> None:
        """End it in a while, if it has not ended by then; `why`: what to say of it."""
        self._why = self._why or why
        self._deadline = min(self._deadline, time.monotonic() + _ALONE_SECONDS)

    def end(self) -> None:
        """End it now, and give its file back."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def ran(self) -> Ran:
        """What has come of it."""
        outcome = Outcome.read(self._outcome)
        if not outcome.ended:
            outcome.rank = self._rank
            outcome.error = self._why or self._end_of()
        elif self._process.returncode == -signal.SIGABRT and self._words is None:
            print(_ABORTED, file=sys.stderr)
        libraries = self._plan.own_runtimes_file
        if libraries.exists():
            outcome.unsuitable = libraries.read_text(encoding="utf-8").splitlines()
        if self._words is None:
            return Ran(outcome)
        with self._words as said:
            said.seek(max(0, said.seek(0, os.SEEK_END) - _LAST_WORDS))
            return Ran(outcome, said.read().decode(errors="replace"))

    def _end_of(self) -> str:
        """Why there is no outcome, in words."""
        limit = self._request.timeout_seconds
        if time.monotonic() - self._began >= limit:
            return f"it took more than the {limit:g} s of --timeout"
        code = self._process.returncode
        if code >= 0:
            return f"it ended with exit code {code}"
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        return f"it was ended by {name}"


def _plan(request: Request, outcome: Path, messages: Path) -> Plan:
    return Plan(
        target=request.program.target,
        arguments=list(request.program.arguments),
        is_module=request.program.is_module,
        run_dir=str(request.run_dir),
        outcome=str(outcome),
        steps=WARM_UP_STEPS + request.steps,
        config=None if request.config is None else list(map(str, request.config)),
        keywords=dict(request.keywords),
        timeout_seconds=request.timeout_seconds,
        ranks=request.ranks.kind,
        messages=str(messages),
    )


def _environment(
    request: Request, books: Path, variables: Mapping[str, str]
) -> dict[str, str]:
    from collector.virtual.environment import VirtualGpuUnavailable, environment

    base = {**os.environ, **request.variables, **variables}
    for path, text in _SETTINGS.items():
        base.setdefault(variable(path), text)
    if request.alloc_conf:
        base.update(dict.fromkeys(_ALLOC_CONF, request.alloc_conf))
    try:
        return environment(
            request.device,
            devices=request.num_devices,
            python=request.python,
            base=base,
            books=books,
        )
    except (VirtualGpuUnavailable, ValueError) as error:
        raise Failure(str(error), code=2) from error


def _unanswered(books: Path) -> tuple[str, ...]:
    from collector.virtual.books import read_books

    try:
        found = read_books(books)
    except (OSError, ValueError):
        return ()
    return tuple(
        f"{one.library} {one.name} ({one.count} times)"
        for one in (() if found is None else found.calls)
        if not one.known
    )


def _wait(processes: Sequence[_Process]) -> None:
    """Until all have ended; where one fails, the others have a little time left.

    Each ends itself when its time is up, and says where it was.
    """
    try:
        while True:
            running = [process for process in processes if process.is_running]
            if not running:
                return
            over = [process for process in processes if process not in running]
            if any(process.has_failed for process in over):
                for process in running:
                    process.hurry("another rank failed before")
            time.sleep(_POLL_SECONDS)
    except KeyboardInterrupt:
        # The terminal has told them too; what does not listen is ended by our caller.
        deadline = time.monotonic() + _ALONE_SECONDS
        while time.monotonic() < deadline and any(p.is_running for p in processes):
            time.sleep(_POLL_SECONDS)
        raise
