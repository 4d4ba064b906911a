"""The route `/module_times`: time of a trace's modules, parents first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from tb_plugin import api
from tb_plugin.contract.wire import f64, i32
from tb_plugin.pages.profile.asked import SourceQuery, of_profile

if TYPE_CHECKING:
    import numpy.typing as npt

    from tb_plugin.analysis.trace.profile import TraceProfile

    Ints: TypeAlias = npt.NDArray[Any]

_MS: Final = 1e6
MAX_MODULES: Final = 5_000
"""Rows that are sent; a parent's row comes before its own, so these are a whole tree."""
_MAX_TEXT: Final = 500
_KNOWN: Final = ("arrows", "sequence_numbers")


@of_profile("module_times", SourceQuery)
def module_times(
    run: api.RunSummary,
    choice: api.ProfileChoice,
    profile: TraceProfile | None,
    _query: SourceQuery,
) -> api.ModuleTimesResponse:
    """The modules of a trace; none while it is being opened."""
    table = None if profile is None else profile.modules
    num = 0 if table is None else len(table)

    def numbers(name: str, factor: float = 1.0) -> Ints:
        if table is None:
            return np.empty(0)
        values: Ints = np.asarray(getattr(table, name))[:MAX_MODULES] / factor
        return values

    is_known = table is not None and table.backward_by in _KNOWN

    def backward(name: str) -> api.F64Column:
        values = numbers(name, _MS)
        return f64(values if is_known else np.full(len(values), np.nan))

    names = () if table is None else table.name[:MAX_MODULES]
    return api.ModuleTimesResponse(
        run=run,
        choice=choice,
        name=tuple(name[:_MAX_TEXT] for name in names),
        parent=i32(numbers("parent")),
        num_calls=f64(numbers("num_calls")),
        num_operators=f64(numbers("num_operators")),
        host_ms=f64(numbers("host_ns", _MS)),
        host_self_ms=f64(numbers("host_self_ns", _MS)),
        device_ms=f64(numbers("device_ns", _MS)),
        device_self_ms=f64(numbers("device_self_ns", _MS)),
        backward_host_ms=backward("backward_host_ns"),
        backward_host_self_ms=backward("backward_host_self_ns"),
        backward_device_ms=backward("backward_device_ns"),
        backward_device_self_ms=backward("backward_device_self_ns"),
        backward="not_run" if table is None else table.backward_by,
        has_devices=profile is not None and len(profile.trace.device_work.row) > 0,
        has_modules=num > 0,
        num_modules=num,
    )
