"""The allocator model, given the operations of a `Performed`, and where it differs.

The model gets the addresses that the device gave: which of two free blocks of one size
comes first is decided by them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.simulate.allocator.allocator import (
    CachingAllocator,
    SimulatedOutOfMemoryError,
)
from tests.simulate.allocator.device import DeviceMemory
from tests.simulate.allocator.settings import (
    LARGE_SEGMENT_BYTES,
    SMALL_SEGMENT_BYTES,
    parse_settings,
)
from tests.simulate.allocator.stats import SMALL
from tests.simulate.history.history import ACTIONS, History
from tests.virtual.random_sequences import POINT_EVERY, POOLS, STATS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.simulate.allocator.blocks import Block
    from tests.virtual.random_sequences import Performed

OLDEST_FIRST_SINCE = (2, 13)
"""Here the older segment is taken of two free blocks of one size; in 2.9 the lower address,
and 2.12 does neither always."""
POOLS_SINCE = (2, 13)
"""Before, memory pools were served much as during the capture of a CUDA graph."""


class RecordedDevice(DeviceMemory):
    """Gives out addresses in the order in which a device gave them."""

    __slots__ = ("_reservations", "_segments", "asking")

    def __init__(self, done: Performed) -> None:
        self.asking: tuple[int | None, int] = (None, 0)
        """Pool and stream of the operation that is performed."""
        super().__init__(
            done.total_bytes,
            non_torch_bytes=done.total_bytes - done.free_bytes,
            memory_fraction=done.fraction,
        )
        self._segments = [
            (address, size)
            for action, address, size, _ in done.trace
            if action == "segment_alloc"
        ]
        self._segments.reverse()
        self._reservations = _reservations(done)

    def allocate(self, num_bytes: int) -> int | None:
        if num_bytes > self.free_bytes:
            return None
        if not self._segments or self._segments[-1][1] != num_bytes:
            raise DiffersError(
                f"the model opens a segment of {num_bytes} bytes, torch {self._segments[-1:]}"
            )
        self.reserved_bytes += num_bytes
        self.num_device_alloc += 1
        return self._segments.pop()[0]

    def free(self, address: int, num_bytes: int) -> None:
        self.reserved_bytes -= num_bytes
        self.num_device_free += 1

    def reserve_addresses(self, num_bytes: int) -> int:
        known = self._reservations.get((*self.asking, num_bytes))
        # Where memory never sufficed for a first mapping, any addresses will do.
        return known.pop(0) if known else super().reserve_addresses(num_bytes)


def _reservations(done: Performed) -> dict[tuple[int | None, int, int], list[int]]:
    """Where expandable segments began: where memory was mapped in none that lived.

    By pool, stream and size, each of which has one at a time: the first mapping may come
    long after the addresses were reserved, where memory did not suffice at first.
    """
    found: dict[tuple[int | None, int, int], list[int]] = {}
    living: dict[int, list[int]] = {}  # start: end, bytes mapped
    pools = _pools(done)
    pool = next(pools, None)
    for action, address, size, stream in done.trace:
        if action in ("alloc", "oom"):
            pool = next(pools, None)
        if action not in ("segment_map", "segment_unmap"):
            continue
        start = next((s for s, (end, _) in living.items() if s <= address < end), None)
        if start is None:
            start = address
            page = SMALL_SEGMENT_BYTES if size < LARGE_SEGMENT_BYTES else LARGE_SEGMENT_BYTES  # fmt: skip
            room = -(-done.total_bytes * 9 // 8 // page) * page
            living[start] = [start + room, 0]
            found.setdefault((pool, stream, room), []).append(start)
        living[start][1] += size if action == "segment_map" else -size
        if not living[start][1]:
            del living[start]
    return found


def _pools(done: Performed) -> Iterator[int | None]:
    """Of each allocation, failed ones too."""
    entered: int | None = None
    for name, *rest in done.operations:
        if name in ("enter", "leave"):
            entered = rest[0] if name == "enter" else None
        elif name == "alloc":
            yield entered


class OrderedAllocator(CachingAllocator):
    """Frees what several streams have finished in the order of these streams.

    torch goes through a hash table of streams, whose order is that of their handles.
    """

    def __init__(self, *given: Any, order: Sequence[int], **named: Any) -> None:
        super().__init__(*given, **named)
        self._order = order

    def _complete(self, finished: list[tuple[int, Block]]) -> None:
        super()._complete(sorted(finished, key=lambda one: self._order.index(one[0])))


class DiffersError(AssertionError):
    """The model left the allocator's way: what follows cannot be compared."""


@dataclass
class Compared:
    """Where model and allocator were not the same; empty lists are well."""

    blocks: list[str] = field(default_factory=list)
    requested: list[str] = field(default_factory=list)
    """The same but for what an inactive block was last asked for."""
    stats: list[str] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    num_points: int = 0
    num_blocks: int = 0
    num_operations: int = 0

    @property
    def same(self) -> bool:
        return not (self.blocks or self.requested or self.stats or self.events)


