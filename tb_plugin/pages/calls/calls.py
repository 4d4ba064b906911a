"""Route `/functions`: memory around each collected call, and what else was collected."""

from __future__ import annotations

import shlex
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Final

from memboard.collector.format.sizes import counted
from memboard.tb_plugin.analysis.series.functions import NO_CALLS
from memboard.tb_plugin.api.base import f64, i32
from memboard.tb_plugin.api.memory.calls import (
    CollectedFunction,
    FunctionsResponse,
    StatOfCalls,
)
from memboard.tb_plugin.api.overview import SourceStatus
from memboard.tb_plugin.contract.table import titled
from memboard.tb_plugin.facts.functions.captures import (
    histories,
    history_table,
    hook_values,
    saved_activations,
)
from memboard.tb_plugin.facts.functions.choice import (
    FunctionsQuery,
    ShownCalls,
    place,
    shown_of,
    usual_stat,
)
from memboard.tb_plugin.facts.functions.statistics import (
    call_columns,
    growth_text,
    over_ranks_of,
    stats_of,
    table_of_calls,
)
from memboard.tb_plugin.facts.view import View, why_absent
from memboard.tb_plugin.formats.recording.captures.modules import WindowKey
from memboard.tb_plugin.formats.recording.functions import (
    KINDS,
    FunctionsReader,
    bit_of,
)
from memboard.tb_plugin.index.catalogue import said_instead
from memboard.tb_plugin.server.views.run import of_run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from memboard.tb_plugin.api.memory.calls import HistoryReference, ModuleValues
    from memboard.tb_plugin.api.overview import SourceStatus
    from memboard.tb_plugin.facts.functions.statistics import Sides
    from memboard.tb_plugin.formats.memprofiler.names import FunctionKey
    from memboard.tb_plugin.index.run import Run

MAX_FUNCTIONS: Final = 1000

_SOURCES: Final = ("functions", "hooks", "activations", "history")
_NO_STATS: Final = (
    "Memory was not measured at the start and end of these calls:"
    " mb.record(functions=True), the default, measures it."
)


@of_run("functions", FunctionsQuery, reads=lambda readers: (readers.functions,))
def functions(view: View[FunctionsQuery], reader: FunctionsReader) -> FunctionsResponse:
    # Answer `/functions`
    run = view.run
    faults = run.num_faults
    collected = reader.collected(run, view.budget)
    shown = shown_of(reader, view, collected)
    stats: tuple[Sides, ...] = ()
    drawn: Sides | None = None
    over_ranks = None
    tables: list[ModuleValues] = []
    call = None if shown is None else shown.call
    if shown is not None:
        stats = stats_of(shown.snaps, shown.calls)
        drawn = _drawn(view, stats)
        if call is not None:
            where = (shown.entries, shown.key, call[0], call[1])
            tables = [*saved_activations(*where), *hook_values(*where)]
            over_ranks = over_ranks_of(reader, view, shown, drawn)
    run.note_new_faults(faults)  # reading may have found damage
    calls = call_columns(NO_CALLS if shown is None else shown.calls)
    names = () if view.query.stats is None else view.query.stats.split(",")
    in_table = [stat for stat in stats if stat.stat.name in names]
    if not in_table and drawn is not None:
        in_table = [drawn]
    references = _histories(reader, view, shown)
    own = [
        reference
        for reference in references
        if shown is not None and _is_of_call(reference, shown)
    ]
    by_call = [*own, *(reference for reference in references if reference not in own)]
    recorded = [
        reference
        for reference in references
        if not reference.path and reference.rank is not None
    ]
    return FunctionsResponse(
        run=view.summary,
        source="recorded" if run.made_of == "recording" else "imported",
        functions=_listed(collected),
        function=None if shown is None else shown.key.function,
        phase="" if shown is None else shown.key.phase,
        ranks=i32([] if shown is None else shown.ranks),
        rank=None if shown is None else shown.rank,
        calls=calls,
        num_calls=0 if shown is None else shown.num_calls,
        table=titled(
            table_of_calls(calls, in_table, view.query.sides.split(",")), _title(shown)
        ),
        stats=tuple(stat.stat for stat in stats),
        shown=tuple(sides.stat.name for sides in in_table),
        drawn=None
        if drawn is None
        else StatOfCalls(drawn.stat, f64(drawn.start), f64(drawn.end)),
        growth=_NO_STATS if drawn is None else growth_text(drawn, _name_of(shown)),
        attempt=None if call is None else call[0],
        iteration=None if call is None else call[1],
        selected=None if shown is None else shown.at,
        over_ranks=over_ranks,
        tables=tuple(tables),
        histories=tuple(by_call),
        history_table=history_table(by_call, len(own)),
        num_own_histories=len(own),
        export_command=""
        if not recorded
        else f"memboard export LOGDIR --run {shlex.quote(view.summary.name)}"
        f" --rank {recorded[0].rank} --history",
        module_window=None if shown is None else _window(shown),
        absent=_absent(run, has_calls=shown is not None),
        problems=run.problems,
    )


