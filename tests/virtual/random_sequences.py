"""Random operations of torch's caching allocator, and what it made of them.

    python -m tests.virtual.random_sequences OUT SETTING VARIANT FIRST COUNT

in the environment of a virtual GPU, with the setting's text in PYTORCH_CUDA_ALLOC_CONF.
OUT gets a pickle for each sequence: a `Performed`. Every sequence begins with nothing
reserved. Importing this needs no torch.
"""

from __future__ import annotations

import contextlib
import pickle
import random
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

KIB, MIB = 1 << 10, 1 << 20
POINT_EVERY = 12
"""Operations between two looks at all segments and blocks."""
STATS = ("allocated", "active", "reserved", "inactive_split", "requested")
POOLS = ("all", "small_pool", "large_pool")
COUNTS = ("num_alloc_retries", "num_ooms", "num_sync_all_streams", "num_device_alloc", "num_device_free")  # fmt: skip


@dataclass(frozen=True)
class Setting:
    """What sequences of one name have in common.

    `variants` are texts for PYTORCH_CUDA_ALLOC_CONF. `fraction` is given to
    `set_per_process_memory_fraction`. `weights`: how often an operation comes.
    """

    variants: tuple[str, ...] = ("",)
    device: str = "24GiB,8.9"
    fraction: float | None = None
    streams: int = 1
    pools: int = 0
    largest: int = 200 * MIB
    weights: tuple[tuple[str, int], ...] = (("alloc", 55), ("free", 42), ("empty", 2))


_STREAMS = (("alloc", 50), ("free", 35), ("use", 14), ("sync", 5), ("empty", 2))
_POOLS = (("alloc", 50), ("free", 38), ("enter", 6), ("leave", 6), ("drop", 2), ("empty", 2))  # fmt: skip
_ALL = (("alloc", 50), ("free", 33), ("use", 8), ("sync", 3), ("enter", 4), ("leave", 4), ("drop", 1), ("empty", 2))  # fmt: skip

SETTINGS = {
    "default": Setting(),
    "split": Setting(
        variants=(
            "max_split_size_mb:21",
            "max_split_size_mb:64",
            "max_split_size_mb:128,max_non_split_rounding_mb:64",
        ),
        device="3GiB,8.9",
    ),
    "expandable": Setting(variants=("expandable_segments:True",)),
    "gc": Setting(
        variants=(
            "garbage_collection_threshold:0.4",
            "garbage_collection_threshold:0.8",
            "garbage_collection_threshold:0.6,max_split_size_mb:64",
        ),
        device="2GiB,8.9",
        fraction=0.9,
    ),
    "roundup": Setting(
        variants=(
            "roundup_power2_divisions:4",
            "roundup_power2_divisions:[64:8,256:4,1024:4,>:1]",
            "roundup_power2_divisions:2,expandable_segments:True",
        ),
    ),
    "streams": Setting(streams=3, weights=_STREAMS),
    "pools": Setting(pools=3, weights=_POOLS),
    "pressure": Setting(
        variants=("", "", "max_split_size_mb:64"),
        device="768MiB,8.9",
        streams=2,
        weights=_STREAMS,
    ),
    "pressure, expandable": Setting(
        variants=("expandable_segments:True",),
        device="768MiB,8.9",
        streams=2,
        weights=_STREAMS,
    ),
    "all at once": Setting(
        variants=("", "expandable_segments:True", "max_split_size_mb:64"),
        device="1GiB,8.9",
        fraction=0.8,
        streams=3,
        pools=2,
        weights=_ALL,
    ),
}


@dataclass
class Performed:
    """One sequence and what the real allocator answered.

    `operations` are tuples: `alloc id bytes stream`, `free id`, `use id stream`,
    `sync stream`, `empty`, `enter pool`, `leave`, `drop pool`. `addresses` has one for
    each `alloc`, None where it failed. `points` are `(number of operations, segments)`,
    as `plain` gives them; `trace` are `(action, address, bytes, stream)`.
    """

    torch: str
    text: str
    operations: list[tuple[Any, ...]]
    total_bytes: int
    free_bytes: int
    fraction: float | None
    addresses: list[int | None] = field(default_factory=list)
    points: list[tuple[int, list[Any]]] = field(default_factory=list)
    trace: list[tuple[str, int, int, int]] = field(default_factory=list)
    stats: dict[str, int] = field(default_factory=dict)


