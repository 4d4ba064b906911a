"""From the tables of a `history` capture to a `Snapshot`, whatever a file held.

What cannot be is set right and counted; what contradicts itself so that nothing can be
made of it is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tb_plugin.analysis.allocator.lifetimes import ACTIONS, ANNOTATE, OOM
from tb_plugin.analysis.arrays import NOTHING, constant, grouped, place_of
from tb_plugin.analysis.categories.frames import without_own
from tb_plugin.analysis.snapshots.columns import (
    MAX_LINE,
    Table,
    texts_of,
    unread_keys,
)
from tb_plugin.analysis.snapshots.extras import (
    annotations_of,
    block_histories,
    settings_of,
    tensors_of,
)
from tb_plugin.analysis.snapshots.snapshot import (
    DEFAULT_POOL,
    HOST,
    INACTIVE,
    MAX_BYTES,
    PENDING_FREE,
    STATES,
    BlockTable,
    DeviceSnapshot,
    Events,
    Segments,
    Snapshot,
    Stacks,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tb_plugin.analysis.arrays import Flags, Ints


MAX_DEVICES: Final = 256
_MAX_ADDRESS: Final = 2**63 - 1
"""As signed 64 bits: nothing reaches beyond."""


class SnapshotError(ValueError):
    """The tables are not those of a snapshot; says what is missing or wrong."""


def snapshot_of(tables: Mapping[str, Mapping[str, Any]]) -> Snapshot:
    """What the tables of a `history` capture say.

    Raises:
        SnapshotError: a table is missing, or is not what it has to be.
    """
    try:
        return _Maker(tables).snapshot()
    except (KeyError, ValueError, TypeError, IndexError) as error:
        if isinstance(error, SnapshotError):
            raise
        raise SnapshotError(f"the tables of the snapshot contradict: {error}") from None


class _Maker:
    def __init__(self, tables: Mapping[str, Mapping[str, Any]]) -> None:
        self._tables = tables
        self._oddities: dict[str, int] = {}
        self._texts = list(texts_of(tables, "strings", "text"))
        self._streams: dict[int, int] = {0: 0}
        self._pools: dict[tuple[int, int], int] = {DEFAULT_POOL: 0}
        self._histories = block_histories(tables, self._texts)

    def snapshot(self) -> Snapshot:
        stacks = without_own(self._with_histories(self._stacks()))
        num_stacks = len(stacks)
        events, trace = self._events("events", num_stacks)
        segments, device = self._segments("segments", num_stacks)
        blocks = self._blocks("blocks", segments, num_stacks)
        numbers = np.union1d(grouped(trace)[0], grouped(device)[0]).tolist()
        if len(numbers) > MAX_DEVICES:
            raise SnapshotError(f"it names {len(numbers)} devices")
        devices = tuple(
            _of_device(int(number), events, trace, segments, device, blocks)
            for number in numbers
        )
        return Snapshot(
            devices=(*devices, *self._pinned_host_memory(num_stacks)),
            stacks=stacks,
            texts=tuple(self._texts),
            streams=tuple(self._streams),
            pools=tuple(self._pools),
            annotations=annotations_of(self._tables, self._texts),
            tensors=tensors_of(self._tables),
            settings=settings_of(self._tables),
            oddities=self._oddities,
            unread=unread_keys(self._tables),
        )

    def _pinned_host_memory(self, num_stacks: int) -> tuple[DeviceSnapshot, ...]:
        """What torch's allocator of pinned memory did, as a device; none where it is off.

        torch gives the segments only while it records them, so that their absence does
        not say that nothing is pinned.
        """
        events, _ = self._events("host_events", num_stacks)
        segments, _ = self._segments("host_segments", num_stacks)
        blocks = self._blocks("host_blocks", segments, num_stacks)
        if not len(events) and not len(segments):
            return ()
        trace, device = (constant(HOST, len(rows)) for rows in (events, segments))
        return (_of_device(HOST, events, trace, segments, device, blocks),)

    def _stacks(self) -> Stacks:
        frames = Table("frames", self._tables, self._texts)
        num_frames = Table("stacks", self._tables, self._texts).ints("num_frames", 0)
        frame = Table("stack_frames", self._tables, self._texts).ints("frame", 0)
        start = np.concatenate([[0], np.cumsum(num_frames, dtype=np.int64)])
        if int(start[-1]) != len(frame) or (len(num_frames) and num_frames.min() < 0):
            raise SnapshotError("the stacks' lengths and their frames differ")
        if len(frame) and not (frame.min() >= 0 and frame.max() < len(frames)):
            raise SnapshotError("a stack refers to a frame that is not there")
        return Stacks(
            name=frames.texts("name"),
            filename=frames.texts("filename"),
            line=np.clip(frames.ints("line", 0), 0, MAX_LINE),
            start=start,
            frame=frame,
        )

    def _with_histories(self, stacks: Stacks) -> Stacks:
        """With the stacks of blocks as torch 2.0 wrote them, behind the others."""
        if self._histories is None:
            return stacks
        added = self._histories.frames
        flat = [frame for frames in added for frame in frames]
        first = len(stacks.name)
        lengths = np.array([len(frames) for frames in added], np.int64)
        places = np.arange(first, first + len(flat))
        return Stacks(
            name=(*stacks.name, *(name for name, _, _ in flat)),
            filename=(*stacks.filename, *(filename for _, filename, _ in flat)),
            line=np.append(stacks.line, [line for _, _, line in flat]),
            start=np.append(stacks.start, int(stacks.start[-1]) + np.cumsum(lengths)),
            frame=np.append(stacks.frame, places),
        )

    def _events(self, name: str, num_stacks: int) -> tuple[Events, Ints]:
        table = Table(name, self._tables, self._texts)
        action = table.coded("action", ACTIONS)
        self._note("actions that are not known", action < 0)
        free = constant(NOTHING, len(table))
        if "device_free" in table:
            free = np.where(action == OOM, table.ints("device_free", NOTHING), NOTHING)
        metadata = self._meaning(table, "user_metadata")
        annotates = action == ANNOTATE
        events = Events(
            action=action,
            addr=table.ints("addr", 0),
            size=self._sizes(table, "size", "addr"),
            stream=self._stream_rows(table),
            time_us=table.ints("time_us", 0) if "time_us" in table else None,
            stack=self._rows(table, "frames", num_stacks),
            tag=np.where(annotates, NOTHING, metadata) if annotates.any() else metadata,
            annotation=np.where(annotates, metadata, NOTHING)
            if annotates.any()
            else constant(NOTHING, len(table)),
            compile_context=self._meaning(table, "compile_context"),
            pool=self._pool_rows(table, "pool_id"),
            device_free=free,
        )
        trace = table.narrow("device", 0)
        if len(trace) and int(trace.min()) < 0:
            raise SnapshotError("events of a device below 0")
        if events.time_us is not None and len(events) > 1:
            back = events.time_us[1:] < events.time_us[:-1]
            if back.any():
                back &= trace[1:] == trace[:-1]
            self._note("times that go back", back)
        return events, trace

    def _segments(self, name: str, num_stacks: int) -> tuple[Segments, Ints]:
        table = Table(name, self._tables, self._texts)
        kind = table.coded("segment_type", ("small", "large"))
        segments = Segments(
            address=table.ints("address", 0),
            total_size=self._sizes(table, "total_size", "address"),
            stream=self._stream_rows(table),
            pool=np.maximum(self._pool_rows(table, "segment_pool_id"), 0),
            is_large=kind == 1,
            is_expandable=table.ints("is_expandable", 0) == 1,
            stack=self._rows(table, "frames", num_stacks),
        )
        return segments, np.maximum(table.ints("device", 0), 0)

    def _blocks(self, name: str, segments: Segments, num_stacks: int) -> BlockTable:
        table = Table(name, self._tables, self._texts)
        segment = table.ints("segment", 0)
        if len(segment) and not (segment.min() >= 0 and segment.max() < len(segments)):
            raise SnapshotError("a block refers to a segment that is not there")
        size = self._sizes(table, "size", "address")
        state = table.coded("state", STATES)
        awaiting = table.coded("state", ("active_awaiting_free",)) == 0
        state = np.where(awaiting, PENDING_FREE, np.maximum(state, INACTIVE))
        address = table.ints("address", NOTHING) if "address" in table else None
        if address is None:  # torch 2.0 wrote them in order, without addresses
            below = np.cumsum(size) - size
            first = np.searchsorted(segment, np.arange(len(segments)))
            base = np.append(below, 0)[first]
            address = segments.address[segment] + below - base[segment]
        requested = table.ints("requested_size", NOTHING)
        stack = self._rows(table, "frames", num_stacks)
        told = self._histories if name == "blocks" else None
        if told is not None:
            first_stack = num_stacks - len(told.frames)
            stack = np.where(told.stack >= 0, told.stack + first_stack, stack)
            requested = np.where(requested < 0, told.requested_size, requested)
        requested = np.where(requested < 0, size, requested)
        return BlockTable(
            segment=segment,
            address=address,
            size=size,
            requested_size=np.minimum(requested, size),
            state=state,
            stack=stack,
        )

    def _sizes(self, table: Table, name: str, address: str) -> Ints:
        """Bytes; 0 of what no memory has, or what reaches beyond all addresses."""
        values = table.ints(name, 0)
        begins = table.ints(address, 0)
        reaches = len(begins) and int(begins.max()) > _MAX_ADDRESS - MAX_BYTES
        usual = not len(values) or 0 <= values.min() <= values.max() <= MAX_BYTES
        if usual and not reaches:
            return values
        wrong = (values < 0) | (values > MAX_BYTES)
        if reaches:
            wrong |= begins > _MAX_ADDRESS - values
        self._note("sizes that no memory has", wrong)
        return np.where(wrong, 0, values) if wrong.any() else values

    def _rows(self, table: Table, name: str, num: int) -> Ints:
        values, num_wrong = table.rows(name, num)
        self._count("stacks that are not there", num_wrong)
        return values

    def _meaning(self, table: Table, name: str) -> Ints:
        """Rows of texts that say something: not empty, not `N/A`."""
        values = table.text_rows(name)
        if table.kind(name) == "value":
            values = self._as_texts(table, name)
        means = np.arange(len(self._texts) + 1, dtype=np.int32)
        means[-1] = NOTHING  # where NOTHING looks
        empty = [row for row, text in enumerate(self._texts) if text in ("", "N/A")]
        means[empty] = NOTHING
        rows, place = grouped(values)
        if (means[rows] == NOTHING).all():
            return constant(NOTHING, len(values))
        return means[rows][place]

    def _as_texts(self, table: Table, name: str) -> Ints:
        """Rows of texts for values of any kind: a dict is written `key=value, ...`."""
        rows, values = table.values(name)
        place = {text: row for row, text in enumerate(self._texts)}
        texts = [_readable(value) for value in values]
        self._texts += dict.fromkeys(text for text in texts if text not in place)
        place.update((text, row) for row, text in enumerate(self._texts))
        return np.array([*(place[text] for text in texts), NOTHING], np.int64)[rows]

    def _stream_rows(self, table: Table) -> Ints:
        return _numbered(table.ints("stream", 0), self._streams)

    def _pool_rows(self, table: Table, name: str) -> Ints:
        first, second = table.pair(name)
        if first is None or second is None:
            return constant(NOTHING, len(table))
        (of_first, a), (of_second, b) = grouped(first), grouped(second)
        width = max(1, len(of_second))
        if len(of_first) == len(of_second) == 1:
            pairs, place = np.zeros(1, np.int64), constant(0, len(table))
        else:
            pairs, place = grouped(a.astype(np.int64) * width + b)
        ids = zip(of_first[pairs // width], of_second[pairs % width], strict=True)
        rows = [
            self._pools.setdefault((int(one), int(other)), len(self._pools))
            if one >= 0 and other >= 0
            else NOTHING
            for one, other in ids
        ]
        return _of_rows(rows, place)

    def _note(self, what: str, wrong: Flags) -> None:
        self._count(what, int(np.count_nonzero(wrong)))

    def _count(self, what: str, count: int) -> None:
        if count:
            self._oddities[what] = self._oddities.get(what, 0) + count


def _readable(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return ", ".join(f"{key}={entry}" for key, entry in value.items())
    return "" if value is None else str(value)


def _numbered(values: Ints, known: dict[int, int]) -> Ints:
    found, place = grouped(values)
    rows = [known.setdefault(int(value), len(known)) for value in found.tolist()]
    return _of_rows(rows, place)


def _of_rows(rows: list[int], place: Ints) -> Ints:
    """The row at each place; where there is but one it takes no memory."""
    if len(rows) == 1:
        return constant(rows[0], len(place))
    return np.array(rows, np.int32)[place]


def _of_device(
    number: int,
    events: Events,
    trace: Ints,
    segments: Segments,
    device: Ints,
    blocks: BlockTable,
) -> DeviceSnapshot:
    rows = _span(trace, number)
    kept = np.flatnonzero(device == number)
    kept = kept[np.argsort(segments.address[kept].view(np.uint64), kind="stable")]
    segment = place_of(kept, len(segments))[blocks.segment]
    own = np.flatnonzero(segment >= 0)
    address = blocks.address[own].astype(np.int64).view(np.uint64)
    own = own[np.lexsort((address, segment[own]))]
    return DeviceSnapshot(
        device=number,
        events=events.take(rows),
        segments=segments.take(kept),
        blocks=blocks.take(own, segment=segment[own]),
    )


def _span(trace: Ints, number: int) -> slice | Ints:
    """The rows of one device: one piece where the lists follow each other."""
    is_own = trace == number
    num = int(np.count_nonzero(is_own))
    if not num:
        return slice(0, 0)
    first, stop = int(np.argmax(is_own)), len(is_own) - int(np.argmax(is_own[::-1]))
    return slice(first, stop) if stop - first == num else np.flatnonzero(is_own)
