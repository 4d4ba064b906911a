"""Costs of recording: time per step, training-thread overhead, profiling, bytes ...

    python -m tests.perf.step_cost [step|overhead|profiling|bytes|values ...]

Each part prints a table and stands alone; without arguments all run. Ratios come from
one run on one machine, with the two sides taking turns.
"""

from __future__ import annotations

import contextlib
import math
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import memboard as mb
from memboard.collector.clock.process_clock import PROCESS_CLOCK
from memboard.collector.config import load
from memboard.collector.config.schedule import Action
from memboard.collector.format import columns as catalogue
from memboard.collector.format.records import Close, DeviceIdentity, Schema
from memboard.collector.process.rank import identify, new_attempt
from memboard.collector.writing.header import make_header
from memboard.collector.writing.rank_file import RankFile
from tests.perf import bench

STEP_SECONDS = 0.020
TRAINING_SECONDS = 0.022
NUM_METRICS = 60


def table(title: str, rows: list[tuple[str, str]]) -> None:
    row = bench.table(title, "")
    for cells in rows:
        row(*cells)
    print()


@contextlib.contextmanager
def recording():
    """A live recorder with the default settings, past its start."""
    with (
        tempfile.TemporaryDirectory() as folder,
        mb.record(Path(folder) / "run") as rec,
    ):
        rec.step()
        time.sleep(0.3)  # NVML, psutil and the rest are open now
        yield rec


def step() -> None:
    """`rec.step()` on the training thread."""
    clock = time.perf_counter_ns
    waited, tight = [], []
    with recording() as rec:
        for _ in range(2000):
            time.sleep(0.001)  # caches cool down, as between real steps
            before = clock()
            rec.step(tokens=512)
            waited.append((clock() - before) / 1e3)
        for _ in range(20_000):
            before = clock()
            rec.step()
            tight.append((clock() - before) / 1e3)
    off = mb.record("unused", enabled=False)
    before = clock()
    for _ in range(100_000):
        off.step()
    nothing = (clock() - before) / 1e5 / 1e3
    rows = []
    for name, values in (("between 1 ms pauses", waited), ("back to back", tight)):
        cuts = statistics.quantiles(values, n=100)
        rows += [(f"{name}: p{p}", f"{cuts[p - 1]:.1f} us") for p in (10, 50, 99)]
    rows.append(("switched off", f"{nothing:.3f} us"))
    table("rec.step() with the default sources", rows)


class Work:
    """A fixed piece of work of about 20 ms of CPU, all on the calling thread."""

    def __init__(self) -> None:
        # Too small for a BLAS to use its threads, which thread time would not see.
        self._a = np.random.default_rng(0).random((32, 32))
        self._times = 500
        self()  # wakes the processor up
        before = time.thread_time()
        self()
        seconds = (time.thread_time() - before) / self._times
        self._times = max(1, round(STEP_SECONDS / seconds))

    def __call__(self) -> None:
        a = self._a
        for _ in range(self._times):
            a @ a


def overhead(num_rounds: int = 15, num_steps: int = 40) -> None:
    """CPU time of the training thread, with and without a recording, taking turns."""
    work = Work()

    def trained(rec) -> tuple[float, float, float]:
        """Seconds per step: of the thread, of the clock, of the thread in `rec.step()`."""
        inside = 0.0
        cpu, wall = time.thread_time(), time.perf_counter()
        for _ in range(num_steps):
            work()
            before = time.thread_time()
            rec.step()
            inside += time.thread_time() - before
        cpu, wall = time.thread_time() - cpu, time.perf_counter() - wall
        return cpu / num_steps, wall / num_steps, inside / num_steps

    def recorded() -> tuple[float, float, float]:
        with recording() as rec:
            return trained(rec)

    idle = mb.record("unused", enabled=False)
    sides = bench.turns({"off": lambda: trained(idle), "on": recorded}, num_rounds)
    rows = []
    for index, name in enumerate(("thread CPU", "wall")):
        off, on = ([one[index] for one in sides[side]] for side in ("off", "on"))
        rows += [
            (f"{name} per step, off", f"{statistics.median(off) * 1e3:.3f} ms"),
            (f"{name} per step, on", f"{statistics.median(on) * 1e3:.3f} ms"),
        ]
        pairs = [b - a for a, b in zip(off, on, strict=True)]
        low, middle, high = statistics.quantiles(pairs, n=4)
        bare = statistics.median(off)
        spread = f"({low / bare:+.2%} {high / bare:+.2%})"
        title = f"{name}: median of {num_rounds} paired differences (quartiles)"
        rows.append((title, f"{middle * 1e6:+.0f} us {middle / bare:+.2%} {spread}"))
    cpu, _, inside = (sum(values) for values in zip(*sides["on"], strict=True))
    share = f"{inside / num_rounds * 1e6:.1f} us {inside / cpu:.3%}"
    rows.append(("inside rec.step(), of the thread's CPU", share))
    table(f"Overhead on a {STEP_SECONDS * 1e3:.0f} ms CPU step", rows)


