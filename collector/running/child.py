"""A process on a virtual GPU: runs the program for a few steps and writes what it took.

`run_plan` is called by a line of code that `memboard run --on` gives a Python; from then on
the process is the program's.
"""

from __future__ import annotations

import ctypes
import faulthandler
import os
import sys
import time
from pathlib import Path
from typing import Any, Final

from memboard.collector.core.guard import Block
from memboard.collector.format.prediction import Prediction
from memboard.collector.oom.message import is_out_of_memory, text_of
from memboard.collector.running import program as running
from memboard.collector.running.device_peaks import DevicePeaks
from memboard.collector.running.imports import after_import
from memboard.collector.running.own_runtimes import OwnRuntimes
from memboard.collector.running.plan import Outcome, Plan
from memboard.collector.running.program import Program
from memboard.collector.running.session import Settings
from memboard.collector.running.stopping import StoppingSession
from memboard.collector.running.value_reads import Places

_MAX_TEXT: Final = 500
_C10D: Final = "torch.distributed.distributed_c10d"

_NCCL_SECONDS: Final = 0.3
"""Between two steps of a job. torch's thread for NCCL looks every 100 ms which calls are done,
and until then holds the tensors of those that DDP has waited for in its own way: the buckets
of the first step, of which the second makes others. A step on a real device takes longer, one
on a virtual device a few milliseconds."""


def run_plan(path: str) -> None:
    """Run the program of a plan; ends as the program does."""
    plan = Plan.read(Path(path))
    if plan.timeout_seconds:
        # Says where every thread was, and ends the process.
        faulthandler.dump_traceback_later(plan.timeout_seconds, exit=True)
    Child(plan).run()


class Child:
    """One run of one program."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._path = Path(plan.outcome)
        self._outcome = Outcome(rank=int(os.environ.get("RANK", "0")))
        self._peaks = DevicePeaks()
        self._places = Places()
        settings = Settings(
            run_dir=Path(plan.run_dir),
            config=None
            if plan.config is None
            else [Path(path) for path in plan.config],
            keywords=plan.keywords,
        )
        self._session = StoppingSession(
            settings,
            plan.steps,
            earlier=Prediction(capacity=plan.capacity, estimates=tuple(plan.estimates)),
            ending=self._judged_by,
            between=_wait_for_nccl,
            stop=self._stopped,
        )

    def run(self) -> None:
        """Run the program, and write down how it ended and what it took."""
        plan = self._plan
        # Before the recorder begins: it resets peaks, and wraps what resets them.
        OwnRuntimes(plan.own_runtimes_file).install()
        after_import("torch", self._peaks.install)
        after_import("torch", self._places.install)
        if plan.ranks != "alone":
            after_import(_C10D, self._prepare_ranks)
        self._session.watch()
        try:
            running.run(Program(plan.target, tuple(plan.arguments), plan.is_module))
        finally:
            error = sys.exc_info()[1]
            if not self._session.is_stopped:
                if error is None:
                    self._session.capture()
                self._finished(error)
            self._session.finish()

    def _prepare_ranks(self) -> None:
        """Of a job of several ranks: what does not travel through a virtual device."""
        from memboard.collector.running.single_rank import rank
        from memboard.collector.running.single_rank.calls import Absences, Files
        from memboard.collector.running.single_rank.objects import InStore, Objects
        from memboard.collector.running.single_rank.store import Stores

        c10d: Any = sys.modules[_C10D]
        tell_sizes(c10d)
        absences = Absences(self._outcome.absent)
        if self._plan.ranks == "lone":
            mail = Files(self._plan.messages)
            rank.prepare(Stores(c10d, mail, absences))
            Objects(c10d, mail, absences).install()
        else:
            Objects(c10d, InStore(c10d), absences).install(
                wanted=lambda group: not _is_on_host(c10d, group)
            )

    def _stopped(self) -> None:
        """All its steps have run."""
        self._outcome.ended = "stopped"
        self._write()

    def _finished(self, error: BaseException | None) -> None:
        self._end_by(error)
        self._write()

    def _judged_by(self, error: BaseException | None) -> Prediction:
        """As if the process had ended by now: what its recording sees of it does."""
        self._end_by(error)
        self._look()
        return self._outcome.prediction(self._plan.capacity, self._plan.host)

    def _end_by(self, error: BaseException | None) -> None:
        outcome = self._outcome
        outcome.ended, outcome.error, outcome.exit_code = "finished", "", None
        if isinstance(error, SystemExit):
            code: Any = 0 if error.code is None else error.code
            outcome.exit_code = code if isinstance(code, int) else 1
            if outcome.exit_code:
                outcome.ended = "raised"
                outcome.error = f"SystemExit: {code}"[:_MAX_TEXT]
        elif error is not None:
            is_oom = is_out_of_memory(error)
            outcome.ended = "out_of_memory" if is_oom else "raised"
            first = text_of(error).strip().split("\n", 1)[0]
            outcome.error = f"{type(error).__name__}: {first}"[:_MAX_TEXT]

    def _write(self) -> None:
        """Write down what is known by now, also into what records. Must not raise: the program goes on."""
        outcome = self._outcome
        with Block(_not_written):
            self._look()
            outcome.num_steps = self._session.num_steps
            torch: Any = sys.modules.get("torch")
            outcome.torch = str(getattr(torch, "__version__", ""))
            outcome.places, outcome.num_places_left_out = self._places.found()
            outcome.write(self._path)
            self._session.tell(outcome.prediction(self._plan.capacity, self._plan.host))

    def _look(self) -> None:
        """What decides whether it fits."""
        outcome = self._outcome
        outcome.devices = self._peaks.figures()
        outcome.estimates = self._plan.outside(_num_communicators())
        outcome.unsuitable = self._plan.own_runtimes()


def _not_written(error: BaseException) -> None:
    print(  # noqa: T201
        f"memboard: the figures could not be written: {error}", file=sys.stderr
    )


def _is_on_host(c10d: Any, group: Any) -> bool:
    """Whether objects of a group travel as tensors of the host."""
    asked = getattr(c10d, "_get_object_coll_device", c10d._get_pg_default_device)  # noqa: SLF001
    return str(asked(group)).startswith("cpu")


def _wait_for_nccl() -> None:
    if _num_communicators():
        time.sleep(_NCCL_SECONDS)


def _num_communicators() -> int:
    """Groups with a communicator of NCCL, and more than one rank."""
    c10d: Any = sys.modules.get(_C10D)
    if c10d is None:
        return 0
    groups = c10d._world.pg_map.items()  # noqa: SLF001
    return sum(
        group.size() > 1 and ("nccl" in str(named[0]) or str(named[0]) == "undefined")
        for group, named in tuple(groups)
    )


_TELL: Final = "memboard_vgpu_split_ranks"


def tell_sizes(c10d: Any) -> None:
    """Have `split_group` tell the virtual device how many ranks a new group has.

    NCCL is told a colour and asks all ranks who has it; on a virtual device each rank is
    alone with its communicators. `c10d` is `torch.distributed.distributed_c10d`.
    """
    split = getattr(c10d, "split_group", None)
    tell = getattr(ctypes.CDLL(None), _TELL, None)
    if split is None or tell is None:
        return

    def split_group(
        parent_pg: Any = None, split_ranks: Any = None, *args: Any, **keywords: Any
    ) -> Any:
        me = (parent_pg or c10d.group.WORLD).rank()
        tell(next((len(ranks) for ranks in split_ranks or () if me in ranks), 0))
        try:
            return split(parent_pg, split_ranks, *args, **keywords)
        finally:
            tell(0)

    c10d.split_group = split_group
