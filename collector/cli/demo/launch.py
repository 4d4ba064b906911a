"""Starts the demo's ranks as torchrun would, watches them, and stops them together."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, Literal

from memboard.collector.cli.failure import Failure
from memboard.collector.format.sizes import counted, part_of
from memboard.collector.process.bound_process import bound
from memboard.collector.process.child_python import own_module

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

DEFAULT_RANKS: Final = 4
_LAST_LINES: Final = 20
_STOP_SECONDS: Final = 15.0
_READ_SECONDS: Final = 5.0
"""For what an ended process still has in its pipe, which a worker of it may hold open."""
_WATCH_SECONDS: Final = 0.1

_WITHOUT_TRAINING: Final = (
    "Look at the simulated run alone, which needs no PyTorch: memboard demo"
)
_INSTALL: Final = f'{sys.executable} -m pip install "torch>=2.6"'
_UPGRADE: Final = f"{sys.executable} -m pip install --upgrade torch"


@dataclass(frozen=True, slots=True)
class TrainingPlan:
    """Where the demo trains, with how many ranks."""

    device: Literal["cpu", "cuda"]
    num_ranks: int
    num_steps: int
    num_seconds: int
    """It ends with the first of the two."""
    seed: int
    words: str
    """For the user: what runs where."""

    def run(self, run_dir: Path) -> None:
        """Train and record into `run_dir`; returns when all ranks are done.

        Raises:
            Failure: a rank failed; it says which, with that rank's last lines.
        """
        print(f"{self.words} Recording into {run_dir}.", flush=True)
        # The store lives here, as it does in torchrun's agent: no port is guessed.
        store = import_module("torch.distributed").TCPStore(
            "127.0.0.1", 0, is_master=True, wait_for_workers=False
        )
        started = time.monotonic()
        ranks: list[_Rank] = []
        try:
            for rank in range(self.num_ranks):
                # One by one, so that those already started are stopped if one fails.
                started_rank = _Rank(
                    rank, self._command(run_dir), self._environment(rank, store.port)
                )
                ranks.append(started_rank)
            _watch(ranks)
        finally:
            _stop(ranks)
        seconds = time.monotonic() - started
        print(
            f"Trained {counted(self.num_ranks, 'rank')} for {seconds:.0f} s.",
            flush=True,
        )

    def _command(self, run_dir: Path) -> list[str]:
        return own_module(
            "memboard.collector.cli.demo.training",
            f"--run-dir={run_dir}",
            f"--steps={self.num_steps}",
            f"--seconds={self.num_seconds}",
            f"--seed={self.seed}",
            f"--device={self.device}",
        )

    def _environment(self, rank: int, port: int) -> dict[str, str]:
        return {
            **os.environ,
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": str(self.num_ranks),
            "LOCAL_WORLD_SIZE": str(self.num_ranks),
            "GROUP_RANK": "0",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "TORCHELASTIC_USE_AGENT_STORE": "True",
            "TORCHELASTIC_RUN_ID": f"memboard-demo-{os.getpid()}",
            "TORCHELASTIC_RESTART_COUNT": "0",
            "OMP_NUM_THREADS": "1",
            "PYTHONUNBUFFERED": "1",
        }


def plan_training(
    num_ranks: int | None, num_steps: int, num_seconds: int, seed: int
) -> TrainingPlan:
    """Choose the device: GPUs where there is one for every rank, else the CPU.

    Raises:
        Failure: PyTorch is missing, too old or without torch.distributed, or this is
            no POSIX system.
    """
    if os.name != "posix":
        raise Failure(
            "the demo's training runs on Linux and macOS",
            remedy=_WITHOUT_TRAINING,
        )
    torch = _import_torch()
    num_gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    wanted = num_ranks or num_gpus or DEFAULT_RANKS
    device: Literal["cpu", "cuda"]
    if num_gpus and wanted <= num_gpus:
        device = "cuda"
        device_name = torch.cuda.get_device_name(0)
        sentence = f"Training on {part_of(wanted, num_gpus, 'GPU')} ({device_name}), one rank each, NCCL."
    else:
        device = "cpu"
        why = (
            f": {counted(wanted, 'rank')}, but only {counted(num_gpus, 'GPU')}"
            if num_gpus
            else ""
        )
        if not hasattr(torch.cpu.Stream, "record_event"):
            raise Failure(
                f"FSDP2 of this PyTorch ({torch.__version__}) trains on GPUs only{why}",
                where=str(torch.__file__),
                remedy=f"{_UPGRADE}\n  Or: {_WITHOUT_TRAINING}",
            )
        sentence = f"Training {counted(wanted, 'rank')} on the CPU (gloo){why}."
    return TrainingPlan(device, wanted, num_steps, num_seconds, seed, sentence)


def _import_torch() -> Any:
    if find_spec("torch") is None:
        raise Failure(
            "the demo trains a real model and needs PyTorch, which is not installed",
            where=sys.executable,
            remedy=f"{_INSTALL}\n  Or: {_WITHOUT_TRAINING}",
        )
    import torch
    import torch.distributed

    if not torch.distributed.is_available():
        raise Failure(
            f"this PyTorch ({torch.__version__}) is built without torch.distributed",
            where=str(torch.__file__),
            remedy=f"{_INSTALL}\n  Or: {_WITHOUT_TRAINING}",
        )
    import torch.distributed.fsdp

    if not hasattr(torch.distributed.fsdp, "fully_shard"):
        raise Failure(
            f"this PyTorch ({torch.__version__}) is too old: the demo needs FSDP2",
            where=str(torch.__file__),
            remedy=f"{_INSTALL}\n  Or: {_WITHOUT_TRAINING}",
        )
    return torch


class _Rank:
    """One rank's process; its output is read all the time, rank 0's is shown."""

    def __init__(
        self, rank: int, command: Sequence[str], environment: dict[str, str]
    ) -> None:
        self.rank = rank
        self.lines: deque[str] = deque(maxlen=_LAST_LINES)
        # A session of its own: Ctrl-C reaches us alone, and we end all in order; its
        # dataloader workers can be ended with it.
        self.process = subprocess.Popen(  # noqa: S603  # our own interpreter and arguments
            bound(command),
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def finish_reading(self) -> None:
        """Wait for the last lines of a process that has ended."""
        self._reader.join(_READ_SECONDS)

    def signal(self, number: int) -> None:
        """Send a signal to the rank alone."""
        if self.process.poll() is None:
            self.process.send_signal(number)

    def kill_all(self) -> None:
        """End the rank and the workers it left, by force."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            return

    def _read(self) -> None:
        assert self.process.stdout is not None  # noqa: S101  # it is piped above
        with self.process.stdout as lines:
            for line in lines:
                self.lines.append(line.rstrip())
                if self.rank == 0 and line.startswith("step "):
                    print(f"  {line.rstrip()}", flush=True)