def _listed(
    collected: Mapping[FunctionKey, Mapping[int, int]],
) -> tuple[CollectedFunction, ...]:
    listed = []
    for key in sorted(collected, key=place)[:MAX_FUNCTIONS]:
        bits = reduce(or_, collected[key].values())
        kinds = tuple(kind for kind in KINDS if bits & bit_of(kind))
        listed.append(
            CollectedFunction(
                function=key.function,
                phase=key.phase,
                kinds=kinds,  # type: ignore[arg-type]  # the same words
                num_ranks=len(collected[key]),
            )
        )
    return tuple(listed)


def _title(shown: ShownCalls | None) -> str:
    """`4 calls of step, train, rank 0`."""
    if shown is None:
        return ""
    key, num, listed = shown.key, shown.num_calls, len(shown.calls)
    parts = [
        f"{counted(num, 'call')} of {key.function}",
        key.phase,
        f"rank {shown.rank}",
    ]
    if listed < num:
        parts.append(f"the newest {listed:,} listed")
    return ", ".join(filter(None, parts))


def _name_of(shown: ShownCalls | None) -> str:
    return "" if shown is None else shown.key.function


def _drawn(view: View[FunctionsQuery], stats: Sequence[Sides]) -> Sides | None:
    """The query's stat, else the usual one, else the first."""
    named = {stat.stat.name: stat for stat in reversed(stats)}
    wanted = named.get(view.query.stat or "") or named.get(usual_stat(named) or "")
    return wanted or next(iter(stats), None)


def _histories(
    reader: FunctionsReader, view: View[FunctionsQuery], shown: ShownCalls | None
) -> tuple[HistoryReference, ...]:
    """Of the rank shown; where no function is, of the query's or the lowest."""
    run, rank = view.run, view.query.rank
    if shown is not None:
        return histories(run, shown.rank, shown.entries)
    rank = rank if rank in run.ranks else min(run.ranks, default=None)
    if rank is None:
        return ()
    return histories(run, rank, reader.entries(run, rank, view.budget))


def _is_of_call(history_reference: HistoryReference, shown: ShownCalls) -> bool:
    key = (history_reference.function, history_reference.phase)
    return (
        key == shown.key
        and (history_reference.attempt, history_reference.iteration)
        == (shown.call or ())[:2]
    )


def _window(shown: ShownCalls) -> str | None:
    """Of the chosen call, where its modules were tracked."""
    call = shown.call
    if call is None or not shown.calls.kinds[shown.at] & bit_of("modules"):
        return None
    return WindowKey(call[0], *shown.key, call[1]).id


def _absent(run: Run, *, has_calls: bool) -> tuple[SourceStatus, ...]:
    """Why there is nothing, or what ranks without a kind say."""
    if run.made_of in ("snapshots", "traces"):
        return said_instead(run.made_of, len(run.ranks), "absent")
    return why_absent(
        run,
        *_SOURCES,
        reason="" if has_calls else "No call of a function was collected in this run.",
        remedy="Mark one with `@mb.profiled`, or a part of the loop with"
        ' `with rec.span("eval", memory=True):`.',
    )
