"""The tables of ranks and of their collectives, and what is said of them."""

from __future__ import annotations

from itertools import accumulate
from math import isnan
from typing import TYPE_CHECKING, Final, TypeVar

from memboard.collector.format.sizes import agreeing, counted, part_of
from memboard.tb_plugin.analysis.findings.text import duration_text, some_of
from memboard.tb_plugin.analysis.ranks.rank_steps import ascending, row_of_highest
from memboard.tb_plugin.contract.table import (
    MAX_TEXT,
    Column,
    rows_of,
    table_of,
    titled,
)
from memboard.tb_plugin.facts.traces.profiled import MS
from memboard.tb_plugin.formats.recording.rank_summaries import world_size_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.tb_plugin.analysis.arrays import Floats
    from memboard.tb_plugin.analysis.ranks.distributed import (
        CollectiveRow,
        GroupRow,
    )
    from memboard.tb_plugin.api.tables import TableRows
    from memboard.tb_plugin.formats.recording.rank_summaries import RankSummary

R = TypeVar("R", "GroupRow", "CollectiveRow")

MAX_ROWS: Final = 2_000
"""Of the table of collectives: those that take longest."""
MAX_GROUPS: Final = 200
MAX_NAMES_LENGTH: Final = 60_000
"""Of the names of groups in all, so that an answer stays small whatever they are."""

_NO_STEP: Final = "This rank has no such step"
_NOT_COMPARED: Final = (
    "Not known: not all ranks that take part in these collectives have a trace here"
)
_LAST_UNKNOWN: Final = (
    "Not known: not all ranks of this group have a trace here, and the last one may be "
    "among the others"
)
_RANK: Final = Column(
    "rank",
    "Rank",
    unit="rank",
    help="As the trace says it, or its file's name",
    absent="Neither the trace nor its file's name says the rank",
)
_PARTS: Final = (
    Column(
        "computation_ms",
        "Computation",
        unit="ms",
        help="Time in which kernels other than collectives ran, and no collective. Without a "
        "device: operators and annotations on the host, but not what only starts a "
        "collective or waits for it (c10d::, FSDP::), nor what a collective runs itself.",
        bar="kernel",
    ),
    Column(
        "overlap_ms",
        "Overlapped",
        unit="ms",
        help="Time in which a collective and computation ran at once: communication that is "
        "hidden",
        bar="hidden",
    ),
    Column(
        "communication_ms",
        "Exposed",
        unit="ms",
        help="Communication that nothing hides: a collective ran, and no computation. Waiting "
        "for other ranks is part of it.",
        bar="communication",
    ),
    Column(
        "other_ms",
        "Other",
        unit="ms",
        help="Step less computation, exposed and overlapped: loading, the host's own time, "
        "copies, waiting",
        bar="other",
    ),
)
_RANKS: Final = (
    _RANK,
    Column(
        "step_ms",
        "Step",
        unit="ms",
        help="Time of the step, to the end of the device work it launched; of several steps "
        "the mean",
        absent=_NO_STEP,
    ),
    Column(
        "waiting_ms",
        "Waited",
        unit="ms",
        help="Time in the step's collectives minus the transfer of data: it waited for the "
        "last rank; of several steps the mean. A link that is slow for this rank alone counts "
        "as well.",
        absent=_NOT_COMPARED,
    ),
    Column(
        "transfer_ms",
        "Data moved",
        unit="ms",
        help="Of the step's collectives, the shortest duration any rank measured of each; of "
        "several steps the mean. Collectives outside steps, and those at the end of the "
        "profiled window, which not all traces show, are left out.",
        absent=_NOT_COMPARED,
    ),
    *_PARTS,
)
_KIND: Final = Column(
    "kind",
    "Collective",
    unit="text",
    help="By the kernel's name, and the collective's own metadata where the trace has them",
)
_GROUP: Final = Column(
    "group",
    "Group",
    unit="text",
    help="The process group, as the profiler names it",
    absent="The trace does not name it",
)
_GROUPS: Final = (
    _KIND,
    _GROUP,
    Column("num_ranks", "Ranks", help="Ranks whose traces show these collectives"),
    Column(
        "num_matched",
        "Collectives",
        unit="count",
        help="Collectives that several of the ranks show, over the whole cycle: by the "
        "profiler's sequence number, else by their order",
    ),
    Column(
        "mean_skew_ms",
        "Mean skew",
        unit="ms",
        help="How long the first rank waits for the last one, on average: the longest "
        "duration of a collective less its shortest. No clocks are compared.",
        absent=_LAST_UNKNOWN,
        bar="other",
    ),
    Column(
        "max_skew_ms",
        "Largest skew",
        unit="ms",
        help="Of the collective in which the first rank waited longest",
        absent=_LAST_UNKNOWN,
    ),
)
_COLLECTIVES: Final = (
    _RANK,
    _KIND,
    _GROUP,
    Column(
        "num_calls",
        "Calls",
        unit="count",
        help="Collectives of this kind and group, over the whole cycle",
    ),
    Column(
        "num_bytes",
        "Bytes",
        unit="bytes",
        help="Elements times bytes of an element, over all calls: of what goes into all_reduce, "
        "reduce, reduce_scatter, broadcast, scatter and send; of others what comes out",
        absent="Not in the trace",
    ),
    Column(
        "total_ms",
        "Total",
        unit="ms",
        help="Sum of the calls' durations, waiting included; those at the same time count each",
    ),
    Column(
        "mean_ms",
        "Mean",
        unit="ms",
        help="Total ÷ calls: the latency of one, waiting included",
    ),
    Column(
        "transfer_ms",
        "Data moved",
        unit="ms",
        help="Without waiting for other ranks: the shortest duration any rank measured of each "
        "call",
        absent=_NOT_COMPARED,
    ),
    Column(
        "bus_bytes_per_second",
        "Bus bandwidth",
        unit="bytes_per_second",
        help="nccl-tests' definition over data moved: bytes * 2(n-1)/n of all_reduce, (n-1)/n "
        "of all_gather, reduce_scatter and all_to_all, else 1, ÷ time. To be compared "
        "with the link's speed.",
        absent="Not known: the trace does not say the bytes, or a rank's trace is missing",
    ),
    Column(
        "lead_seconds",
        "Others waited",
        unit="excess_seconds",
        help="What the other ranks waited in these calls beyond this one's own waiting, in "
        "the mean of them, summed over the calls; negative: it waited for them",
        absent=_NOT_COMPARED,
    ),
)


