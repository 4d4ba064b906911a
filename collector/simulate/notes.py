"""The notes of a simulated rank: its sources, epochs and faults, as a recorder says it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from collector.format.oom import REPORT
from collector.format.records import Note
from collector.simulate.faults import RANKS_PER_HOST
from collector.simulate.history.captures import MAX_HISTORY_RANKS, has_history
from collector.simulate.host import TIMED_TABLES
from collector.simulate.modules.captures import MAX_TRACKED_RANKS, is_tracked
from collector.simulate.ranks import STARTED_NS, STEPS_PER_EPOCH
from collector.simulate.span_captures import MAX_SPAN_RANKS, has_spans

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.simulate.faults import Fault
    from collector.simulate.ranks import RankBatch

_STEP_SOURCES: Final = ("device", "rss")

_OOM_VALUES: Final = frozenset(
    {
        "allocated_peak_bytes",
        "active_peak_bytes",
        "reserved_bytes",
        "inactive_split_bytes",
        "num_alloc_retries",
        "num_ooms",
    }
)
"""What the note of an out-of-memory error repeats of its step."""


def rank_notes(
    batch: RankBatch,
    row: int,
    faults: Sequence[Fault],
    num_ranks: int,
    *,
    everything: bool,
) -> list[Note]:
    """Notes of the rank in a batch's `row`.

    Without `everything` the run holds eight metrics, and nothing but its sources and
    faults is noted.
    """
    rank = batch.ranks[row]
    num_steps = int(batch.num_steps[row])
    times = batch.time_ns[row]
    notes = [
        Note(kind="source", time_ns=STARTED_NS, step=None, data=d)
        for d in _sources(rank, everything=everything)
    ]
    if everything:
        notes += [
            Note(kind="source", time_ns=STARTED_NS, step=None, data=data)
            for data in (
                _modules_source(is_tracked=is_tracked(rank, faults, num_ranks)),
                _history_source(has_history=has_history(rank, faults, num_ranks)),
                _spans_source(has_spans=has_spans(rank, faults)),
            )
        ]
    if everything:
        for epoch, step in enumerate(range(0, num_steps, STEPS_PER_EPOCH)):
            data = {"epoch": epoch, "length": STEPS_PER_EPOCH}
            # An epoch is announced before its first step ends.
            at = STARTED_NS if step == 0 else int(times[step - 1])
            notes.append(Note(kind="epoch", time_ns=at, step=step, data=data))
    for fault in faults:
        # Said by the (first) rank concerned, and by rank 0, which speaks for the run.
        if rank not in (0, fault.ranks[0]):
            continue
        at = int(times[min(fault.first_step, num_steps - 1)])
        label = {"label": f"planted: {fault.words}"}
        notes.append(Note(kind="mark", time_ns=at, step=fault.first_step, data=label))
        if fault.kind == "oom" and rank == fault.ranks[0]:
            report = 1 if everything else None
            notes.append(_oom_note(batch, row, fault, report))
    return notes


def _oom_note(batch: RankBatch, row: int, fault: Fault, report: int | None) -> Note:
    step = fault.last_step
    names = [name for name in batch.columns if name in _OOM_VALUES]
    return Note(
        kind="oom",
        time_ns=int(batch.time_ns[row, step]),
        step=step,
        data={
            "message": "simulated: out of memory",
            "values": {name: int(batch.columns[name][row, step]) for name in names},
            REPORT: report,
        },
    )


def _sources(rank: int, *, everything: bool) -> list[dict[str, Any]]:
    """What a real rank says about its sources, with a simulated run's reasons."""
    if everything:
        off = "in a simulated run the first rank of each host samples the host"
        remedy = "Look at the first rank of the host."
    else:
        off = "this simulated run holds eight metrics"
        remedy = "Simulate it with all metrics."
    first_of_host = rank % RANKS_PER_HOST == 0
    recorded = dict.fromkeys(_STEP_SOURCES, True)
    for table in TIMED_TABLES:
        recorded[table.name] = everything and (first_of_host or not table.per_host)
    return [
        {
            "name": name,
            "status": "recorded" if is_recorded else "off",
            "reason": "" if is_recorded else off,
            "remedy": "" if is_recorded else remedy,
            "cost": "none: simulated",
        }
        for name, is_recorded in recorded.items()
    ]


def _modules_source(*, is_tracked: bool) -> dict[str, Any]:
    """What a rank says about the memory of modules."""
    off = f"in a simulated run about {MAX_TRACKED_RANKS} ranks track their modules"
    return {
        "name": "modules",
        "status": "recorded" if is_tracked else "off",
        "reason": "" if is_tracked else off,
        "remedy": "" if is_tracked else "Look at one that does.",
        "cost": "none: simulated",
    }


def _history_source(*, has_history: bool) -> dict[str, Any]:
    """What a rank says about the allocator's history."""
    off = (
        f"in a simulated run about {MAX_HISTORY_RANKS} ranks, and those with a fault,"
        " capture their allocator"
    )
    return {
        "name": "history",
        "status": "recorded" if has_history else "off",
        "reason": "" if has_history else off,
        "remedy": "" if has_history else "Look at one that does.",
        "cost": "none: simulated",
    }


def _spans_source(*, has_spans: bool) -> dict[str, Any]:
    """What a rank says about its spans."""
    off = (
        f"in a simulated run {MAX_SPAN_RANKS} ranks, and those with a fault, have spans"
    )
    return {
        "name": "spans",
        "status": "recorded" if has_spans else "off",
        "reason": "" if has_spans else off,
        "remedy": "" if has_spans else "Look at one that has.",
        "cost": "none: simulated",
    }