class Training:
    """A training step of 22 ms of CPU on one thread: a small transformer."""

    def __init__(self) -> None:
        import torch
        from torch import nn

        torch.set_num_threads(1)
        torch.manual_seed(0)
        self.model = nn.Sequential(
            nn.Embedding(512, 128),
            *(
                nn.TransformerEncoderLayer(128, 4, 256, dropout=0.0, batch_first=True)
                for _ in range(2)
            ),
            nn.Linear(128, 512),
        )
        self._torch = torch
        self._optimizer = torch.optim.AdamW(self.model.parameters(), foreach=True)
        # As many sequences as take that long here: neither modules nor saved tensors
        # become more. The optimizer does not take longer for more, so the first guess of
        # their number is not the last.
        batch = 8
        for _ in range(4):
            self._tokens = torch.randint(0, 512, (batch, 64))
            self()
            seconds = statistics.median(self._seconds() for _ in range(20))
            batch = max(1, round(batch * TRAINING_SECONDS / seconds))
        self._tokens = torch.randint(0, 512, (batch, 64))
        for _ in range(5):
            self()

    def _seconds(self) -> float:
        before = time.thread_time()
        self()
        return time.thread_time() - before

    def __call__(self) -> None:
        logits = self.model(self._tokens).flatten(0, 1)
        self._torch.nn.functional.cross_entropy(
            logits, self._tokens.flatten()
        ).backward()
        self._optimizer.step()
        self._optimizer.zero_grad()


NOTHING, EMPTY, SNAPS, HOOKS, SAVED, ALL = (
    "nothing",
    "hooks that do nothing",
    "snaps",
    "snaps, hooks with rss",
    "snaps, saved tensors",
    "snaps, hooks with rss, saved tensors",
)
BEFORE, AFTER, SAVING = "before a forward", "after it", "saving a tensor"
KINDS: dict[str, dict[str, object]] = {
    NOTHING: {"functions": False},
    EMPTY: {"functions": False},
    SNAPS: {"hooks": False, "activations": False},
    HOOKS: {"activations": False},
    SAVED: {"hooks": False},
    ALL: {},
}


