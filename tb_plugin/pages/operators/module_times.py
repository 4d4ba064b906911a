"""The route `/module_times`: time of a trace's modules, parents first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tb_plugin.api.profile import ModuleTimesResponse
from tb_plugin.contract.wire import i32
from tb_plugin.pages.operators.table import Number, Table
from tb_plugin.pages.profile.asked import SourceQuery, of_profile

if TYPE_CHECKING:
    from tb_plugin.analysis.trace.profile import TraceProfile
    from tb_plugin.api.base import RunSummary
    from tb_plugin.api.profile import ProfileChoice

_MS: Final = 1e6
MAX_MODULES: Final = 5_000
"""Rows that are sent; a parent's row comes before its own, so these are a whole tree."""
_MAX_TEXT: Final = 500
_KNOWN: Final = ("arrows", "sequence_numbers")
_FORWARD: Final = Table(
    (
        Number("parent", wire=i32),
        Number("num_calls"),
        Number("num_operators"),
        Number("host_ms", "host_ns", _MS),
        Number("host_self_ms", "host_self_ns", _MS),
        Number("device_ms", "device_ns", _MS),
        Number("device_self_ms", "device_self_ns", _MS),
    )
)


_BACKWARD: Final = Table(
    (
        Number("backward_host_ms", "backward_host_ns", _MS),
        Number("backward_host_self_ms", "backward_host_self_ns", _MS),
        Number("backward_device_ms", "backward_device_ns", _MS),
        Number("backward_device_self_ms", "backward_device_self_ns", _MS),
    )
)


@of_profile("module_times", SourceQuery)
def module_times(
    run: RunSummary, choice: ProfileChoice, profile: TraceProfile, _query: SourceQuery
) -> ModuleTimesResponse:
    """The modules of a trace."""
    table, strings = profile.modules, profile.trace.strings
    rows = np.arange(min(len(table), MAX_MODULES))
    backward = _BACKWARD.sent(table, strings, rows)
    if table.backward_by not in _KNOWN:
        backward = dict.fromkeys(backward, np.full(len(rows), np.nan))
    return ModuleTimesResponse(
        run=run,
        choice=choice,
        name=tuple(name[:_MAX_TEXT] for name in table.name[:MAX_MODULES]),
        **_FORWARD.sent(table, strings, rows),
        **backward,
        backward=table.backward_by,
        has_devices=len(profile.trace.device_work.row) > 0,
        has_modules=len(table) > 0,
        num_modules=len(table),
    )