def compared(done: Performed, order: Sequence[int]) -> Compared:
    """Performs the operations again with the model; compares at every point.

    `order`: of the streams, in torch's table of what they have still to finish.
    """
    found = Compared()
    history = History()
    device = RecordedDevice(done)
    model = OrderedAllocator(
        done.free_bytes,
        parse_settings(done.text),
        device=device,
        history=history,
        oldest_first=_version(done) >= OLDEST_FIRST_SINCE,
        order=order,
    )
    live: dict[int, Block] = {}
    addresses = iter(done.addresses)
    points = iter(done.points)
    try:
        for number, operation in enumerate(done.operations, 1):
            found.num_operations += 1
            name, *rest = operation
            if name in ("enter", "leave"):
                device.asking = (rest[0] if name == "enter" else None, 0)
            elif name == "alloc":
                device.asking = (device.asking[0], rest[2])
            _perform(model, done, operation, live, addresses)
            if number % POINT_EVERY == 0 or number == len(done.operations):
                _, real = next(points)
                found.num_points += 1
                found.num_blocks += sum(len(segment[-1]) for segment in real)
                if _same(real, _plain(model), f"after {number} operations", found):
                    break
    except DiffersError as error:
        found.blocks.append(f"operation {number} {operation}: {error}")
        return found
    _stats(done, model, found)
    _events(done, history, found)
    return found


def _perform(model: CachingAllocator, done: Performed, operation: tuple[Any, ...], live: dict[int, Block], addresses: Any) -> None:  # fmt: skip
    name, *rest = operation
    if name == "alloc":
        number, size, stream = rest
        real = next(addresses)
        try:
            live[number] = block = model.allocate(size, stream)
            ours: int | None = block.address
        except SimulatedOutOfMemoryError:
            ours = None
        if ours != real:
            raise DiffersError(f"at {ours and hex(ours)}, not {real and hex(real)}")
    elif name == "free" and rest[0] in live:
        model.free(live.pop(rest[0]))
    elif name == "use" and rest[0] in live:
        model.record_stream(live[rest[0]], rest[1])
    elif name == "sync":
        model.synchronize(rest[0])
    elif name == "empty":
        model.empty_cache()
    elif name == "enter":
        model.use_pool((0, rest[0]), capturing=_version(done) < POOLS_SINCE)
    elif name == "leave":
        model.use_pool(None)
    elif name == "drop":
        model.release_pool((0, rest[0]))
        model.empty_cache((0, rest[0]))


def _version(done: Performed) -> tuple[int, int]:
    major, minor = done.torch.split(".")[:2]
    return int(major), int(minor)


def _plain(model: CachingAllocator) -> list[Any]:
    """The model's segments as `random_sequences.plain` has torch's."""
    return sorted(
        (
            run[0].address,
            sum(block.size_bytes for block in run),
            segment.stream,
            "small" if segment.pool == SMALL else "large",
            segment.arena.pool_id[1],
            bool(segment.page_bytes),
            [(b.size_bytes, _state(b), b.requested_bytes) for b in run],
        )
        for segment in model.segments.values()
        for run in segment.mapped_runs()
    )


def _state(block: Block) -> str:
    if block.allocated:
        return "active_allocated"
    return "inactive" if block.is_free else "active_pending_free"


def _same(real: list[Any], ours: list[Any], where: str, found: Compared) -> bool:
    """Notes a difference; True where going on makes no sense."""
    if real == ours:
        return False
    if [_bare(segment) for segment in real] == [_bare(segment) for segment in ours]:
        wrong = next(
            (a, b)
            for x, y in zip(real, ours, strict=True)
            for a, b in zip(x[-1], y[-1], strict=True)
            if a != b
        )
        found.requested.append(f"{where}: {wrong}")
        return False
    theirs = [segment for segment in real if segment not in ours][:2]
    mine = [segment for segment in ours if segment not in real][:2]
    found.blocks.append(f"{where}: torch {theirs}, model {mine}")
    return True


def _bare(segment: Any) -> Any:
    *place, blocks = segment
    return place, [(size, state, requested if state != "inactive" else 0) for size, state, requested in blocks]  # fmt: skip


def _stats(done: Performed, model: CachingAllocator, found: Compared) -> None:
    ours: dict[str, int] = {}
    for place, pool in enumerate(POOLS):
        for stat, name in enumerate(STATS):
            index = place * len(STATS) + stat
            ours[f"{name}_bytes.{pool}.current"] = model.stats.current[index]
            ours[f"{name}_bytes.{pool}.peak"] = model.stats.peak[index]
    ours["num_alloc_retries"] = model.num_alloc_retries
    ours["num_ooms"] = model.num_ooms
    ours["num_sync_all_streams"] = model.num_sync_all_streams
    ours["num_device_alloc"] = model.device.num_device_alloc
    ours["num_device_free"] = model.device.num_device_free
    for key, value in done.stats.items():
        if ours[key] != value:
            found.stats.append(f"{key}: {value}, model {ours[key]}")


def _events(done: Performed, history: History, found: Compared) -> None:
    ours = [(ACTIONS[row[0]], row[1], row[2], row[3]) for row in history.rows()]
    real, ours = _in_order(done.trace), _in_order(ours)
    for number, (a, b) in enumerate(zip(real, ours, strict=False)):
        if a != b:
            found.events.append(f"event {number}: {a}, model {b}")
            return
    if len(real) != len(ours):
        found.events.append(f"{len(real)} events, model {len(ours)}")


def _in_order(events: list[tuple[str, int, int, int]]) -> list[tuple[str, int, int, int]]:  # fmt: skip
    """What one call frees, by address: torch goes through a hash table there."""
    ordered: list[tuple[str, int, int, int]] = []
    run: list[tuple[str, int, int, int]] = []
    for event in events:
        if run and event[0] != run[-1][0]:
            ordered += sorted(run)
            run = []
        if event[0] in ("free_completed", "segment_free", "segment_unmap"):
            run.append(event)
        else:
            ordered += [*sorted(run), event]
            run = []
    return ordered + sorted(run)