def profiling(num_rounds: int = 300, num_steps: int = 4) -> None:
    """CPU time that collected steps add to the training thread, by what is collected.

    One recording for each, and all in one run: blocks of `num_steps` steps take turns,
    in another order each round. The first step of a block is not collected: it begins
    where the block before ended, and no hooks may be there in the others' turn. They come
    at its end and go at the end of the last step, so these two are not counted. Of the
    rest the median stands for the block; blocks of a round are compared with each other.
    The lowest tenth of blocks says what it costs where nothing else disturbs the machine.

    The floor is what torch takes to call as many hooks that do nothing.
    """
    training = Training()
    order = list(KINDS)
    blocks: dict[str, list[float]] = {name: [] for name in KINDS}
    shuffle = np.random.default_rng(0).shuffle

    def choose(number: int) -> Action:
        return Action.ACTIVE if number % num_steps else Action.SKIP

    with contextlib.ExitStack() as stack:
        recorders = {}
        for name, kinds in KINDS.items():
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            recorders[name] = stack.enter_context(
                mb.record(
                    Path(folder) / "run",
                    model=training.model,
                    schedule={"choose": choose},
                    scalars=False,
                    # Five samplers at once would be in each other's way.
                    **dict.fromkeys(("gpu", "process", "host"), False),
                    **kinds,
                )
            )
        for round_ in range(num_rounds + 1):
            shuffle(order)
            for name in order:
                steps = []
                with (
                    empty_hooks(training) if name == EMPTY else contextlib.nullcontext()
                ):
                    for _ in range(num_steps):
                        cpu = time.thread_time()
                        training()
                        recorders[name].step()
                        steps.append(time.thread_time() - cpu)
                if round_:  # the first one warms up
                    blocks[name].append(statistics.median(steps[1:-1]))

    bare = statistics.median(blocks[NOTHING])

    def compared(name: str, base: str) -> list[tuple[str, str]]:
        pairs = zip(blocks[name], blocks[base], strict=True)
        low, middle, high = np.quantile([a - b for a, b in pairs], (0.25, 0.5, 0.75))
        least = np.quantile(blocks[name], 0.1) - np.quantile(blocks[base], 0.1)
        spread = f"({low / bare:+.2%} {high / bare:+.2%})"
        title = f"{name}, against {base}"
        return [
            (title, f"{middle * 1e6:+.0f} us {middle / bare:+.2%} {spread}"),
            ("  lowest tenth", f"{least * 1e6:+.0f} us {least / bare:+.2%}"),
        ]

    rows = [
        ("the step itself", f"{bare * 1e3:.2f} ms"),
        ("modules, saved tensors", "{}, {}".format(*_events(training))),
    ]
    for name in (EMPTY, SNAPS, HOOKS, SAVED, ALL):
        rows += compared(name, NOTHING)
    rows += compared(ALL, EMPTY) + compared(ALL, SNAPS)
    table(
        f"Thread CPU that collected steps add: median (quartiles) of {num_rounds}", rows
    )


@contextlib.contextmanager
def empty_hooks(training: Training, around=lambda _part, hook: hook):
    """A hook before and after each module's forward, and one for each saved tensor.

    `around`: what is called in place of each, given the hook and what it is called at.
    """
    import torch

    def before(module: object, args: object) -> None:
        return

    def after(module: object, args: object, kwargs: object, outputs: object) -> None:
        return

    with contextlib.ExitStack() as stack:
        for module in training.model.modules():
            for handle in (
                module.register_forward_pre_hook(around(BEFORE, before)),
                module.register_forward_hook(around(AFTER, after), with_kwargs=True),
            ):
                stack.callback(handle.remove)
        pack = around(SAVING, lambda x: x)
        same = torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x)
        stack.enter_context(same)
        yield


def _events(training: Training) -> tuple[int, int]:
    """Modules, and tensors that a step saves."""
    import torch

    num_saved = 0

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        nonlocal num_saved
        num_saved += 1
        return tensor.detach()

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        training()
    return sum(1 for _ in training.model.modules()), num_saved


def metrics() -> tuple[catalogue.Column, ...]:
    """The axes and 60 metrics: what one step of a rank with a GPU could hold."""
    found = (
        *catalogue.TIMING,
        *catalogue.PROGRESS,
        *catalogue.RSS,
        *catalogue.device_byte_columns(),
        *catalogue.DEVICE_COUNTERS,
        *catalogue.DEVICE_FREE,
        *catalogue.PINNED,
        *catalogue.PROCESS,
        *catalogue.MEMORY,
        *catalogue.SWAP,
        *catalogue.CPU,
        *catalogue.GPU,
    )[:NUM_METRICS]
    assert len(found) == NUM_METRICS
    return (*catalogue.AXES, *found)


def synthetic(num_rows: int) -> list[list[int | float]]:
    """Rows as an allocator makes them: levels that repeat, noise in blocks, counters."""
    rng = np.random.default_rng(3)
    time_ns = time.time_ns() + np.cumsum(rng.normal(2e7, 2e5, num_rows)).astype(
        np.int64
    )
    series = []
    for index, column in enumerate(metrics()):
        if column.name == "time_ns":
            values = time_ns
        elif column.name == "step":
            values = np.arange(num_rows)
        elif column.kind == "counter":
            values = np.arange(num_rows) * (4096 if index % 2 else 0)
        elif column.unit == "bytes":
            level = rng.integers(2**28, 2**36)
            noise = 512 * rng.integers(0, 2**12, num_rows) if index % 3 else 0
            jumps = 2**21 * np.cumsum(rng.random(num_rows) < 0.01)
            values = level + noise + jumps
        elif column.dtype == "i8":
            values = np.full(num_rows, 7) + (rng.random(num_rows) < 0.02)
        else:
            values = rng.normal(0.02, 0.0005, num_rows)
        series.append(values.tolist())
    return [list(row) for row in zip(*series, strict=True)]