def sequence(setting: Setting, seed: int, text: str) -> list[tuple[Any, ...]]:
    """The operations of one seed; what is freed or used may have failed before.

    With expandable segments (`text`) a pool is dropped once nothing of it lives. torch
    counts a pool's mappings where they are made and where they are taken away, and one
    of 80 MiB that goes in two parts is one too few in the end: it fails at an assertion
    (`cudaMalloc_count > 0`) or touches a pool that it has deleted. A live block of one
    page is enough (`expandable_segments:True`, torch 2.13):

        pool, side = torch.cuda.MemPool(), torch.cuda.Stream()
        with torch.cuda.use_mem_pool(pool):
            with torch.cuda.stream(side):
                other = torch.empty(2 << 20, dtype=torch.uint8, device="cuda")
            first = torch.empty(61 << 20, dtype=torch.uint8, device="cuda")
            last = torch.empty(2 << 20, dtype=torch.uint8, device="cuda")
        del first, pool
        del other, last
        torch.cuda.empty_cache()
    """
    expandable = "expandable_segments:True" in text
    rng = random.Random(seed)
    names = [name for name, _ in setting.weights]
    weights = [weight for _, weight in setting.weights]
    live: list[int] = []
    pool_of: dict[int, int | None] = {}
    entered: int | None = None
    dropped: set[int] = set()
    operations: list[tuple[Any, ...]] = []
    for number in range(rng.randint(40, 240)):
        name = rng.choices(names, weights)[0]
        if name == "alloc":
            size = _size(rng, setting.largest)
            operations.append((name, number, size, rng.randrange(setting.streams)))
            live.append(number)
            pool_of[number] = entered
        elif name == "free" and live:
            # Old and young ones: what is freed in the order it came leaves few holes.
            at = rng.choice((-1, 0, rng.randrange(len(live)), rng.randrange(len(live))))
            operations.append((name, live.pop(at)))
        elif name == "use" and live:
            stream = rng.randrange(setting.streams)
            operations.append((name, rng.choice(live), stream))
        elif name == "sync":
            operations.append((name, rng.randrange(setting.streams)))
        elif name == "empty" and entered is None:
            operations.append((name,))
        elif name == "enter" and entered is None:
            entered = rng.randrange(1, setting.pools + 1)
            if entered in dropped:
                entered = None
                continue
            operations.append((name, entered))
        elif name == "leave" and entered is not None:
            operations.append((name, entered))
            entered = None
        elif name == "drop" and entered is None:
            pool = rng.randrange(1, setting.pools + 1)
            used = pool in map(pool_of.get, live)
            if pool not in dropped and not (expandable and used):
                dropped.add(pool)
                operations.append((name, pool))
    if entered is not None:
        operations.append(("leave", entered))
    return operations


