"""Tables of the times of one trace: operators and kernels; modules are in `module_table`.

Their columns are declared here once, for the page, for comparisons and for files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from memboard.collector.format.own.frames import RECORDER
from memboard.tb_plugin.analysis.kernel_names.host_calls import starts_communication
from memboard.tb_plugin.analysis.operators.operators import eligibility
from memboard.tb_plugin.analysis.time.slice_roles import Role
from memboard.tb_plugin.contract.table import Column, Table, text_of
from memboard.tb_plugin.facts.traces.core_columns import (
    KERNEL_CORES,
    OPERATOR_CORES,
    in_vendor_words,
    known_notes,
)
from memboard.tb_plugin.facts.traces.work_columns import (
    KERNEL_WORK,
    OPERATOR_WORK,
    category_rows,
)

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.arrays import Flags, Ints
    from memboard.tb_plugin.analysis.operators.operators import OperatorTable
    from memboard.tb_plugin.analysis.trace.profile import TraceProfile
    from memboard.tb_plugin.api.tables import TableRows
    from memboard.tb_plugin.api.time.operators import OperatorsBy
    from memboard.tb_plugin.api.time.profile import ColumnSet
    from memboard.tb_plugin.contract.table import RowsQuery

KernelsBy: TypeAlias = Literal["name", "properties"]

OPERATORS: Final = Table(
    (
        Column(
            "name",
            "Operator",
            unit="name",
            help="The operator as PyTorch names it; of autograd, what evaluates it. What was "
            "launched outside operators has the name of the call, as cudaGraphLaunch; kernels"
            " and copies whose launch was not recorded are in no operator. What the recorder"
            " did itself is one row.",
            bar="row",
        ),
        Column(
            "shapes",
            "Input shapes",
            unit="text",
            help="Shapes of its inputs as the profiler wrote them; none where it wrote none",
            absent="The profiler wrote no shapes",
        ),
        Column(
            "num_calls",
            "Calls",
            unit="count",
            help="How often it was called while the profiler ran. An operator that only calls "
            "one of its own name counts once.",
        ),
        Column(
            "host_self_ms",
            "Host self",
            unit="ms",
            help="Time on the host in the operator itself: its duration less that of the "
            "operators and runtime calls in it. The profiler's own cost is part of it: "
            "above all of operators of a few µs.",
            bar="forward",
            share_of="of the host's time",
        ),
        Column(
            "host_total_ms",
            "Host total",
            unit="ms",
            help="Sum of its calls' durations on the host, the operators in it included. Calls "
            "on several threads count each, and waiting for the device counts as time of "
            "the host.",
            bar="forward",
        ),
        Column(
            "device_self_ms",
            "Device self",
            unit="ms",
            help="Sum of the durations of the kernels, copies and fills that it launched "
            "itself. Those that ran at the same time count each.",
            bar="kernel",
            share_of="of the device's time",
        ),
        Column(
            "device_total_ms",
            "Device total",
            unit="ms",
            help="Device self, and that of the operators in it. Launches belong to the "
            "innermost operator around them.",
            bar="kernel",
        ),
        *OPERATOR_CORES,
        *OPERATOR_WORK,
    ),
    searched=("name", "category"),
)
_OF_DEVICES: Final = (
    "device_self_ms",
    "device_total_ms",
    *(column.key for column in OPERATOR_CORES),
)
_WORK_KEYS: Final = tuple(column.key for column in OPERATOR_WORK)
_TIMES_ALONE: Final = ("host_self_ms", "host_total_ms", *_OF_DEVICES[1:])
"""Columns that make room for those of efficiency."""


def operator_rows(
    profile: TraceProfile,
    query: RowsQuery,
    by: OperatorsBy = "name",
    columns: ColumnSet = "times",
) -> TableRows:
    """Operators by name, or by name and input shapes, and what launched outside them.

    Or the categories of what ran on devices.
    """
    if by == "category":
        return category_rows(profile, query)
    strings = profile.operator_names
    table = profile.launching_by_shapes if by == "shapes" else profile.launching
    has_devices = profile.has_devices
    usual = "device_self_ms" if has_devices else "host_self_ms"
    rows = OPERATORS.rows(table, strings, query, usual)
    names = table.name[rows[0]].tolist()
    is_apt = [
        eligibility(text_of(strings, row), tensor_core_ns)
        for row, tensor_core_ns in zip(
            names, table.tensor_core_self_ns[rows[0]].tolist(), strict=True
        )
    ]
    kinds = tuple(
        _kind_of(text_of(strings, row), device_ns, communication_ns)
        for row, device_ns, communication_ns in zip(
            names,
            table.device_self_ns[rows[0]].tolist(),
            table.communication_self_ns[rows[0]].tolist(),
            strict=True,
        )
    )
    shows_work = columns == "efficiency" and has_devices
    without = {"shapes"} if by == "name" else set()
    without |= set(() if has_devices else _OF_DEVICES)
    without |= set(_TIMES_ALONE if shows_work else _WORK_KEYS)
    if not table.recomputed_self_ns.any():
        without.add("recomputed_self_ms")
    sent = OPERATORS.sent(
        table,
        strings,
        rows,
        usual,
        without=without,
        replaced={"is_tensor_core_eligible": is_apt},
        notes=_core_notes(table, rows[0]),
        colours=kinds if any(kinds) else (),
    )
    return in_vendor_words(sent, profile.trace)


def _core_notes(table: OperatorTable, rows: Ints) -> dict[str, tuple[str, ...]]:
    """By column, how much is known of tensor cores where not all is."""
    return {
        "tensor_core_self_share": known_notes(table.tensor_core_known_self_share[rows]),
        "tensor_core_total_share": known_notes(table.tensor_core_known_share[rows]),
    }


def _kind_of(operator: str, device_ns: int, communication_ns: int) -> str:
    """Of operators that do not compute: whose, or what they are; else empty.

    What most of its own work on devices is decides: as in the table of kernels.
    """
    if operator == RECORDER:
        return "recorder"
    communicates = (
        2 * communication_ns > device_ns
        if device_ns
        else starts_communication(operator)
    )
    return "communication" if communicates else ""


_UNSAID: Final = "Not in the trace"
KERNELS: Final = Table(
    (
        Column(
            "name",
            "Kernel",
            unit="name",
            help="The kernel as the profiler names it; pointed at, with its template arguments."
            " One marked “communication?” counts as computation, and its name says that it"
            " may move data between ranks.",
        ),
        Column(
            "operator",
            "Operator",
            unit="name",
            help="The innermost operator around the launch, by the launch's correlation id; "
            "outside operators the call itself, as cudaGraphLaunch",
            absent="The launch was not recorded",
        ),
        Column(
            "grid",
            "Grid",
            unit="text",
            help="Blocks of a launch, in x, y and z",
            sorts=False,
        ),
        Column(
            "block",
            "Block",
            unit="text",
            help="Threads of a block, in x, y and z",
            sorts=False,
        ),
        Column(
            "num_calls",
            "Calls",
            unit="count",
            help="How often it ran while the profiler did",
        ),
        Column(
            "total_ms",
            "Total",
            unit="ms",
            help="Sum of the durations of its runs. Kernels that run at the same time on "
            "several streams count each, so it may exceed the time that passed.",
            bar="row",
            share_of="of the kernels' time",
        ),
        Column("mean_us", "Mean", unit="us", help="Total ÷ calls"),
        Column("min_us", "Min", unit="us", help="The shortest run"),
        Column(
            "max_us",
            "Max",
            unit="us",
            help="The longest run; far above the mean, something delayed it at times",
        ),
        Column(
            "blocks_per_sm",
            "Blocks/SM",
            unit="ratio",
            help="Blocks of a launch ÷ the device's SMs, mean of the runs weighted by their "
            "time. Below 1 some SMs have nothing to do: 64 blocks on 80 SMs are 0.8.",
            absent=_UNSAID,
        ),
        Column(
            "occupancy",
            "Occupancy",
            unit="share",
            help="Est. achieved occupancy: active warps of an SM ÷ those it could have, mean of "
            "the runs weighted by their time. The profiler estimates it from the launch "
            "configuration, it is not measured; 15 to 30 % may be as good as it gets.",
            absent=_UNSAID,
        ),
        KERNEL_CORES,
        Column(
            "registers",
            "Registers",
            unit="count",
            help="Registers of a thread. Many leave room for fewer warps on an SM.",
            absent=_UNSAID,
        ),
        Column(
            "shared_memory_bytes",
            "Shared B",
            unit="count",
            help="Bytes of shared memory of a block, static and dynamic. Much leaves room for "
            "fewer blocks on an SM.",
            absent=_UNSAID,
        ),
        *KERNEL_WORK,
    ),
    searched=("name", "operator", "category"),
    max_text=1_000,
)
MAY_COMMUNICATE: Final = "communication?"
_OF_LAUNCHES: Final = ("operator", "grid", "block", "registers", "shared_memory_bytes")
_WORK_OF_KERNELS: Final = tuple(column.key for column in KERNEL_WORK)
_LAUNCHES_ALONE: Final = (
    "min_us",
    "max_us",
    "blocks_per_sm",
    "occupancy",
    "registers",
    "shared_memory_bytes",
)
"""Columns that make room for those of efficiency."""


def kernel_rows(
    profile: TraceProfile,
    query: RowsQuery,
    by: KernelsBy = "name",
    columns: ColumnSet = "times",
) -> TableRows:
    """Kernels by name, or by name, operator and properties of their launch."""
    strings = profile.trace.strings
    is_by_name = by == "name"
    table = profile.kernels if is_by_name else profile.kernels_by_properties
    rows = KERNELS.rows(table, strings, query, "total_ms")
    roles = profile.roles[table.example[rows[0]]]
    without = set(_OF_LAUNCHES if is_by_name else ())
    without |= set(_LAUNCHES_ALONE if columns == "efficiency" else _WORK_OF_KERNELS)
    if not table.recomputed_ns.any():
        without.add("recomputed_ms")
    return KERNELS.sent(
        table,
        strings,
        rows,
        "total_ms",
        without=without,
        notes=_communication_notes(table.may_communicate[rows[0]]),
        colours=tuple(
            "communication" if role == Role.COMMUNICATION else "kernel"
            for role in roles.tolist()
        ),
    )


def _communication_notes(may_communicate: Flags) -> dict[str, tuple[str, ...]]:
    if not may_communicate.any():
        return {}
    notes = [MAY_COMMUNICATE if is_asked else "" for is_asked in may_communicate]
    return {"name": tuple(notes)}
