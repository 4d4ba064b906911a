"""Time inside the recorder's code, in collected steps of a real training.

    python -m tests.perf.inside_step [--blocks 30] [--steps 10]

The clock is read around every hook, every saved tensor and `rec.step()`, while the training
of `step_cost` runs: as it evicts the recorder's code and data from the caches, each takes three
to five times as long as in a loop. Whole steps with and without a recording differ by more
from one to the next than by what is measured (see `step_cost profiling`); these times do not.

Blocks of `--steps` steps take turns: everything that is collected by default, and as many of
torch's hooks that do nothing beside a recorder that collects nothing. The first two and the
last step of a block are not counted. What torch does to call hooks is in neither.
"""

from __future__ import annotations

import functools
import tempfile
import time
from collections import defaultdict
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import memboard as mb
from memboard.collector.config.schedule import Action
from memboard.collector.functions import module_watch, saved_tensors
from tests.perf import bench
from tests.perf.step_cost import AFTER, BEFORE, SAVING, Training, empty_hooks

if TYPE_CHECKING:
    from collections.abc import Callable

COLLECTED, EMPTY = "collected", "hooks that do nothing"
STEP = "rec.step()"
PARTS = (BEFORE, AFTER, SAVING, STEP)


class Clock:
    """Nanoseconds by part since the last `take`."""

    def __init__(self) -> None:
        self._spent: dict[str, int] = defaultdict(int)

    def around(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        now, spent = time.perf_counter_ns, self._spent

        @functools.wraps(function)
        def timed(*args: Any) -> Any:
            begun = now()
            result = function(*args)
            spent[part] += now() - begun
            return result

        return timed

    def take(self) -> list[float]:
        """Microseconds of `PARTS`."""
        taken = [self._spent[part] / 1e3 for part in PARTS]
        self._spent.clear()
        return taken


def watch_recorder(clock: Clock) -> None:
    """Put the clock around the hooks that recorders are going to make."""
    before, after = module_watch._BeforeForward, module_watch._AfterForward
    for part, hook in ((BEFORE, before), (AFTER, after)):
        hook.__call__ = clock.around(part, hook.__call__)  # type: ignore[method-assign]
    packing = saved_tensors._packing
    saved_tensors._packing = lambda saved: clock.around(SAVING, packing(saved))


def main() -> None:
    given = bench.options(__doc__, blocks=30, steps=10)
    clock, training = Clock(), Training()
    watch_recorder(clock)
    found: dict[str, list[list[float]]] = {COLLECTED: [], EMPTY: []}
    with ExitStack() as stack:
        recorders = {}
        for side, settings in ((COLLECTED, {}), (EMPTY, {"functions": False})):
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            recorders[side] = stack.enter_context(
                mb.record(
                    Path(folder) / "run",
                    model=training.model,
                    schedule={
                        "choose": lambda number: (
                            Action.ACTIVE if number % given.steps else Action.SKIP
                        )
                    },
                    scalars=False,
                    **dict.fromkeys(("gpu", "process", "host"), False),
                    **settings,
                )
            )
        for _ in range(given.blocks):
            for side, recorder in recorders.items():
                step = clock.around(STEP, recorder.step)
                empties = empty_hooks(training, clock.around)
                with empties if side == EMPTY else nullcontext():
                    for number in range(given.steps):
                        training()
                        step()
                        spent = clock.take()
                        if 1 < number < given.steps - 1:
                            found[side].append(spent)
    shares = {"lowest tenth": 0.1, "median": 0.5}
    heads = [f"{side}, {share}" for share in shares for side in found]
    row = bench.table("us a step, inside the code", *heads)
    columns = [
        np.quantile(found[side], share, axis=0).tolist()
        for share in shares.values()
        for side in found
    ]
    for part, cells in zip(PARTS, zip(*columns, strict=True), strict=True):
        row(part, *cells)
    row("together", *map(sum, columns))


if __name__ == "__main__":
    main()