def _size(rng: random.Random, largest: int) -> int:
    """Around every border the allocator draws, and between them."""
    kind = rng.random()
    if kind < 0.3:
        return rng.randint(1, 8 * KIB)
    if kind < 0.45:
        return rng.randint(1, MIB)
    if kind < 0.55:
        return rng.choice((1, 2, 10, 20)) * MIB + rng.randint(-600, 600)
    if kind < 0.75:
        return rng.randint(MIB, 10 * MIB)
    if kind < 0.95:
        return rng.randint(10 * MIB, largest // 2)
    return rng.randint(largest // 2, largest)


def plain(segments: list[dict[str, Any]], streams: list[int], pools: list[Any]) -> list[Any]:  # fmt: skip
    """Segments by address: place and kind, then each block's size, state and request."""
    return [
        (
            segment["address"],
            segment["total_size"],
            streams.index(segment["stream"]),
            segment["segment_type"],
            pools.index(tuple(segment["segment_pool_id"])),
            segment["is_expandable"],
            [
                (block["size"], block["state"], block["requested_size"])
                for block in segment["blocks"]
            ],
        )
        for segment in sorted(segments, key=lambda segment: segment["address"])
    ]


class Performer:
    """Performs sequences with torch's allocator, one after the other."""

    def __init__(self, setting: Setting, text: str) -> None:
        import torch

        self.torch = torch
        self.setting = setting
        self.text = text
        self.streams = [torch.cuda.Stream() for _ in range(setting.streams)]
        if setting.fraction is not None:
            torch.cuda.set_per_process_memory_fraction(setting.fraction)

    def perform(self, seed: int) -> Performed:
        """One sequence; afterwards nothing is reserved."""
        cuda = self.torch.cuda
        cuda.memory._record_memory_history(context=None, max_entries=100_000)
        cuda.reset_peak_memory_stats()
        cuda.reset_accumulated_memory_stats()
        free, total = cuda.mem_get_info()
        done = Performed(
            self.torch.__version__,
            self.text,
            sequence(self.setting, seed, self.text),
            total,
            free,
            self.setting.fraction,
        )
        pools: list[Any] = [None]
        if self.setting.pools:
            pools += [cuda.MemPool() for _ in range(self.setting.pools)]
        ids = [(0, 0), *(tuple(pool.id) for pool in pools[1:])]
        handles = [stream.cuda_stream for stream in self.streams]
        live: dict[int, Any] = {}
        with contextlib.ExitStack() as stack:
            for number, operation in enumerate(done.operations, 1):
                self._one(operation, live, pools, stack, done)
                if number % POINT_EVERY == 0 or number == len(done.operations):
                    segments = plain(cuda.memory_snapshot(), handles, ids)
                    done.points.append((number, segments))
        stats = cuda.memory_stats()
        for name in STATS:
            for pool in POOLS:
                for when in ("current", "peak"):
                    key = f"{name}_bytes.{pool}.{when}"
                    done.stats[key] = stats[key]
        done.stats.update({name: stats[name] for name in COUNTS})
        events = self.torch.cuda.memory._snapshot()["device_traces"][0]
        done.trace = [
            (e["action"], e.get("addr", e.get("device_free", 0)), e["size"], handles.index(e["stream"]))
            for e in events
            if e["action"] != "snapshot"
        ]  # fmt: skip
        live.clear()
        pools.clear()
        cuda.synchronize()
        cuda.empty_cache()
        cuda.memory._record_memory_history(enabled=None)
        if cuda.memory_reserved():
            raise AssertionError(f"{cuda.memory_reserved()} bytes stay reserved")
        return done

    def _one(
        self,
        operation: tuple[Any, ...],
        live: dict[int, Any],
        pools: list[Any],
        stack: contextlib.ExitStack,
        done: Performed,
    ) -> None:
        torch = self.torch
        name, *rest = operation
        if name == "alloc":
            number, size, stream = rest
            try:
                with torch.cuda.stream(self.streams[stream]):
                    block = torch.empty(size, dtype=torch.uint8, device="cuda")
            except torch.OutOfMemoryError:
                done.addresses.append(None)
            else:
                live[number] = block
                done.addresses.append(block.data_ptr())
        elif name == "free":
            live.pop(rest[0], None)
        elif name == "use" and rest[0] in live:
            live[rest[0]].record_stream(self.streams[rest[1]])
        elif name == "sync":
            self.streams[rest[0]].synchronize()
        elif name == "empty":
            torch.cuda.empty_cache()
        elif name == "enter":
            stack.enter_context(torch.cuda.use_mem_pool(pools[rest[0]]))
        elif name == "leave":
            stack.close()
        elif name == "drop":
            pools[rest[0]] = None


def read(path: Path) -> Iterator[Performed]:
    """What a process of this module wrote."""
    with path.open("rb") as file, contextlib.suppress(EOFError):
        while True:
            yield Performed(**pickle.load(file))


def main() -> None:
    out, name, variant, first, count = sys.argv[1:]
    setting = SETTINGS[name]
    performer = Performer(setting, setting.variants[int(variant)])
    with Path(out).open("wb") as file:
        for seed in range(int(first), int(first) + int(count)):
            # Of plain values: here the class is that of `__main__`.
            pickle.dump(vars(performer.perform(seed)), file, protocol=4)


if __name__ == "__main__":
    main()
