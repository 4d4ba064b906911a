"""What the allocator model costs: calls and events per second, bytes per event.

Run: python tests/perf/allocator_model.py [--events 1000000] [--cases 21]

All figures are processor time of one process, so that a busy machine changes little; the
ratios in the last column are to the first row of their table.
"""

from __future__ import annotations

import argparse
import pickle
import resource
import tempfile
import time
from pathlib import Path

from collector.simulate import OOM_CAUSES, Form, oom_case, trained_rank
from collector.simulate.allocator.allocator import CachingAllocator
from collector.simulate.allocator.device import DeviceMemory
from collector.simulate.allocator.settings import GIB, parse_settings
from collector.simulate.curves import training_shape
from collector.simulate.history.history import History
from collector.simulate.modules.transformer import TransformerTraining

MIB = 1 << 20


def table(title: str, rows: list[tuple[str, ...]]) -> None:
    print(f"\n{title}")
    for name, *values in rows:
        print(f"  {name:<44}" + "".join(f"{value:>15}" for value in values))


def training_seconds(allocator: CachingAllocator, steps: int = 12) -> tuple[float, int]:
    """Processor time of a few steps and the number of allocations and frees in them."""
    shape = training_shape(64)
    training = TransformerTraining(shape, allocator)
    calls = 0

    def counted(call):
        def inner(*args):
            nonlocal calls
            calls += 1
            return call(*args)

        return inner

    start = time.process_time()
    for step in range(steps):
        training.step(shape.max_tokens - 256 * (step % 5))
    seconds = time.process_time() - start
    allocator.allocate, allocator.free = (  # type: ignore[method-assign]
        counted(allocator.allocate),
        counted(allocator.free),
    )
    training.step(shape.max_tokens)
    return seconds, calls * steps


def calls() -> None:
    """The model under each setting, driven by the same training."""
    rows = []
    first = 0.0
    for name, text, fraction, recorded in (
        ("default", "", None, False),
        ("default, with a history", "", None, True),
        ("expandable_segments", "expandable_segments:True", None, False),
        ("roundup_power2_divisions:4", "roundup_power2_divisions:4", None, False),
        ("max_split_size_mb:512", "max_split_size_mb:512", None, False),
        (
            "garbage_collection_threshold:0.8",
            "garbage_collection_threshold:0.8",
            1,
            False,
        ),
    ):
        best = (float("inf"), 1)
        for _ in range(3):
            device = DeviceMemory(78 * GIB, memory_fraction=fraction)
            allocator = CachingAllocator(
                78 * GIB,
                parse_settings(text),
                device=device,
                history=History() if recorded else None,
            )
            best = min(best, training_seconds(allocator))
        each = best[0] / best[1]
        first = first or each
        rows.append((name, f"{each * 1e6:.2f} us", f"{each / first:.2f}x"))
    table("one allocate or free", rows)


def snapshots(num_events: int) -> None:
    """Simulating a history, writing it, and the same by way of dicts."""
    start = time.process_time()
    rank = trained_rank(num_events)
    simulated = time.process_time() - start
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "snapshot.pickle"
        start = time.process_time()
        rank.write(path, Form())
        written = time.process_time() - start
        size = path.stat().st_size
        lean = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        start = time.process_time()
        with path.open("wb") as file:
            pickle.dump(rank.snapshot(Form()), file, protocol=4)
        dumped = time.process_time() - start
    fat = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    number = len(rank.history)
    table(
        f"a history of {number:,} events, {size / 1e6:.0f} MB as a pickle"
        f" ({size / number:.0f} bytes an event)",
        [
            ("", "seconds", "us an event", "peak memory"),
            ("simulate", f"{simulated:.1f}", f"{simulated / number * 1e6:.2f}", ""),
            (
                "write as it is made",
                f"{written:.1f}",
                f"{written / number * 1e6:.2f}",
                f"{lean:.0f} MiB",
            ),
            (
                "snapshot in memory and pickle.dump",
                f"{dumped:.1f}",
                f"{dumped / number * 1e6:.2f}",
                f"{fat:.0f} MiB",
            ),
        ],
    )


def cases(number: int) -> None:
    """Labelled out-of-memory errors."""
    rows = []
    for cause in OOM_CAUSES:
        start = time.process_time()
        events = 0
        for seed in range(max(1, number // len(OOM_CAUSES))):
            case = oom_case(cause, seed)
            events += sum(len(rank.history) for rank in case.ranks)
        each = (time.process_time() - start) / (seed + 1)
        rows.append((cause, f"{each:.2f} s", f"{events // (seed + 1):,} events"))
    table("one case of", rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--cases", type=int, default=21)
    options = parser.parse_args()
    calls()
    cases(options.cases)
    snapshots(options.events)


if __name__ == "__main__":
    main()
