"""The shapes that events are decoded in.

For tables, from fast to tolerant: `Event` is for events as Kineto writes them. `ExactEvent`
keeps the digits of `ts`, where a float would lose some. `AnyEvent` keeps all arguments, for
counters and what is odd.

For another trace: `WholeEvent` holds what the Chrome trace format knows, and is written as
it was read. An event that says more than that, or says it oddly, is an `EventByKey`.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Raw

Number: TypeAlias = bool | int | float | str | None
Name: TypeAlias = str | int | float | bool | None
Id: TypeAlias = int | str | None
NO_RAW: Final = Raw()

_NAMES: Final = {
    "external_id": "External id",
    "old_external_id": "external id",
    "sequence": "Sequence number",
    "forward_thread": "Fwd thread id",
    "input_dims": "Input Dims",
    "input_types": "Input type",
    "concrete_inputs": "Concrete Inputs",
    "call_stack": "Call stack",
    "registers": "registers per thread",
    "shared_memory": "shared memory",
    "blocks_per_sm": "blocks per SM",
    "occupancy": "est. achieved occupancy %",
    "collective": "Collective name",
    "in_elements": "In msg nelems",
    "out_elements": "Out msg nelems",
    "group_size": "Group size",
    "group": "Process Group Name",
    "collective_sequence": "Seq",
    "awaited_stream": "wait_on_stream",
    "event_correlation": "wait_on_cuda_event_record_corr_id",
    "memory_bytes": "Bytes",
    "address": "Addr",
    "device_type": "Device Type",
    "memory_device": "Device Id",
    "allocated": "Total Allocated",
    "reserved": "Total Reserved",
}


class Args(msgspec.Struct, gc=False, rename=_NAMES):
    """The arguments that become columns; -1 where there is none."""

    external_id: Number = -1
    old_external_id: Number = -1
    sequence: Number = -1
    forward_thread: Number = -1
    input_dims: Raw = NO_RAW
    input_types: Raw = NO_RAW
    concrete_inputs: Raw = NO_RAW
    call_stack: Raw = NO_RAW
    device: Number = -1
    stream: Number = -1
    correlation: Number = -1
    kernel: Raw = NO_RAW
    grid: Raw = NO_RAW
    block: Raw = NO_RAW
    registers: Number = -1
    shared_memory: Number = -1
    blocks_per_sm: Number = None
    occupancy: Number = None
    collective: Raw = NO_RAW
    dtype: Raw = NO_RAW
    in_elements: Number = -1
    out_elements: Number = -1
    group_size: Number = -1
    group: Raw = NO_RAW
    collective_sequence: Number = -1
    awaited_stream: Number = -1
    event_correlation: Number = -1
    memory_bytes: Number = 0
    address: Number = 0
    device_type: Number = -1
    memory_device: Number = -1
    allocated: Number = -1
    reserved: Number = -1
    name: Raw = NO_RAW
    """Of metadata events, likewise the next two."""
    labels: Raw = NO_RAW
    sort_index: Number = 0


NO_ARGS: Final = Args()
NO_TIME: Final = float("nan")


class EventFields(msgspec.Struct, gc=False):
    """What all three shapes decode alike."""

    ph: str = ""
    cat: Name = None
    name: Name = ""
    pid: Name = ""
    tid: Name = ""
    id: Name = None
    bp: Name = None


class Event(EventFields, gc=False):
    ts: float = NO_TIME  # Microseconds, likewise `dur`
    dur: float = NO_TIME
    args: Args | None = None


class ExactEvent(EventFields, gc=False):
    """One event with the digits of its time."""

    ts: Raw = NO_RAW
    dur: float = NO_TIME
    args: Args | None = None


class AnyEvent(EventFields, gc=False):
    """One event with all that it says."""

    ts: Raw = NO_RAW
    dur: Raw = NO_RAW
    args: Raw = NO_RAW


class WholeEvent(
    msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True, gc=False
):
    """One event of a trace, as read or to be written."""

    ph: str
    cat: Raw = NO_RAW
    name: Raw = NO_RAW
    pid: Id = None
    tid: Id = None
    ts: int | float | None = None
    dur: Raw = NO_RAW
    args: Raw = NO_RAW
    id: Id = None
    bp: Raw = NO_RAW
    s: Raw = NO_RAW
    bind_id: Id = None
    flow_in: Raw = NO_RAW
    flow_out: Raw = NO_RAW
    scope: Raw = NO_RAW
    tts: Raw = NO_RAW
    tdur: Raw = NO_RAW
    cname: Raw = NO_RAW


EventByKey: TypeAlias = dict[str, Any]
"""The bytes that were read, or values to be written."""

FAST: Final = msgspec.json.Decoder(list[Event])
EXACT: Final = msgspec.json.Decoder(list[ExactEvent])
ANY: Final = msgspec.json.Decoder(list[AnyEvent])
ONE: Final = msgspec.json.Decoder(AnyEvent)
ARGS: Final = msgspec.json.Decoder(Args)
PLAIN: Final = msgspec.json.Decoder()
FAULTS: Final = (
    msgspec.MsgspecError,
    UnicodeDecodeError,
    RecursionError,
    OverflowError,
)


def plain(raw: bytes | Raw | None) -> Any:
    """Any JSON as Python's own objects; None where it is none."""
    try:
        return None if raw is None else PLAIN.decode(raw)
    except FAULTS:
        return None
