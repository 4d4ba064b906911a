"""One process of a prediction: a rank on virtual devices, until it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

import psutil

from memboard.collector.cli.failure import Failure
from memboard.collector.config import variable
from memboard.collector.format.prediction import Estimate
from memboard.collector.process.bound_process import bound
from memboard.collector.process.child_python import WITHOUT_CURRENT_FOLDER
from memboard.collector.running.plan import Outcome, Plan
from memboard.collector.running.stopping import CLOSE_SECONDS
from memboard.collector.virtual.environment import VirtualGpuUnavailable, environment
from memboard.tb_plugin.cli.prediction.request import WARM_UP_STEPS, Request

if TYPE_CHECKING:
    from collections.abc import Mapping

    from memboard.collector.virtual.devices import Device

MESSAGES: Final = "messages"
"""The folder for what ranks send each other."""

_SETTINGS: Final = {
    "enabled": "true",
    "history.enabled": "false",
    "history.max_entries": "300000",
}
"""Of the recording, unless the environment says otherwise."""

_ALLOC_CONF: Final = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
"""torch's variable by its old and its new name."""

_START: Final = (
    WITHOUT_CURRENT_FOLDER
    + """
try:
    import memboard.collector.running.child
except ImportError:
    sys.path.append({folder!r})
    import memboard.collector.running.child
memboard.collector.running.child.run_plan({plan!r})
"""
)
"""Another Python need not have us installed: its own packages come before ours."""

_MIB: Final = 1 << 20
_NCCL_CHANNELS: Final = (2, 32)
_NCCL_CONNECTIONS: Final = (2, 5)
"""Of one channel: a ring has two, two trees three more."""
_NCCL_BYTES: Final = 10 * _MIB
"""Of the buffers of one connection."""
_NCCL_SOURCE: Final = (
    "2 to 32 channels with 2 to 5 connections, 10 MiB of buffers each (seen in NCCL's own"
    " log, github.com/NVIDIA/nccl/issues/1685; 1.6 GB in issues/864)"
)

_END_SECONDS: Final = CLOSE_SECONDS + 20.0
"""Time for a process to end after its figures are written: its recording first."""
_ALONE_SECONDS: Final = 10.0
"""Time for ranks to go on once one of them has failed."""
_LAST_WORDS: Final = 2000

_ABORTED: Final = (
    "memboard: the program aborted after its last line, while Python was ending (most often "
    "because a thread of torch's came back to Python too late): measurements are complete"
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


class RankProcess:
    """One process of a request."""

    def __init__(
        self,
        request: Request,
        variables: Mapping[str, str],
        accounting: Path,
        own: Path,
    ) -> None:
        """`own` is a new folder of its own, inside the one that all of the request have.

        Raises:
            Failure: there can be no virtual device here.
        """
        environment = _environment(request, accounting, variables)
        own.mkdir()
        self.accounting = accounting
        self._request = request
        self._outcome = own / "outcome.json"
        self._words: IO[bytes] | None = None
        self._is_written = False
        self._rank = int(environment.get("RANK", "0"))
        self._plan = _plan(request, self._rank, self._outcome, own.parent / MESSAGES)
        self._plan.write(own / "plan.json")
        start = _START.format(
            folder=str(Path(__file__).parents[4]), plan=str(own / "plan.json")
        )
        if request.is_quiet:
            self._words = (own / "words").open("w+b")
        self._began = time.monotonic()
        self._deadline = self._began + request.timeout_seconds + _END_SECONDS
        self._why = ""
        self._started: list[psutil.Process] = []
        """Processes that it has started and that end with it: it did not end by itself."""
        self._process = subprocess.Popen(  # noqa: S603  # the user's own program
            bound([request.python, "-c", start]),
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

    def end_soon(self, why: str) -> None:
        """End it in a while, if it has not ended by then, with `why` as its error."""
        self._why = self._why or why
        self._deadline = min(self._deadline, time.monotonic() + _ALONE_SECONDS)

    def end(self) -> None:
        """End it now, and what it has started; and give its file back."""
        if self._process.poll() is None:
            self._started += _descendants(self._process.pid)
            self._process.kill()
            self._process.wait()
        for process in self._started:
            with suppress(psutil.Error):
                process.kill()

    def terminate(self) -> None:
        """Ask it to end, if it still runs; what it leaves running is for `end`."""
        if self._process.poll() is None:
            self._started += _descendants(self._process.pid)
            self._process.terminate()

    def ran(self) -> Ran:
        """Its outcome, once it has ended."""
        outcome = Outcome.read(self._outcome)
        if not outcome.ended:
            outcome.rank = self._rank
            outcome.error = self._why or self._end_of()
        elif self._process.returncode == -signal.SIGABRT and self._words is None:
            print(_ABORTED, file=sys.stderr)
        outcome.unsuitable = self._plan.own_runtimes()
        if self._words is None:
            return Ran(outcome)
        with self._words as output:
            output.seek(max(0, output.seek(0, os.SEEK_END) - _LAST_WORDS))
            return Ran(outcome, output.read().decode(errors="replace"))

    def _end_of(self) -> str:
        """Why there is no outcome, as a sentence."""
        limit = self._request.timeout_seconds
        if time.monotonic() - self._began >= limit:
            return f"it took more than the {limit:g} s of --timeout"
        code = self._process.returncode
        if code >= 0:
            return f"it ended with exit code {code}"
        try:
            signal_name = signal.Signals(-code).name
        except ValueError:
            signal_name = f"signal {-code}"
        return f"it was ended by {signal_name}"


def estimates_of(
    device: Device, outside_bytes: int | None
) -> tuple[list[Estimate], Estimate | None]:
    """Memory of a process outside of torch's allocator, and of each communicator beside.

    The virtual GPU allocates none of it, and it is not known before it is measured on the
    very machine: each is a range whose ends are both possible. `outside_bytes`, as
    measured on a real device, takes the place of all.
    """
    if outside_bytes is not None:
        label = "outside torch, measured"
        return [Estimate(label, outside_bytes, outside_bytes, "--outside")], None
    low, high = (
        channels * connections * _NCCL_BYTES
        for channels, connections in zip(_NCCL_CHANNELS, _NCCL_CONNECTIONS, strict=True)
    )
    context = Estimate(
        "CUDA context and kernels", *device.context_bytes, device.context_source
    )
    return [context], Estimate("NCCL", low, high, _NCCL_SOURCE)


def _plan(request: Request, rank: int, outcome: Path, messages: Path) -> Plan:
    estimates, each = estimates_of(request.device, request.outside_bytes)
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
        capacity=request.device.memory_bytes,
        host=request.ranks.host(rank),
        estimates=estimates,
        each_communicator=each,
    )


def _environment(
    request: Request, accounting: Path, variables: Mapping[str, str]
) -> dict[str, str]:
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
            accounting=accounting,
            context_bytes=request.outside_bytes,
        )
    except (VirtualGpuUnavailable, ValueError) as error:
        raise Failure(str(error)) from error


def _descendants(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []
