"""An allocator snapshot as analyses take it; `snapshot_tables` makes it.

Every column has its type, every index leads somewhere, every size is one that memory
can have; what had to be set right for that is counted in `Snapshot.oddities`.

A *moment* is the index of an event of one device and means the state just after it;
`lifetimes.BEFORE` is the state before all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from memboard.tb_plugin.analysis.allocator.lifetimes import Blocks, History
from memboard.tb_plugin.analysis.arrays import NOTHING, Table, largest_groups
from memboard.tb_plugin.analysis.categories.frames import (
    NO_STACK,
    frame_kinds,
    stack_label,
    user_frames,
)
from memboard.tb_plugin.analysis.categories.marks import stack_marks

if TYPE_CHECKING:
    import re
    from collections.abc import Mapping, Sequence

    from memboard.tb_plugin.analysis.arrays import Flags, Ints
    from memboard.tb_plugin.analysis.snapshots.extras import Annotations, Tensors

    Pattern: TypeAlias = re.Pattern[str] | None


MAX_BYTES: Final = 1 << 48

STATES: Final = ("inactive", "active_allocated", "active_pending_free")
"""A block's state is its index here; `active_awaiting_free` is the third as well."""

INACTIVE: Final = 0
ALLOCATED: Final = 1
PENDING_FREE: Final = 2

DEFAULT_POOL: Final = (0, 0)

HOST: Final = -1
"""Number of the device that stands for pinned host memory, as torch numbers it."""


class SnapshotError(ValueError):
    """The tables are not those of a snapshot; says what is missing or wrong."""


def _texts_with(pattern: Pattern, texts: Sequence[str]) -> set[str]:
    """Those in which the pattern is found; many frames have one name, and one file."""
    if pattern is None:
        return set()
    return {text for text in set(texts) if pattern.search(text)}


@dataclass(frozen=True)
class Stacks:
    """Distinct stacks and their frames, innermost frame first.

    What follows from them alone is made when it is first read.
    """

    name: Sequence[str]
    filename: Sequence[str]
    line: Ints
    start: Ints
    """(stacks + 1,): where each begins in `frame`."""
    frame: Ints
    _matched: dict[tuple[Pattern, Pattern], Flags] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.start) - 1

    def of(self, stack: int) -> Ints:
        """The frames of one stack; none of NOTHING."""
        if stack < 0:
            return self.frame[:0]
        return self.frame[int(self.start[stack]) : int(self.start[stack + 1])]

    def num_within(self, num_frames: int) -> int:
        """The first stacks that have no more frames together than that."""
        return max(0, int(np.searchsorted(self.start, num_frames, "right")) - 1)

    @property
    def owner(self) -> Ints:
        """By place in `frame`: whose frame it is."""
        return np.repeat(np.arange(len(self)), np.diff(self.start))

    def has(self, marks: int) -> Flags:
        """By stack, and last for no stack: whether it bears one of these marks."""
        return np.append((self.marks & marks) != 0, np.False_)

    def calls(self, function_name: str) -> Flags:
        """By stack, and last for no stack: whether a function of this name is in it."""
        return self._of_frames([function == function_name for function in self.name])

    def matching(self, name: Pattern, filename: Pattern) -> Flags:
        """By stack, and last for no stack: whether a frame has such a name or file.

        Asked for each error of a history, looked for once.
        """
        is_match = self._matched.get((name, filename))
        if is_match is None:
            names = _texts_with(name, self.name)
            files = _texts_with(filename, self.filename)
            chosen = [
                function in names or file in files
                for function, file in zip(self.name, self.filename, strict=True)
            ]
            is_match = self._matched[name, filename] = self._of_frames(chosen)
        return is_match

    def _of_frames(self, chosen: Sequence[bool]) -> Flags:
        """By stack, and last for no stack: whether one of its frames is chosen."""
        is_match = np.zeros(len(self) + 1, np.bool_)
        is_match[self.owner[np.array(chosen, np.bool_)[self.frame]]] = True
        return is_match

    def lines(self, stack: Ints) -> Ints:
        """A number for each line, by column of stacks.

        Stacks that have no line are each one of their own; no stack is -1.
        """
        if not len(self):
            return np.full(len(stack), NOTHING, np.int64)
        frame = self.user_frame[np.maximum(stack, 0)]
        alone = len(self.name) + stack
        group = np.where(frame == NOTHING, alone, frame)
        return np.where(stack < 0, NOTHING, group)

    def label(self, stack: int) -> str:
        """The line of a stack in short; empty where there is none."""
        label = stack_label(self, stack)
        return "" if label == NO_STACK else label

    def largest(self, stack: Ints, size: Ints, most: int) -> tuple[str, ...]:
        """The lines of some stacks that have most bytes."""
        place = largest_groups(self.lines(stack), size, most)[2]
        firsts = np.unique(place, return_index=True)[1][:most]
        labels = [self.label(stack_number) for stack_number in stack[firsts].tolist()]
        return tuple(label for label in labels if label)

    @cached_property
    def kinds(self) -> Ints:
        """By frame: whose it is, see `frame_kinds`."""
        return frame_kinds(self)

    @cached_property
    def user_frame(self) -> Ints:
        """By stack: the line that stands for it, see `user_frames`."""
        return user_frames(self)

    @cached_property
    def marks(self) -> Ints:
        """By stack: what it says about where a training was, see `stack_marks`."""
        return stack_marks(self)

    def first(self, wanted: Flags, since: Ints | None = None) -> Ints:
        """By stack: its first frame that is wanted, as a place in `frame`, or NOTHING.

        `wanted`: by place; `since`: by stack, the place to look from.
        """
        places = np.flatnonzero(wanted)
        index = np.searchsorted(places, self.start[:-1] if since is None else since)
        places_found = np.append(places, len(wanted))[index]
        return np.where(places_found < self.start[1:], places_found, NOTHING)