def ranks_table(
    ranks: Sequence[int], times_ns: Floats, transfer_ns: Floats, all_ns: Floats
) -> TableRows:
    """`times_ns`: (4, ranks) of step, computation, communication and overlap."""
    total, computation, communication, overlap = times_ns
    values = {
        "rank": ranks,
        "step_ms": total,
        "computation_ms": computation - overlap,
        "overlap_ms": overlap,
        "communication_ms": communication - overlap,
        "other_ms": total - computation - communication + overlap,
        "transfer_ms": transfer_ns,
        "waiting_ms": all_ns - transfer_ns,
    }
    highest = row_of_highest(total)
    longest = 0.0 if highest is None else float(total[highest]) / MS
    options = {"longest": longest, "absent": _NO_STEP}
    more = {column.key: options for column in _PARTS}
    return titled(
        table_of(_RANKS, values, "-rank", more=more),
        "Ranks",
        "",
        "No trace of this cycle is open yet.",
    )


def groups_table(rows: Sequence[GroupRow]) -> TableRows:
    """The longest waits in all first, as they come."""
    kept = rows_of(_GROUPS, _bounded(rows, MAX_GROUPS), "", len(rows))
    return titled(kept, "Collectives by process group")


def collectives_table(rows: Sequence[CollectiveRow]) -> TableRows:
    """Those that took longest; what was not compared says of how many calls it is."""
    kept = _bounded(rows, MAX_ROWS)
    sizes = [row.group_size for row in kept]
    compared = tuple(
        ""
        if row.num_compared >= row.num_calls
        else part_of(row.num_compared, row.num_calls, "call")
        for row in kept
    )
    table = rows_of(
        _COLLECTIVES,
        kept,
        "total_ms",
        len(rows),
        group={
            "notes": tuple(
                "" if size is None else counted(size, "rank") for size in sizes
            )
        },
        transfer_ms={"notes": compared},
        lead_seconds={"notes": compared},
    )
    row_text = f"{counted(len(rows), 'row')}, one per rank, kind and group"
    return titled(table, "Collectives", row_text)


def _bounded(rows: Sequence[R], most: int) -> Sequence[R]:
    lengths = accumulate(min(len(row.group), MAX_TEXT) for row in rows[:most])
    return rows[: sum(length <= MAX_NAMES_LENGTH for length in lengths)]


def step_text(ranks: TableRows, late: int | None) -> str:
    """What a step's time goes to, of the rank in the middle; empty without any.

    `late`: the straggler, which is in no middle, though all steps may take equally long.
    """
    of = {column.key: column.numbers for column in ranks.columns}
    order = ascending(of["step_ms"])
    order = order[of["rank"][order] != late]
    if not len(order):
        return ""
    row = order[(len(order) - 1) // 2]
    parts = sorted(
        ((of[column.key][row], column.title.lower()) for column in _PARTS), reverse=True
    )
    rank = of["rank"][row]
    whose = " on the median rank" if len(order) > 1 else f" on rank {rank:.0f}"
    parts_text = ", ".join(f"{title} {_text(ms)}" for ms, title in parts if ms > 0)
    whose = "" if isnan(rank) else whose
    return f"A step takes {_text(of['step_ms'][row])}{whose}: {parts_text}."


def missing_text(shown: Sequence[RankSummary]) -> str:
    """Which ranks have no trace here, and what is not known without them."""
    world_size = world_size_of(shown)
    ranks_shown = {summary.rank for summary in shown}
    missing = [rank for rank in range(world_size) if rank not in ranks_shown]
    if not missing:
        return ""
    num = world_size - len(missing)
    have = agreeing(num, "has", "have")
    ranks = agreeing(len(missing), "rank", "ranks")
    none = agreeing(len(missing), "has", "have")
    return (
        f"{part_of(num, world_size, 'rank')} {have} a trace here; {ranks}"
        f" {some_of(missing)} {none} none. What each rank did is known; waiting and"
        " bandwidth, of collectives among these ranks alone."
    )


def spread_text(ranks: TableRows) -> str:
    """How far apart ranks are in exposed communication; empty of one rank, or of none."""
    of = {column.key: column.numbers for column in ranks.columns}
    exposed = of["communication_ms"]
    order = ascending(exposed)
    if len(order) < 2 or not exposed[order[-1]] > 0:
        return ""
    ends = [
        f"{_text(exposed[row])} (rank {of['rank'][row]:.0f})" for row in order[[0, -1]]
    ]
    middle = exposed[order[len(order) // 2]]
    median = "" if len(order) == 2 else f", median {_text(middle)}"
    return f"Exposed communication of a step: {' to '.join(ends)}{median}."


def _text(ms: float) -> str:
    return duration_text(float(ms) / 1e3)