def rank_file(path: Path) -> RankFile:
    config = load(None)
    identity = identify(config, {})
    started = PROCESS_CLOCK.anchor()
    file = RankFile(max_bytes=0)
    header = make_header(
        run_dir=path.parent,
        attempt=new_attempt(started.wall_ns),
        identity=identity,
        started=started,
        device=DeviceIdentity(device_type="cuda", device_index=0),
        memory=(None, None),
        mesh={},
        config=config,
    )
    file.open(path, header)
    file.add_schema(Schema(schema_id=0, table="step", phase="train", columns=metrics()))
    return file


def write(
    path: Path, rows: list[list[int | float]], per_flush: int
) -> tuple[int, float]:
    """(bytes, CPU seconds) of writing the rows as the writer's thread does."""
    before = time.process_time()
    file = rank_file(path)
    for start in range(0, len(rows), per_flush):
        for row in rows[start : start + per_flush]:
            file.add_row(0, row)
        file.flush()
    file.close(Close(time_ns=time.time_ns(), how="closed", message=""))
    return path.stat().st_size, time.process_time() - before


def bytes_per_step() -> None:
    """Bytes on disk of 60 metrics, digests included."""
    rows = []
    for pace in (0.005, 0.02, 0.1, 0.5, 2.0):
        per_flush = max(1, math.ceil(1.5 / pace))
        num_rows = int(min(10_000, max(1000, 1800 / pace)))
        with tempfile.TemporaryDirectory() as folder:
            size, _ = write(Path(folder) / "a.events", synthetic(num_rows), per_flush)
        name = (
            f"{pace * 1e3:6.0f} ms steps, {per_flush:3d} rows a flush, {num_rows} steps"
        )
        rows.append((name, f"{size / num_rows:.0f} B"))
    table("Bytes per rank and step at 60 metrics (synthetic values)", rows)

    with tempfile.TemporaryDirectory() as folder:
        seconds, num_steps = 20, 0
        with mb.record(Path(folder) / "run") as rec:
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                time.sleep(STEP_SECONDS)
                rec.step(tokens=512, samples=4)
                num_steps += 1
        sizes = {
            path.suffix: path.stat().st_size
            for path in Path(folder).rglob("*")
            if path.is_file()
        }
    table(
        f"A real recording of {seconds} s with the default sources, {num_steps} steps",
        [
            (
                "rank file, host tables and all",
                f"{sizes['.events'] / num_steps:.0f} B/step",
            ),
            (
                "scalars for TensorBoard's tabs",
                f"{sizes['.memboard'] / num_steps:.0f} B/step",
            ),
        ],
    )


def values() -> None:
    """CPU per value: ours, and SummaryWriter.add_scalar, taking turns."""
    rows = synthetic(2000)

    def ours() -> float:
        with tempfile.TemporaryDirectory() as folder:
            _, seconds = write(Path(folder) / "a.events", rows, 75)
        return seconds / len(rows) / NUM_METRICS * 1e6

    def theirs() -> float:
        from torch.utils.tensorboard import SummaryWriter

        with tempfile.TemporaryDirectory() as folder:
            before = time.process_time()
            writer = SummaryWriter(folder)
            for number, row in enumerate(rows[:50]):
                for metric in range(NUM_METRICS):
                    writer.add_scalar(f"metric{metric}", row[metric], number)
            writer.close()
            return (time.process_time() - before) / 50 / NUM_METRICS * 1e6

    found = bench.turns({"ours": ours, "theirs": theirs}, 5)
    mine, other = (statistics.median(found[name]) for name in ("ours", "theirs"))
    table(
        "CPU per value, all threads, 60 metrics a step",
        [
            ("ours, encoding, checksum and write", f"{mine:.2f} us"),
            ("torch.utils.tensorboard add_scalar", f"{other:.1f} us"),
            ("ratio", f"{other / mine:.0f}x"),
        ],
    )


PARTS = {
    "step": step,
    "overhead": overhead,
    "profiling": profiling,
    "bytes": bytes_per_step,
    "values": values,
}


def main() -> None:
    for name in sys.argv[1:] or PARTS:
        PARTS[name]()


if __name__ == "__main__":
    main()
