"""The peaks of all ranks' histories, a few of which are opened at each question."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from memboard.tb_plugin.analysis.allocator.lifetimes import OOM
from memboard.tb_plugin.analysis.allocator.live import by_stack, live_rows
from memboard.tb_plugin.analysis.categories.frames import stack_label
from memboard.tb_plugin.contract.errors import NotReadyError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from memboard.tb_plugin.analysis.arrays import Floats
    from memboard.tb_plugin.budget import Budget
    from memboard.tb_plugin.cache import Cache
    from memboard.tb_plugin.index.history_list import FoundHistory
    from memboard.tb_plugin.index.run import Run
    from memboard.tb_plugin.jobs.histories import Histories
    from memboard.tb_plugin.jobs.open_history import OpenHistory


MAX_RANKS: Final = 4_096

OPEN_AT_ONCE: Final = 4
"""Of other ranks: more would keep the history that is being looked at waiting."""

WAIT_SECONDS: Final = 0.3

_KEPT_LINES: Final = 200

MAX_LINES: Final = 20
"""Lines by which ranks are compared."""

_FACTS_BYTES: Final = 40_000


@dataclass(frozen=True, slots=True)
class RankFacts:
    """What is kept of one rank's history."""

    device: int
    peak_bytes: int
    peak_moment: int
    reserved_bytes: int
    lines: Mapping[str, int]
    """Bytes at the peak by line, of those that hold most."""
    num_ooms: int


class LineBytes(NamedTuple):
    """Live bytes at the peaks of several histories, by the line that allocated them."""

    lines: Sequence[str]
    """Those in which histories differ most first."""
    num_bytes: Floats
    """(lines, histories); NaN of a history that is not read."""

    def most_beyond_median(self, place: int) -> tuple[str, float]:
        """The line in which a history is farthest above the median, and by how much."""
        if not self.lines:
            return "", 0.0
        beyond = self.num_bytes[:, place] - np.nanmedian(self.num_bytes, axis=1)
        index = int(np.nanargmax(beyond))
        return self.lines[index], float(beyond[index])


def line_bytes(facts: Mapping[int, RankFacts], num_histories: int) -> LineBytes:
    """The lines of all histories; `facts` by the place of a history."""
    lines = _lines([facts[place] for place in sorted(facts)])
    num_bytes = np.full((len(lines), num_histories), np.nan)
    for place, own in facts.items():
        num_bytes[:, place] = [own.lines.get(line, 0) for line in lines]
    return LineBytes(lines, num_bytes)


def _lines(facts: Sequence[RankFacts]) -> list[str]:
    """Lines by how much histories differ in them, then by how much they hold."""
    by_line: dict[str, list[int]] = {}
    for history in facts:
        for line, num_bytes in history.lines.items():
            by_line.setdefault(line, []).append(num_bytes)

    def importance(line: str) -> tuple[int, int]:
        sizes = by_line[line]
        lowest = min(sizes) if len(sizes) == len(facts) else 0
        return max(sizes) - lowest, max(sizes)

    return sorted(by_line, key=importance, reverse=True)[:MAX_LINES]


def median_peak(facts: Sequence[RankFacts]) -> float | None:
    """Bytes; None without any history."""
    return (
        float(np.median([rank_facts.peak_bytes for rank_facts in facts]))
        if facts
        else None
    )


def facts_of(history: OpenHistory) -> RankFacts | None:
    """The numbers of the history's default device; None where it has no device."""
    number = history.default_device
    if number is None or history.devices[number].is_host:
        return None
    device = history.device(number)
    peak_bytes, moment = device.active.peak
    stacks = history.snapshot.stacks
    sums = by_stack(device.lives, live_rows(device.lives, moment))
    lines: dict[str, int] = {}
    for stack, num_bytes in zip(
        sums.stack.tolist(), sums.num_bytes.tolist(), strict=True
    ):
        label = stack_label(stacks, stack)
        lines[label] = lines.get(label, 0) + num_bytes
    largest = sorted(lines.items(), key=lambda line: -line[1])[:_KEPT_LINES]
    return RankFacts(
        device=number,
        peak_bytes=peak_bytes,
        peak_moment=moment,
        reserved_bytes=int(device.reserved.at(np.array([moment]))[0]),
        lines=dict(largest),
        num_ooms=len(device.replay.device.events.of_action(OOM)),
    )


