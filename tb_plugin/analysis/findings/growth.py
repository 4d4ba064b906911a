"""The finding about device memory that grows from step to step, before anything failed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from memboard.collector.format.sizes import agreeing, counted
from memboard.tb_plugin.analysis.findings.conditions import (
    advice_if,
    advice_of,
    unknown_line_advice,
)
from memboard.tb_plugin.analysis.findings.cycles import (
    EXPERIMENT_ADVICE,
    UNCOLLECTED_ADVICE,
)
from memboard.tb_plugin.analysis.findings.text import (
    at_lines,
    let_go_text,
    num_bytes,
    of_rank,
    pools_text,
    share_text,
    size_text,
    some_of,
)
from memboard.tb_plugin.analysis.series.growth import STILL, RankGrowth
from memboard.tb_plugin.api.findings import Finding, Place

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from memboard.tb_plugin.analysis.findings.conditions import Setup
    from memboard.tb_plugin.api.findings import Advice

SOON: Final = 1000.0
"""Times the steps recorded: what runs full later is worth no warning."""

GROWTH_RULE: Final = (
    "memory at the end of steps rises by six times its noise, and in the last third"
    f" of the steps still by {share_text(STILL)} of that pace"
)


@dataclass(frozen=True, slots=True)
class GrowingRank(RankGrowth):
    """One rank whose memory of the device grows."""

    capacity: float | None
    """Of its device; None: not known."""
    num_full_collections: int | None = None
    """Of Python's garbage collector in these steps; None: not recorded."""

    @property
    def steps_left(self) -> float:
        """Until its peak reaches the capacity; infinite where that is not known."""
        if self.capacity is None:
            return math.inf
        return max(0.0, self.capacity - self.peak) / self.slope

    @property
    def is_soon(self) -> bool:
        """Whether it is worth a warning."""
        return self.capacity is None or self.steps_left <= SOON * self.num_steps


@dataclass(frozen=True, slots=True)
class RetainedMemory:
    """What an allocator history says of the growth."""

    lines: tuple[str, ...]
    """Lines that retain memory, the most first; empty while the history is being read."""
    place: Place
    in_pools: bool = False
    """Private memory pools hold it: of CUDA graphs, or of a MemPool."""
    trains: bool = False
    """A training was seen: what is retained may have a graph."""


def growing_memory(
    ranks: Sequence[GrowingRank], retained: RetainedMemory | None, setup: Setup
) -> Finding | None:
    """Device memory: of ranks that grow, the one that is full first leads.

    `retained`: of that rank, where a history says it; `setup`: of its process.
    """
    if not ranks:
        return None
    lines = () if retained is None else retained.lines
    first = min(ranks, key=lambda rank: (rank.steps_left, -rank.slope))
    sentence = (
        f"The device memory of rank {first.rank} grows {size_text(first.slope)} per step,"
        f" {size_text(first.rise)} over the last {counted(first.num_steps, 'step')}"
    )
    short = f"Grows {size_text(first.slope)} per step"
    if lines:
        retained_text = f", retained{at_lines(lines[:1])}"
        sentence += retained_text
        short += retained_text
    sentence += "."
    if first.capacity is not None:
        left = round(first.steps_left)
        sentence += (
            f" At this pace all {size_text(first.capacity)} will be full at about step"
            f" {first.last_step + left:,}, {counted(left, 'step')} after the last recorded"
            " one."
        )
        short += f"; full at about step {first.last_step + left:,}"
    others = sorted(rank.rank for rank in ranks if rank.rank != first.rank)
    if others:
        word = agreeing(len(others), "Rank", "Ranks")
        verb = agreeing(len(others), "grows", "grow")
        sentence += f" {word} {some_of(others)} {verb}, too."
    return Finding(
        id=f"growing_memory-{first.rank}",
        key="growing_memory",
        severity="warning" if first.is_soon else "info",
        title="Memory grows",
        sentence=sentence,
        short=f"{short}.",
        rank=first.rank,
        line=lines[0] if lines else "",
        cost=first.rise,
        evidence=(
            num_bytes("growth", "growth per step", first.slope, f"rank {first.rank}"),
            num_bytes(
                "rise", "growth in these steps", first.rise, f"rank {first.rank}"
            ),
            num_bytes("peak", "peak", first.peak, f"rank {first.rank}", sure=False),
        ),
        advice=tuple(_advice(first, retained, setup)),
        place=of_rank("timeline", first.rank) if retained is None else retained.place,
        rule=GROWTH_RULE,
    )


def _advice(
    first: GrowingRank, retained: RetainedMemory | None, setup: Setup
) -> Iterator[Advice]:
    if retained is None or not retained.lines:
        yield from unknown_line_advice(setup, replayed=False)
    else:
        cause = (
            f"Find what retains memory from step to step{at_lines(retained.lines[:1])}"
        )
        text = let_go_text(cause, trains=retained.trains)
        if retained.in_pools:
            text = pools_text(cause)
        yield advice_of(text, first.rise, "growth")
    runs = first.num_full_collections
    yield from advice_if(runs == 0, UNCOLLECTED_ADVICE, None, "growth")
    is_unexplained = retained is None and runs is None
    yield from advice_if(is_unexplained, EXPERIMENT_ADVICE, None, "growth")
