"""The route `/module_times`: what each module of a trace took."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from memboard.tb_plugin.api.profile import ModuleTimesResponse
from memboard.tb_plugin.api.tables import TableRows
from memboard.tb_plugin.contract.table import Column
from memboard.tb_plugin.contract.wire import i32
from memboard.tb_plugin.facts.traces.profiled import SourceQuery, of_profile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from memboard.tb_plugin.analysis.time.module_times import BackwardBy
    from memboard.tb_plugin.analysis.trace.profile import TraceProfile
    from memboard.tb_plugin.api.base import RunSummary
    from memboard.tb_plugin.api.profile import ProfileChoice

MAX_MODULES: Final = 5_000
"""Rows that are sent; a parent's row comes before its own, so these are a whole tree."""
_MAX_MODULE: Final = 500
_KNOWN: Final = ("arrows", "sequence_numbers")
_OF_ALL: Final = "of all modules"


def _part_of(key: str) -> str:
    return "backward" if key.startswith("backward") else "forward"


_CALLS: Final = (
    Column(
        "num_calls",
        "Calls",
        help="Calls of the module's forward at this place in the model, while the profiler"
        " ran",
    ),
    Column(
        "num_operators",
        "Operators",
        help="Operators that the module called itself: those called by other operators, and"
        " by modules in it, do not count",
    ),
)
_TIMES: Final = tuple(
    Column(key, title, unit="ms", help=words, bar=_part_of(key), share_of=_OF_ALL)
    for key, title, words in (
        (
            "host_ms",
            "Host\ntotal",
            (
                "Sum of the durations of its forward on the host, with the modules in it."
                " Python's tracer, which shows modules, makes them slower."
            ),
        ),
        (
            "host_self_ms",
            "Host\nself",
            "Host total less the modules and operators in it: its own Python",
        ),
        (
            "device_ms",
            "Device\ntotal",
            (
                "Sum of the durations of what its operators launched on the device, with the"
                " modules in it; what ran at the same time counts each"
            ),
        ),
        (
            "device_self_ms",
            "Device\nself",
            "Sum of the durations of what the operators that it called itself launched",
        ),
        (
            "backward_host_ms",
            "Backward\nhost",
            (
                "Sum on the host of the operators of backward whose forward operator lies in"
                " the module or below it. What names no forward operator counts for no module."
            ),
        ),
        (
            "backward_host_self_ms",
            "Backward\nhost self",
            "Backward host less that of the modules in it: of operators that it called itself",
        ),
        (
            "backward_device_ms",
            "Backward\ndevice",
            "Sum of the durations of what those launched on the device",
        ),
        (
            "backward_device_self_ms",
            "Backward\ndevice self",
            "Backward device less that of the modules in it",
        ),
    )
)
_BACKWARD: Final[Mapping[BackwardBy, str]] = MappingProxyType(
    {
        "arrows": "",
        "sequence_numbers": "Backward by sequence numbers: the trace has no"
        " forward-backward links.",
        "not_run": "No backward: none ran while the profiler did.",
        "not_linked": "No backward: the trace does not link its operators to a forward operator."
        " Profilers since torch 1.13 write forward-backward links.",
        "not_in_modules": "No backward: the forward operators that it names lie in no module"
        " of the trace.",
    }
)
"""Why backward's part is not known, or what it rests on where that is not usual."""


@of_profile("module_times", SourceQuery)
def module_times(
    run: RunSummary, choice: ProfileChoice, profile: TraceProfile, _query: SourceQuery
) -> ModuleTimesResponse:
    """The modules of a trace."""
    table = profile.modules
    parent = table.parent[:MAX_MODULES]
    has_devices = len(profile.trace.device_work.row) > 0
    knows_backward = table.backward_by in _KNOWN
    columns = [
        one.sent(one.numbers(getattr(table, one.attribute)[:MAX_MODULES]))
        for one in _CALLS
    ]
    for one in _TIMES:
        is_known = one.bar == "forward" or knows_backward
        if not is_known or not (has_devices or "host" in one.key):
            continue
        values = one.numbers(getattr(table, one.attribute)[:MAX_MODULES])
        # Those with the modules inside are summed over the outermost.
        counted = values if "self" in one.key else values[parent < 0]
        total = float(counted.sum())
        columns.append(one.sent(values, sum=total, longest=total))
    names = [name[:_MAX_MODULE] for name in table.name[:MAX_MODULES]]
    return ModuleTimesResponse(
        run=run,
        choice=choice,
        name=tuple(names),
        path=tuple(paths(names, parent.tolist())),
        parent=i32(parent),
        table=TableRows(
            columns=tuple(columns),
            num_rows=len(parent),
            num_all=len(table),
            usual="host_ms",
        ),
        backward=_BACKWARD[table.backward_by],
    )


def paths(names: Sequence[str], parents: Sequence[int]) -> list[str]:
    """Names of modules with those of their parents, which come before them."""
    found: list[str] = []
    for name, parent in zip(names, parents, strict=True):
        above = found[parent] if parent >= 0 else None
        # Lightning names a module by its whole path.
        is_whole = above is None or name.startswith(f"{above}.")
        found.append(name if is_whole else f"{above} / {name}")
    return found
