"""Rules over the ranks of a profiling cycle: which one the others wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tb_plugin.analysis.findings.finding import Advice, Evidence, Finding, Place
from tb_plugin.analysis.findings.text import share_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tb_plugin.analysis.ranks.distributed import ComparedRanks

LAST_SHARE: Final = 0.5
"""Of the collectives of several ranks, in which one rank came last."""
WAITING_SHARE: Final = 0.05
"""Of the steps' time, that the others waited on average."""
_FEWEST: Final = 10


def last_in_collectives(
    together: ComparedRanks, steps_ns: Mapping[int, int]
) -> Iterator[Finding]:
    """The rank that the others wait for, where it is mostly one and costs something.

    `steps_ns`: by rank, what its profiled steps took.
    """
    num = together.num_matched
    if num < _FEWEST or len(steps_ns) < 2:
        return
    last: dict[int, int] = {}
    for row in together.rows:
        last[row.rank] = last.get(row.rank, 0) + (row.num_last or 0)
    rank = max(last, key=lambda one: last[one])
    share = last[rank] / num
    waited = sum(row.waiting_ns or 0 for row in together.rows if row.rank != rank)
    of_ns = sum(took for other, took in steps_ns.items() if other != rank)
    cost = waited / of_ns if of_ns else 0.0
    if share <= LAST_SHARE or cost <= WAITING_SHARE:
        return
    yield Finding(
        id=f"late_rank-{rank}",
        key="late_rank",
        severity="warning",
        title="Straggler",
        sentence=f"Rank {rank} comes last: the others wait for it {share_text(cost)} of"
        " their time.",
        rank=rank,
        cost=100 * cost,
        unit="percent",
        evidence=(
            Evidence(
                *("last", "collectives it came to last", 100 * share, "percent"),
                f"{num:,} that all their ranks' traces show",
                decisive=True,
            ),
            Evidence(
                *("waiting", "the others wait for it", 100 * cost, "percent"),
                "their profiled steps",
                decisive=True,
            ),
        ),
        advice=(
            Advice(
                "Compare its computation and loading with the others' (Steps, Host):"
                " its batches, its GPU's clock and temperature, its host's load.",
                100 * cost,
                "percent",
                ("waiting",),
            ),
        ),
        place=Place("steps", f"Show rank {rank}", rank=rank),
        rule=f"last in more than {share_text(LAST_SHARE)} of the collectives, waiting"
        f" above {share_text(WAITING_SHARE)}",
    )
