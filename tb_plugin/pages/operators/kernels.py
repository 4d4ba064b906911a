"""The route `/kernels`: calls and times by kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np

from tb_plugin import api
from tb_plugin.analysis.time.slice_roles import Role
from tb_plugin.contract.wire import f64, i32, u8
from tb_plugin.pages.operators.table_rows import rows_sent
from tb_plugin.pages.profile.asked import TableQuery, of_profile

if TYPE_CHECKING:
    import numpy.typing as npt

    from tb_plugin.analysis.time.kernels import KernelTable
    from tb_plugin.analysis.trace.profile import TraceProfile

    Ints: TypeAlias = npt.NDArray[Any]

_MS: Final = 1e6
_US: Final = 1e3
_MAX_TEXT: Final = 1_000


class KernelsQuery(TableQuery, frozen=True):
    """Kernels by name, or apart by their properties of launch."""

    by: Literal["name", "properties"] = "name"


@of_profile("kernels", KernelsQuery)
def kernels(
    run: api.RunSummary,
    choice: api.ProfileChoice,
    profile: TraceProfile | None,
    query: KernelsQuery,
) -> api.KernelsResponse:
    """The table of a trace; empty while it is being opened."""
    apart = query.by == "properties"
    table = None
    if profile is not None:
        table = profile.kernels_by_properties if apart else profile.kernels
    rows, num_rows = _rows(profile, table, query)

    def numbers(name: str, factor: float = 1.0) -> Ints:
        if table is None:
            return np.empty(0)
        values: Ints = np.asarray(getattr(table, name))[rows] / factor
        return values

    def texts(name: str) -> tuple[str, ...]:
        if table is None or profile is None:
            return ()
        strings = profile.trace.strings
        column = getattr(table, name)[rows].tolist()
        return tuple(strings[row][:_MAX_TEXT] if row >= 0 else "" for row in column)

    total_ns, on_cores_ns = _totals(profile)
    return api.KernelsResponse(
        run=run,
        choice=choice,
        by="properties" if apart else "name",
        name=texts("name"),
        operator=texts("operator"),
        grid=texts("grid"),
        block=texts("block"),
        registers=i32(numbers("registers")),
        shared_memory_bytes=f64(numbers("shared_memory_bytes")),
        num_calls=f64(numbers("num_calls")),
        total_ms=f64(numbers("total_ns", _MS)),
        min_us=f64(numbers("min_ns", _US)),
        mean_us=f64(numbers("mean_ns", _US)),
        max_us=f64(numbers("max_ns", _US)),
        blocks_per_sm=f64(numbers("blocks_per_sm")),
        occupancy=f64(numbers("occupancy")),
        uses_tensor_cores=u8(numbers("uses_tensor_cores")),
        is_communication=u8(_are_communication(profile, table, rows)),
        num_rows=num_rows,
        total_all_ms=total_ns / _MS,
        tensor_core_ms=on_cores_ns / _MS,
        has_kernels=table is not None and len(table) > 0,
    )


def _rows(
    profile: TraceProfile | None, table: KernelTable | None, query: KernelsQuery
) -> tuple[Ints, int]:
    if profile is None or table is None:
        return np.empty(0, np.int64), 0
    strings, text = profile.trace.strings, (query.text or "").lower()

    def holds(row: int) -> bool:
        texts = (int(table.name[row]), int(table.operator[row]))
        return any(text in strings[at].lower() for at in texts if at >= 0)

    columns = {
        "num_calls": table.num_calls,
        "total_ms": table.total_ns,
        "min_us": table.min_ns,
        "mean_us": table.mean_ns,
        "max_us": table.max_ns,
        "blocks_per_sm": table.blocks_per_sm,
        "occupancy": table.occupancy,
        "registers": _known(table.registers),
        "shared_memory_bytes": _known(table.shared_memory_bytes),
    }

    def text_of(column: Ints, row: int) -> str:
        return strings[int(column[row])] if column[row] >= 0 else ""

    return rows_sent(
        len(table),
        columns,
        query.sort,
        "total_ms",
        query.top,
        holds if text else None,
        texts={
            "name": lambda row: text_of(table.name, row),
            "operator": lambda row: text_of(table.operator, row),
        },
    )


def _known(values: Ints) -> Ints:
    """-1 stands for what the trace does not say."""
    numbers = np.asarray(values, dtype=np.float64)
    return np.where(numbers < 0, np.nan, numbers)


def _are_communication(
    profile: TraceProfile | None, table: KernelTable | None, rows: Ints
) -> list[bool]:
    if profile is None or table is None:
        return []
    roles = profile.roles[table.example[rows]]
    return [bool(role == Role.COMMUNICATION) for role in roles.tolist()]


def _totals(profile: TraceProfile | None) -> tuple[int, int]:
    """Time of all kernels, and of those that use tensor cores."""
    if profile is None:
        return 0, 0
    table = profile.kernels
    on_cores_ns = table.total_ns[table.uses_tensor_cores]
    return int(table.total_ns.sum()), int(on_cores_ns.sum())
