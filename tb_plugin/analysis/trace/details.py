"""Details of operators, launches, kernels and collectives, which only some slices have.

Each class is a table of columns of equal length, sorted by `row`, which is a row of
`trace.Slices`. Where the source says nothing a whole number is -1, a float is NaN and a
text is the row of the empty text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.tb_plugin.analysis.arrays import Table

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.arrays import Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class Operators(Table):
    """Slices that `record_function` made: operators and annotations."""

    row: Ints
    external_id: Ints
    sequence: Ints
    """`Sequence number`: forward and backward share it."""
    forward_thread: Ints  # `Fwd thread id`
    input_dims: Ints
    """JSON as written, as rows of `Trace.strings`; likewise the next."""
    input_types: Ints
    concrete_inputs: Ints
    """Numbers and flags among the inputs, only of operators whose FLOP depend on them."""
    call_stack: Ints
    """`Call stack`, of traces older than torch 1.13; likewise."""


@dataclass(frozen=True, slots=True, eq=False)
class Launches(Table):
    """Calls of a device's runtime or driver."""

    row: Ints
    correlation: Ints
    external_id: Ints
    kernel: Ints
    """Name of the kernel that it launches, as HIP writes it; a row of `Trace.strings`."""


@dataclass(frozen=True, slots=True, eq=False)
class DeviceWork(Table):
    """Kernels, copies and fills, as the device ran them."""

    row: Ints
    device: Ints
    stream: Ints
    correlation: Ints
    external_id: Ints
    grid: Ints
    """JSON as written, `[x, y, z]`, as rows of `Trace.strings`."""
    block: Ints
    registers: Ints
    shared_memory_bytes: Ints
    blocks_per_sm: Floats
    """May be infinite in the source; NaN here then."""
    occupancy_pct: Floats  # `est. achieved occupancy %`


@dataclass(frozen=True, slots=True, eq=False)
class Replays(Table):
    """Device work of graphs whose capture was recorded."""

    row: Ints
    caller: Ints
    """Slice of the innermost call during the capture, on a track of `trace.CAPTURED`."""


NO_REPLAYS: Final = Replays(np.empty(0, np.int64), np.empty(0, np.int64))


@dataclass(frozen=True, slots=True, eq=False)
class Synchronisations(Table):
    """Waits of streams for events, and of calls for events, streams or a device."""

    row: Ints
    device: Ints
    stream: Ints
    """That waits, or that a call waits for."""
    correlation: Ints
    """Of the call that waits, or that makes the stream wait."""
    awaited_stream: Ints
    """On which the event was recorded."""
    event_correlation: Ints
    """Of the call that recorded the event."""


@dataclass(frozen=True, slots=True, eq=False)
class Collectives(Table):
    """Collective metadata, on `record_param_comms` and on the kernels it launched."""

    row: Ints
    name: Ints
    """Row of `Trace.strings`, as the next text columns."""
    dtype: Ints
    group: Ints  # `Process Group Name`
    in_elements: Ints
    out_elements: Ints
    group_size: Ints
    sequence: Ints


@dataclass(frozen=True, slots=True, eq=False)
class MemoryEvents(Table):
    """`[memory]` instants, sorted by time."""

    time_ns: Ints
    track: Ints
    num_bytes: Ints  # Signed: frees are negative
    address: Ints
    """As signed 64 bits; 0 where old traces have none."""
    device_type: Ints
    """torch's `DeviceType`: 0 CPU, 1 CUDA, 6 HIP, 12 XPU, 13 MPS, 20 PrivateUse1, ..."""
    device: Ints  # -1 for the CPU
    allocated_bytes: Ints
    """Total after the event; -1 where the source has none."""
    reserved_bytes: Ints
    args: Ints
