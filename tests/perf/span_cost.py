"""Costs of a span's begin and end, by how it is recorded.

    python -m tests.perf.span_cost

CPU time of the training thread; ratios come from one run on one machine.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import memboard as mb
from memboard.collector.steps.spans import captures
from tests.perf import bench

if TYPE_CHECKING:
    from collections.abc import Callable


def spans(number: int = 20_000, num_rounds: int = 15) -> None:
    """A span's begin and end on the training thread, by how it is recorded.

    CPU time of the training thread, in rounds: the median one and the best. A loop that
    does nothing is taken off. The writer takes rows away meanwhile, on its own thread.
    """
    clock = time.thread_time_ns
    never = {"warmup": 10**6, "active": 0}
    always = {"warmup": 0, "active": 0}
    # Every row is written, none dropped: that would be cheaper.
    vars(captures)["PER_SECOND"] = 10**6
    kept = {"schedule": always, "scalars": False}

    def each(block: Callable[[int], None]) -> tuple[float, float]:
        rounds = []
        for _ in range(num_rounds):
            before = clock()
            for _ in range(number):
                pass
            nothing = clock() - before
            before = clock()
            block(number)
            rounds.append((clock() - before - nothing) / number / 1e3)
            time.sleep(0.2)
        return statistics.median(rounds), min(rounds)

    # Keywords stand in the call, as programs write them: to pass them on costs more.

    def inside(owner: Any) -> Callable[[int], None]:
        def block(number: int) -> None:
            for _ in range(number):
                with owner.span("x"):
                    pass

        return block

    def with_category(owner: Any, category: str = "c") -> Callable[[int], None]:
        def block(number: int) -> None:
            for _ in range(number):
                with owner.span("x", category=category):
                    pass

        return block

    def with_args(owner: Any) -> Callable[[int], None]:
        def block(number: int) -> None:
            for _ in range(number):
                with owner.span("x", category="c", args={"n": 1}):
                    pass

        return block

    def reused(owner: Any) -> Callable[[int], None]:
        one = owner.span("x")

        def block(number: int) -> None:
            for _ in range(number):
                with one:
                    pass

        return block

    def automatic(owner: Any) -> Callable[[int], None]:
        timed = owner._session.timing.automatic

        def block(number: int) -> None:
            for _ in range(number):
                timed.end(timed.begin("optimizer", "step", ()), False)

        return block

    def counted(owner: Any) -> Callable[[int], None]:
        def block(number: int) -> None:
            for _ in range(number):
                owner.log({"x": 1.5})

        return block

    rows = []

    def add(name: str, block: Callable[[int], None]) -> None:
        middle, best = each(block)
        rows.append((name, f"{middle:.2f} us, best {best:.2f} us"))

    with tempfile.TemporaryDirectory() as folder:
        quiet = dict.fromkeys(("gpu", "process", "host"), False)
        with mb.record(Path(folder) / "a", **quiet, **kept) as rec:
            rec.step()
            add("kept one by one", inside(rec))
            add("kept, one object for all", reused(rec))
            add("kept, with a category and args", with_args(rec))
            add("kept, with a category", with_category(rec))
            add("kept, a part of the step", with_category(rec, "communication"))
            add("kept, a part that is timed by itself", automatic(rec))
            add("a counter, kept", counted(rec))
            dropped = rec.num_dropped
        rows.append(("of all of them dropped", f"{dropped}"))
        with mb.record(Path(folder) / "b", schedule=never, **quiet) as rec:
            rec.step()
            add("summed up alone", inside(rec))
    add("no recorder: mb.span", inside(mb))
    add("no recorder: the same, category, args", with_args(mb))
    off = mb.record("unused", enabled=False)
    add("switched off: rec.span", inside(off))
    add("switched off: the same, category, args", with_args(off))
    row = bench.table("a span's begin and end, both together", "")
    for cells in rows:
        row(*cells)


if __name__ == "__main__":
    spans()