@dataclass(frozen=True, slots=True)
class Events(Table):
    """What one device's allocator did, in order; columns of equal length."""

    action: Ints
    """Index in `lifetimes.ACTIONS`; -1: one that is not known."""
    addr: Ints  # As signed 64 bits
    size: Ints
    """Bytes as requested; of segment_*: the segment's; of oom: those of the failed request."""
    stream: Ints  # Row of `Snapshot.streams`
    time_us: Ints | None
    """None where the file has no times."""
    stack: Ints
    tag: Ints
    """`user_metadata`: row of `Snapshot.texts`, or NOTHING."""
    annotation: Ints
    """That of `annotate` events, which is of the allocation at `addr` and no tag."""
    compile_context: Ints
    pool: Ints
    """Row of `Snapshot.pools`, or NOTHING where the event does not say."""
    device_free: Ints
    """Bytes the device had free, of oom events; NOTHING elsewhere."""

    def of_action(self, action: int) -> Ints:
        """The events of one action, ascending."""
        return np.flatnonzero(self.action == action)


@dataclass(frozen=True, slots=True)
class Segments(Table):
    """Device allocations when the snapshot was taken, in order of their addresses."""

    address: Ints
    total_size: Ints
    stream: Ints
    pool: Ints
    is_large: Flags
    is_expandable: Flags
    stack: Ints


@dataclass(frozen=True, slots=True)
class BlockColumns(Table):
    """Pieces of segments at one moment, in order of their addresses."""

    segment: Ints
    """Row of the segments of that moment."""
    address: Ints
    size: Ints
    requested_size: Ints
    state: Ints  # Index in `STATES`


@dataclass(frozen=True, slots=True)
class BlockTable(BlockColumns):
    """When the snapshot was taken. A size that the file does not request is all of it."""

    stack: Ints


@dataclass(frozen=True, slots=True)
class DeviceSnapshot:
    """All that a snapshot says of one device."""

    device: int
    events: Events
    segments: Segments
    blocks: BlockTable

    @property
    def is_host(self) -> bool:
        """Whether it is pinned host memory, and no memory of a device."""
        return self.device == HOST

    def history(self) -> History:
        """The events as `lifetimes` takes them."""
        return History(
            action=self.events.action,
            addr=self.events.addr,
            size=self.events.size,
            stack=self.events.stack,
        )

    def active_blocks(self) -> Blocks:
        """The blocks that were active at the end, as `lifetimes` takes them."""
        rows = np.flatnonzero(self.blocks.state != INACTIVE)
        return Blocks(
            addr=self.blocks.address[rows],
            size=self.blocks.size[rows],
            is_allocated=self.blocks.state[rows] == ALLOCATED,
            stack=self.blocks.stack[rows],
        )

    @property
    def reserved_bytes(self) -> int:
        """Sum of the segments at the end."""
        return int(self.segments.total_size.sum())

    @property
    def active_bytes(self) -> int:
        """Bytes of active blocks at the end, rounded."""
        return int(self.blocks.size[self.blocks.state != INACTIVE].sum())

    @property
    def allocated_bytes(self) -> int:
        """Bytes of allocated blocks at the end, rounded."""
        return int(self.blocks.size[self.blocks.state == ALLOCATED].sum())


@dataclass(frozen=True, slots=True)
class Snapshot:
    devices: tuple[DeviceSnapshot, ...]
    """Those with events or segments, by number; last pinned host memory (`HOST`), where
    it was recorded. It is no memory of a device: no sum over devices has it."""
    stacks: Stacks
    texts: Sequence[str]
    streams: tuple[int, ...]
    """Pointers of streams; 0 is the default one."""
    pools: tuple[tuple[int, int], ...]
    """Ids of memory pools; (0, 0), the ordinary one, comes first."""
    annotations: Annotations
    tensors: Tensors | None
    settings: Mapping[str, Any]  # `allocator_settings`, plain values
    oddities: Mapping[str, int]
    """What was set right, in words, and how often."""
    left_out: Mapping[str, int]
    """What is no segment, block or event, likewise: no figure counts it."""
    unread: Sequence[str] = ()
    """Keys that are in the file and read by nothing here, e.g. `segments[].weight`."""
    has_segments: bool = True
    """Whether the end is recorded: no segments at all say that nothing was allocated."""

    def device(self, number: int) -> DeviceSnapshot | None:
        # One device, or None
        return next((d for d in self.devices if d.device == number), None)
