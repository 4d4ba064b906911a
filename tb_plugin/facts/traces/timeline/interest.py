"""The ranks that a timeline opens on: waited for, pinned, or out of memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from memboard.tb_plugin.facts.traces.cycle_ranks import newest_ranks, straggler_of
from memboard.tb_plugin.facts.traces.profiled import profiler_traces

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.tb_plugin.facts.readers import RunReaders
    from memboard.tb_plugin.facts.traces.run_traces import TraceListing


class Interest(NamedTuple):
    """A rank, and why it is looked at first."""

    rank: int
    why: str  # `the straggler`
    step: int | None = None
    """The step that it is about; None: none by itself."""


def of_interest(
    readers: RunReaders, run_id: str, listed: TraceListing, pinned: Sequence[int]
) -> tuple[list[Interest], bool]:
    """The rank that others wait for, those pinned and out of memory; whether all is known."""
    with readers.reading(run_id) as (run, _):
        ooms = run.notes.events("oom")
    traces = profiler_traces(listed.sources)
    ranks = newest_ranks(readers, run_id, traces)
    straggler = straggler_of(readers, listed.summary, ranks.summaries, ranks.cycle)
    late = None if straggler.finding is None else straggler.finding.rank
    interests = [] if late is None else [Interest(late, "the straggler")]
    interests += [Interest(rank, "which is pinned") for rank in pinned]
    # Of each rank the last time.
    ends = {oom.rank: oom.step for oom in ooms}
    interests += [
        Interest(rank, "which ran out of memory", step) for rank, step in ends.items()
    ]
    return list({interest.rank: interest for interest in reversed(interests)}.values())[
        ::-1
    ], straggler.is_final and not ranks.is_opening