def _facts_or_reason(history: OpenHistory) -> RankFacts | str:
    return facts_of(history) or "It holds nothing of any device."


class RankHistories:
    """Facts of histories, found a few at a time."""

    def __init__(self, reader: Histories, cache: Cache) -> None:
        self._reader = reader
        self._cache = cache

    def read(
        self, run: Run, chosen: Sequence[FoundHistory], budget: Budget
    ) -> tuple[dict[int, RankFacts], dict[int, str]]:
        """By place in `chosen`: the facts that are known, and why others never will be."""
        facts: dict[int, RankFacts] = {}
        problems: dict[int, str] = {}
        num_opening = 0
        for place, history in enumerate(chosen):
            facts_or_reason = self._cache.get(("rank facts", history.key))
            if (
                facts_or_reason is None
                and num_opening < OPEN_AT_ONCE
                and budget.allows()
            ):
                facts_or_reason = self._opened(run, history)
                num_opening += facts_or_reason is None
            if isinstance(facts_or_reason, RankFacts):
                facts[place] = facts_or_reason
            elif facts_or_reason is not None:
                problems[place] = facts_or_reason
        return facts, problems

    def _opened(self, run: Run, history: FoundHistory) -> RankFacts | str | None:
        """What is found of one, or why nothing can be; None: it is still being opened."""
        try:
            opening = self._reader.open(run, history)
        except NotReadyError:
            return None
        opening.wait(WAIT_SECONDS)
        facts_or_reason = opening.derived(_facts_or_reason)
        if facts_or_reason is not None:
            self._reader.tidy()
        elif opening.problem is not None:
            facts_or_reason = opening.problem.what
        if facts_or_reason is not None:
            self._cache.put(("rank facts", history.key), facts_or_reason, _FACTS_BYTES)
        return facts_or_reason


def belonging(
    listed: Sequence[FoundHistory], asked: FoundHistory
) -> tuple[str, list[FoundHistory]]:
    """What the histories have in common, and one of each rank, by rank.

    Of a rank the last one of the same origin, label, call and side as the one asked
    for; where a rank has none, its newest.
    """
    best: dict[int, tuple[bool, float, FoundHistory]] = {}
    for history in listed:
        rank = history.reference.rank
        if rank is None:
            continue
        key = (_alike(history) == _alike(asked), history.reference.time_ms)
        nearest = best.get(rank)
        if nearest is None or key >= nearest[:2]:
            best[rank] = (*key, history)
    asked_rank = asked.reference.rank
    if asked_rank is not None:
        best[asked_rank] = (True, 0.0, asked)
    ranks = sorted(best)
    if len(ranks) > MAX_RANKS:
        spread = np.linspace(0, len(ranks) - 1, MAX_RANKS).astype(np.int64)
        ranks = [ranks[place] for place in spread.tolist()]
    return _title(asked), [best[rank][2] for rank in ranks]


def _alike(history: FoundHistory) -> tuple[object, ...]:
    of = history.reference
    return (
        history.origin,
        of.label if history.origin == "by_hand" else "",
        of.function,
        of.phase,
        of.iteration,
        of.context,
        of.step if history.origin == "file" else None,
    )


def _title(asked: FoundHistory) -> str:
    of = asked.reference
    if of.function:
        call = f"{of.function}, call {of.iteration}"
        return f"{call}, {of.context}" if of.context else call
    if of.label:
        return "out of memory" if of.label == "oom" else of.label
    return "newest" if of.step is None else f"step {of.step}"