def _watch(ranks: Sequence[_Rank]) -> None:
    """Until all have ended; the first that fails ends the wait."""
    while True:
        codes = [rank.process.poll() for rank in ranks]
        for rank, code in zip(ranks, codes, strict=True):
            if code:
                _explain(rank, code)
        if all(code == 0 for code in codes):
            return
        time.sleep(_WATCH_SECONDS)


def _explain(rank: _Rank, code: int) -> None:
    rank.finish_reading()
    how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    output = "\n".join(f"  | {line}" for line in rank.lines) or "  | (no output)"
    raise Failure(
        f"rank {rank.rank} ended with {how}; its last lines:\n{output}",
        remedy="What was recorded until then is in the logdir. Fewer ranks (--ranks 2)"
        " need less memory and fewer cores.",
    )


def _stop(ranks: Sequence[_Rank]) -> None:
    """End what still runs: asked first, so that recordings are closed; then by force."""
    try:
        for rank in ranks:
            rank.signal(signal.SIGINT)
        deadline = time.monotonic() + _STOP_SECONDS
        for rank in ranks:
            with suppress(subprocess.TimeoutExpired):
                rank.process.wait(max(0.0, deadline - time.monotonic()))
    finally:
        # Also where a rank ended by itself, whose workers may have outlived it; and
        # where somebody who pressed Ctrl-C presses it again.
        for rank in ranks:
            rank.kill_all()
            rank.process.wait()
            rank.finish_reading()
