"""From the tables of a `history` capture to a `Snapshot`, whatever a file held.

What cannot be is set right, or left out, and counted. What no allocator can have held, so
that figures of it would be false, is refused: blocks below zero, memory that stands twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from memboard.collector.format.sizes import counted
from memboard.tb_plugin.analysis.allocator.lifetimes import (
    ACTIONS,
    ANNOTATE,
    OOM,
    SEGMENT_UNMAP,
)
from memboard.tb_plugin.analysis.arrays import NOTHING, constant, grouped, place_of
from memboard.tb_plugin.analysis.categories.frames import without_own
from memboard.tb_plugin.analysis.snapshots.by_device import of_device
from memboard.tb_plugin.analysis.snapshots.columns import (
    MAX_LINE,
    Table,
    texts_of,
    unread_keys,
)
from memboard.tb_plugin.analysis.snapshots.extras import (
    annotations_of,
    block_histories,
    settings_of,
    tensors_of,
)
from memboard.tb_plugin.analysis.snapshots.numbering import Numbering
from memboard.tb_plugin.analysis.snapshots.snapshot import (
    HOST,
    INACTIVE,
    MAX_BYTES,
    PENDING_FREE,
    STATES,
    BlockTable,
    Events,
    Segments,
    Snapshot,
    SnapshotError,
    Stacks,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from memboard.tb_plugin.analysis.arrays import Flags, Ints
    from memboard.tb_plugin.analysis.snapshots.snapshot import DeviceSnapshot


MAX_DEVICES: Final = 256
_NO_TIME: Final = -(2**62)
_MAX_ADDRESS: Final = 2**63 - 1
"""As signed 64 bits: nothing reaches beyond."""


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
        self._left_out: dict[str, int] = {}
        self._texts = list(texts_of(tables, "strings", "text"))
        self._numbering = Numbering(self._texts, self._note)
        self._histories = block_histories(tables, self._texts)

    def snapshot(self) -> Snapshot:
        self._check_shapes()
        stacks = without_own(self._with_histories(self._stacks()))
        num_stacks = len(stacks)
        events, trace = self._events("events", num_stacks)
        segments, device, blocks = self._state("segments", "blocks", num_stacks)
        numbers = np.union1d(grouped(trace)[0], grouped(device)[0]).tolist()
        if len(numbers) > MAX_DEVICES:
            raise SnapshotError(f"it names {counted(len(numbers), 'device')}")
        devices = tuple(
            of_device(int(number), events, trace, segments, device, blocks)
            for number in numbers
        )
        return Snapshot(
            devices=(*devices, *self._pinned_host_memory(num_stacks)),
            stacks=stacks,
            texts=tuple(self._texts),
            streams=tuple(self._numbering.streams),
            pools=tuple(self._numbering.pools),
            annotations=annotations_of(self._tables, self._texts, self._note),
            tensors=tensors_of(self._tables),
            settings=settings_of(self._tables, self._leave_out),
            oddities=self._oddities,
            left_out=self._left_out,
            unread=unread_keys(self._tables),
            has_segments=self._has_segments(),
        )

    def _check_shapes(self) -> None:
        """Refuse segments, and leave out what else is not lists of dicts."""
        keys = texts_of(self._tables, "root", "key")
        kinds = texts_of(self._tables, "root", "kind")
        for key, kind in zip(keys, kinds, strict=True):
            if kind == "value" and key in ("", "segments"):
                raise SnapshotError("its segments are no lists of blocks")
            if kind == "value" and key in ("device_traces", "host_segments"):
                self._leave_out(f"`{key}`, which is no list of lists", 1)
            if kind == "value" and key == "external_annotations":
                self._leave_out(f"`{key}`, which is no list of mappings", 1)

    def _has_segments(self) -> bool:
        """Whether the file says what there was at the end, be it nothing."""
        keys = texts_of(self._tables, "root", "key")
        return any(key in ("", "segments") for key in keys)

    def _pinned_host_memory(self, num_stacks: int) -> tuple[DeviceSnapshot, ...]:
        """What torch's allocator of pinned memory did, as a device; none where it is off.

        torch gives the segments only while it records them, so that their absence does
        not say that nothing is pinned.
        """
        events, _ = self._events("host_events", num_stacks)
        segments, _, blocks = self._state("host_segments", "host_blocks", num_stacks)
        if not len(events) and not len(segments):
            return ()
        trace, device = (constant(HOST, len(rows)) for rows in (events, segments))
        return (of_device(HOST, events, trace, segments, device, blocks),)

    def _state(
        self, table_name: str, name_of_blocks: str, num_stacks: int
    ) -> tuple[Segments, Ints, BlockTable]:
        """Segments, their devices and their blocks, without rows that are none."""
        segments, device, is_segment = self._segments(table_name, num_stacks)
        blocks, is_block = self._blocks(name_of_blocks, segments, num_stacks)
        if is_segment.all() and is_block.all():
            if table_name == "segments":
                self._note(
                    "segments that their blocks do not fill", _gaps(segments, blocks)
                )
            return segments, device, blocks
        kept = np.flatnonzero(is_segment)
        place = place_of(kept, len(segments))[blocks.segment]
        rows = np.flatnonzero(is_block & (place != NOTHING))
        taken = blocks.take(rows, segment=place[rows])
        return segments.take(kept), device[kept], taken

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

    def _events(self, table_name: str, num_stacks: int) -> tuple[Events, Ints]:
        table = Table(table_name, self._tables, self._texts)
        action = table.coded("action", ACTIONS)
        self._note("actions that are not known", action < 0)
        free = constant(NOTHING, len(table))
        if "device_free" in table:
            free = np.where(action == OOM, table.ints("device_free", NOTHING), NOTHING)
        metadata = self._numbering.text_rows(table, "user_metadata")
        annotates = action == ANNOTATE
        addr, has_no_addr = table.checked("addr", 0)
        size, has_no_size = self._sizes(table, "size", "addr")
        events = Events(
            action=action,
            addr=addr,
            size=size,
            stream=self._numbering.stream_rows(table),
            time_us=self._times(table),
            stack=self._rows(table, "frames", num_stacks),
            tag=np.where(annotates, NOTHING, metadata) if annotates.any() else metadata,
            annotation=np.where(annotates, metadata, NOTHING)
            if annotates.any()
            else constant(NOTHING, len(table)),
            compile_context=self._numbering.text_rows(table, "compile_context"),
            pool=self._numbering.pool_rows(table, "pool_id"),
            device_free=free,
        )
        trace = table.narrow("device", 0)
        if len(trace) and int(trace.min()) < 0:
            raise SnapshotError("events of a device below 0")
        wrong = has_no_addr | has_no_size
        # An allocation, a free and a segment are nothing without these two.
        is_memory = (action >= 0) & (action <= SEGMENT_UNMAP)
        wrong |= is_memory & (table.lacks("addr") | table.lacks("size"))
        if wrong.any():
            noun = "events whose address or size is no whole number"
            self._leave_out(noun, int(np.count_nonzero(wrong)))
            kept = np.flatnonzero(~wrong)
            events, trace = events.take(kept), trace[kept]
        if events.time_us is not None and len(events) > 1:
            back = events.time_us[1:] < events.time_us[:-1]
            if back.any():
                back &= trace[1:] == trace[:-1]
            self._note("times that go back", back)
        return events, trace

    def _times(self, table: Table) -> Ints | None:
        """By event; one without a time has that of the event before it."""
        time_us, wrong = table.checked("time_us", _NO_TIME)
        self._note("times that are no whole number", wrong)
        timed = np.flatnonzero(time_us != _NO_TIME)
        if "time_us" not in table or not len(timed):
            return None
        if len(timed) < len(time_us):
            before = np.searchsorted(timed, np.arange(len(time_us)), "right") - 1
            time_us = time_us[timed[np.maximum(before, 0)]]
        return time_us

    def _segments(
        self, table_name: str, num_stacks: int
    ) -> tuple[Segments, Ints, Flags]:
        """All rows, their devices, and which of them are segments."""
        table = Table(table_name, self._tables, self._texts)
        address, has_no_address = table.checked("address", 0)
        self._refuse_negative(table, "total_size")
        size, has_no_size = self._sizes(table, "total_size", "address")
        device, has_no_device = table.checked("device", 0)
        if table_name == "segments":  # others are of the host, and say a device below 0
            has_no_device |= (device < 0) | (device >= MAX_DEVICES)
        wrong = has_no_address | has_no_size | has_no_device
        wrong |= not ("address" in table and "total_size" in table)
        noun = "segments without a whole number for address, size or device"
        self._leave_out(noun, int(np.count_nonzero(wrong)))
        if len(wrong) and wrong.all():
            raise SnapshotError("none of its segments has an address and a size")
        kind = table.coded("segment_type", ("small", "large"))
        segments = Segments(
            address=address,
            total_size=size,
            stream=self._numbering.stream_rows(table),
            pool=np.maximum(self._numbering.pool_rows(table, "segment_pool_id"), 0),
            is_large=kind == 1,
            is_expandable=table.ints("is_expandable", 0) == 1,
            stack=self._rows(table, "frames", num_stacks),
        )
        return segments, device, ~wrong

    def _blocks(
        self, table_name: str, segments: Segments, num_stacks: int
    ) -> tuple[BlockTable, Flags]:
        """All rows, and which of them are blocks."""
        table = Table(table_name, self._tables, self._texts)
        segment = table.ints("segment", 0)
        if len(segment) and not (segment.min() >= 0 and segment.max() < len(segments)):
            raise SnapshotError("a block refers to a segment that is not there")
        self._refuse_negative(table, "size")
        self._refuse_negative(table, "requested_size")
        size, wrong = self._sizes(table, "size", "address")
        wrong |= "size" not in table
        state = table.coded("state", STATES)
        awaiting = table.coded("state", ("active_awaiting_free",)) == 0
        self._note("states of blocks that are not known", (state < 0) & ~awaiting)
        state = np.where(awaiting, PENDING_FREE, np.maximum(state, INACTIVE))
        address, has_no_address = table.checked("address", NOTHING)
        wrong |= has_no_address
        if "address" not in table:  # torch 2.0 wrote them in order, without addresses
            below = np.cumsum(size) - size
            first = np.searchsorted(segment, np.arange(len(segments)))
            base = np.append(below, 0)[first]
            address = segments.address[segment] + below - base[segment]
        requested, _ = table.checked("requested_size", NOTHING)
        stack = self._rows(table, "frames", num_stacks)
        told = self._histories if table_name == "blocks" else None
        if told is not None:
            first_stack = num_stacks - len(told.frames)
            stack = np.where(told.stack >= 0, told.stack + first_stack, stack)
            requested = np.where(requested < 0, told.requested_size, requested)
        requested = np.where(requested < 0, size, requested)
        noun = "blocks without a whole number for address or size"
        self._leave_out(noun, int(np.count_nonzero(wrong)))
        blocks = BlockTable(
            segment=segment,
            address=address,
            size=size,
            requested_size=np.minimum(requested, size),
            state=state,
            stack=stack,
        )
        return blocks, ~wrong

    def _sizes(
        self, table: Table, column_name: str, address: str
    ) -> tuple[Ints, Flags]:
        """Bytes, and which rows hold something else than a number.

        0 of what no memory has, or what reaches beyond all addresses.
        """
        values, is_other = table.checked(column_name, 0)
        begins, _ = table.checked(address, 0)
        reaches = len(begins) and int(begins.max()) > _MAX_ADDRESS - MAX_BYTES
        usual = not len(values) or 0 <= values.min() <= values.max() <= MAX_BYTES
        if usual and not reaches:
            return values, is_other
        wrong = (values < 0) | (values > MAX_BYTES)
        if reaches:
            wrong |= begins > _MAX_ADDRESS - values
        self._note("sizes that no memory has", wrong)
        return (np.where(wrong, 0, values) if wrong.any() else values), is_other

    def _refuse_negative(self, table: Table, column_name: str) -> None:
        if ((values := table.checked(column_name, 0)[0]) < 0).any():
            raise SnapshotError(f"`{column_name}` is below 0, such as {values.min()}")

    def _leave_out(self, noun: str, count: int) -> None:
        if count:
            self._left_out[noun] = count

    def _rows(self, table: Table, column_name: str, num: int) -> Ints:
        values, num_wrong = table.rows(column_name, num)
        self._count("stacks that are not there", num_wrong)
        self._note(
            "stacks that are no lists of frames", table.is_other(column_name, "stack")
        )
        return values

    def _note(self, noun: str, wrong: Flags) -> None:
        self._count(noun, int(np.count_nonzero(wrong)))

    def _count(self, noun: str, count: int) -> None:
        if count:
            self._oddities[noun] = self._oddities.get(noun, 0) + count


def _gaps(segments: Segments, blocks: BlockTable) -> Flags:
    """Which segments have more or fewer bytes than their blocks."""
    filled = np.zeros(len(segments), np.int64)
    np.add.at(filled, blocks.segment, blocks.size)
    gaps: Flags = filled != segments.total_size
    return gaps
