"""Starts processes on virtual devices and collects what came of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from collector.cli.failure import Failure
from collector.cli.prediction.request import WARM_UP_STEPS
from collector.config import variable
from collector.running.plan import Outcome, Plan

if TYPE_CHECKING:
    from collections.abc import Mapping

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
_POLL_SECONDS: Final = 0.05
_LAST_WORDS: Final = 2000


@dataclass(frozen=True, slots=True)
class Ran:
    """One process that has ended."""

    outcome: Outcome
    words: str = ""
    """The end of what it printed, where that was kept from the terminal."""


def ran(request: Request, variables: Mapping[str, str] | None = None) -> Ran:
    """Run one process of the request to its end; `variables`: its own.

    Raises:
        Failure: there can be no virtual device here; says what helps.
        KeyboardInterrupt: the user has had enough; the process has ended.
    """
    with ExitStack() as stack:
        folder = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="memboard-run-"))
        )
        environment = _environment(request, folder / "books", variables or {})
        plan = Plan(
            target=request.program.target,
            arguments=list(request.program.arguments),
            is_module=request.program.is_module,
            run_dir=str(request.run_dir),
            outcome=str(folder / "outcome.json"),
            steps=WARM_UP_STEPS + request.steps,
            config=None if request.config is None else list(map(str, request.config)),
            keywords=dict(request.keywords),
            timeout_seconds=request.timeout_seconds,
        )
        plan.write(folder / "plan.json")
        start = _START.format(
            folder=str(Path(__file__).parents[3]), plan=str(folder / "plan.json")
        )
        said = None
        if request.is_quiet:
            said = stack.enter_context((folder / "words").open("w+b"))
        began = time.monotonic()
        process = subprocess.Popen(  # noqa: S603  # the user's own program
            [request.python, "-c", start],
            env=environment,
            # Our own output is the answer: it may be a program that reads it.
            stdout=sys.stderr if said is None else said,
            stderr=None if said is None else subprocess.STDOUT,
        )
        code = _wait(process, request.timeout_seconds, folder / "outcome.json")
        outcome = Outcome.read(folder / "outcome.json")
        if not outcome.ended:
            is_late = time.monotonic() - began >= request.timeout_seconds
            outcome.error = _end_of(None if is_late else code, request.timeout_seconds)
        words = ""
        if said is not None:
            said.seek(max(0, said.seek(0, os.SEEK_END) - _LAST_WORDS))
            words = said.read().decode(errors="replace")
        return Ran(outcome, words)


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
    except VirtualGpuUnavailable as error:
        raise Failure(str(error), code=2) from error


def _wait(
    process: subprocess.Popen[bytes], timeout_seconds: float, outcome: Path
) -> int | None:
    """Its exit code; None where it had to be ended.

    It ends itself when its time is up, and says where it was; so it has a little more.
    """
    deadline = time.monotonic() + timeout_seconds + _END_SECONDS
    is_written = False
    try:
        while (code := process.poll()) is None:
            if not is_written and outcome.exists():
                is_written = True
                deadline = time.monotonic() + _END_SECONDS
            if time.monotonic() > deadline:
                return None
            time.sleep(_POLL_SECONDS)
    except KeyboardInterrupt:
        # The terminal has told it too; what does not listen is ended below.
        deadline = time.monotonic() + _END_SECONDS
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
        raise
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    return code


def _end_of(code: int | None, timeout_seconds: float) -> str:
    """Why there is no outcome, in words."""
    if code is None:
        return f"it took more than the {timeout_seconds:g} s of --timeout"
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        return f"it was ended by {name}"
    return f"it ended with exit code {code}"
