"""The table of ranks by what they cost the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from memboard.collector.format.sizes import agreeing, part_of
from memboard.tb_plugin.analysis.findings.text import duration_text
from memboard.tb_plugin.contract.table import Column, table_of, titled

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from memboard.tb_plugin.analysis.ranks.stragglers import Straggler
    from memboard.tb_plugin.api.tables import TableRows

MAX_ROWS: Final = 64
_RANKS: Final = (
    Column(
        "rank",
        "Rank",
        unit="rank",
        help="Late: far beyond the median rank, relative to the usual spread of the ranks",
    ),
    Column(
        "host",
        "Host",
        unit="text",
        help="Where the rank runs: ranks of one host that are late together point at the host",
    ),
    Column(
        "slowest_share",
        "Slowest in",
        unit="share",
        help="Steps in which this rank was the slowest of all ÷ steps. Of equal ranks each has "
        "about 1 ÷ their number.",
    ),
    Column(
        "excess_seconds",
        "Excess step time",
        unit="excess_seconds",
        help="Median over the steps of its step time less that of the median rank",
    ),
    Column(
        "words",
        "Largest excess",
        unit="text",
        help="The part that is longest beyond the median rank's; ranks wait in communication "
        "and backward, so those do not count",
    ),
    Column("part", unit="text"),
    Column("part_excess_seconds", unit="excess_seconds"),
    Column("stands_out", unit="yes"),
)
_MEASURED: Final = tuple(
    column.key for column in _RANKS if column.key not in ("host", "words")
)


def straggler_table(
    ordered: Sequence[Straggler],
    hosts: Mapping[int, str],
    num_standing_out: int,
    num_read: int,
    num_left_out: int,
    num_per_column: int,
) -> TableRows:
    """The first ranks of `ordered`, those that cost most first.

    Args:
        ordered: all ranks that were compared.
        hosts: by rank.
        num_standing_out: ranks that findings may name.
        num_read: ranks that have step times.
        num_left_out: ranks that could not be compared.
        num_per_column: steps whose mean is compared.
    """
    rows = ordered[:MAX_ROWS]
    values = {
        "host": [hosts[straggler.rank] for straggler in rows],
        "words": [_words(straggler) for straggler in rows],
        **{key: [getattr(straggler, key) for straggler in rows] for key in _MEASURED},
    }
    notes = tuple("late" if straggler.stands_out else "" for straggler in rows)
    table = table_of(_RANKS, values, "", more={"rank": {"notes": notes}})
    summary = _summary(
        num_standing_out, num_read, len(ordered), num_left_out, num_per_column
    )
    return titled(table, "Stragglers", "; ".join(summary), "No rank has step times.")


def _summary(
    num_out: int, num_ranks: int, num_found: int, num_left_out: int, per_column: int
) -> Iterator[str]:
    """How many ranks stand out, of how many; and what was not compared."""
    if num_out:
        stand = agreeing(num_out, "stands", "stand")
        yield f"{part_of(num_out, num_ranks, 'rank')} {stand} out"
    elif num_ranks == 1:
        yield "one rank alone is compared with no other"
    else:
        yield f"no rank of {num_ranks:,} stands out"
    listed = min(num_found, MAX_ROWS)
    if 0 < listed < num_ranks:
        most = f"the {listed:,} that cost most are"
        yield f"{agreeing(listed, 'the one that costs most is', most)} listed"
    if num_left_out:
        yield f"{num_left_out:,} could not be compared"
    if per_column > 1:
        yield f"means of {per_column:,} steps are compared"


def _words(straggler: Straggler) -> str:
    """`rank 12: dataloader +38.0 ms`; what it has more of than the median rank."""
    if straggler.part:
        return f"rank {straggler.rank}: {straggler.part} +{duration_text(straggler.part_excess_seconds)}"
    if straggler.excess_seconds > 0:
        return f"rank {straggler.rank}: step +{duration_text(straggler.excess_seconds)}"
    return f"rank {straggler.rank}: as fast as the others"
