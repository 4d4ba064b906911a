"""Facts of many ranks as columns, over all their attempts."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from memboard.tb_plugin.analysis.series.growth import MIN_ROWS, warmup_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from memboard.tb_plugin.analysis.arrays import Floats
    from memboard.tb_plugin.budget import Budget
    from memboard.tb_plugin.facts.ranks.rank_facts import (
        FactsReader,
        FileFacts,
        Reading,
    )
    from memboard.tb_plugin.index.run import Run


class PerRank(NamedTuple):
    """A number per rank; NaN where it has none."""

    value: Floats
    step: Floats
    width: Floats
    """Rows of the bucket that gave it: 1 where it is of one row, or of an error."""

    @property
    def widest(self) -> int:
        """Rows in the widest bucket that gave one of them."""
        return int(np.nanmax(self.width, initial=1))


class RankNumbers:
    """Facts by rank and attempt."""

    def __init__(self, reader: FactsReader, run: Run, budget: Budget) -> None:
        """Ranks the budget does not reach are as they were, or have no numbers yet."""
        self._by_rank: dict[int, list[FileFacts]] = {}
        """Facts of each rank, in the order of its attempts."""
        self._by_attempt: dict[int, dict[int, FileFacts]] = {}
        """By its number, and by rank."""
        self._attempts = run.attempts
        self._unread: set[int] = set()
        self._outdated: set[int] = set()
        reader.make_missing(run.files.values(), budget)
        for attempt in run.attempts:
            of_attempt = self._by_attempt[attempt.index] = {}
            for rank, file in attempt.files.items():
                facts = reader.within(file, budget)
                if not reader.is_current(file):
                    self._outdated.add(rank)
                if facts is None:
                    self._unread.add(rank)
                else:
                    of_attempt[rank] = facts
                    self._by_rank.setdefault(rank, []).append(facts)

    def has(self, column: str) -> bool:
        """Whether any rank recorded the column."""
        return any(
            column in facts.readings
            for of_rank in self._by_rank.values()
            for facts in of_rank
        )

    def num_unread(self, ranks: Sequence[int]) -> int:
        """Ranks of which files are still being read: what is said of all may change."""
        return sum(rank in self._unread for rank in ranks)

    def are_whole(self, run: Run) -> bool:
        """Whether they are of all files of a run; large ones are opened at their ends first."""
        return bool(run.files) and run.is_whole and not self.num_unread(run.ranks)

    def are_current(self, ranks: Sequence[int]) -> bool:
        """Whether the numbers are of all that the ranks have written so far."""
        return self._outdated.isdisjoint(ranks)

    def last_of(self, ranks: Sequence[int]) -> dict[int, FileFacts]:
        """Facts of the last attempt of each rank that has any."""
        return {
            rank: files_facts[-1]
            for rank in ranks
            if (files_facts := self.of_rank(rank))
        }

    def of_rank(self, rank: int) -> Sequence[FileFacts]:
        """A rank's facts by attempt."""
        return self._by_rank.get(rank, ())

    def highest(self, ranks: Sequence[int], column: str) -> PerRank:
        """The highest reading of each rank."""
        return self._worst(ranks, lambda facts: facts.readings.get(column))

    def spread(self, rank: int, column: str) -> float:
        """Noise of a column from step to step, see `Reading.spread`."""
        readings = (facts.readings.get(column) for facts in self.of_rank(rank))
        spreads = (reading.spread for reading in readings if reading is not None)
        return max(spreads, default=0.0)

    def non_torch(self, ranks: Sequence[int]) -> PerRank:
        """Most that was used on each rank's device beside torch."""
        return self._worst(ranks, lambda facts: facts.non_torch)

    def fragmentation(self, ranks: Sequence[int], reserved: str) -> PerRank:
        """That of the attempt that reserved most."""

        def of(rank: int) -> Reading | None:
            fragmented = [f for f in self.of_rank(rank) if f.fragmentation is not None]
            most = max(
                fragmented, key=lambda f: f.readings[reserved].value, default=None
            )
            return None if most is None else most.fragmentation

        return _columns([of(rank) for rank in ranks])

    def total(self, ranks: Sequence[int], column: str) -> Floats:
        """A running count summed over attempts: each of them counts from zero."""
        totals = np.full(len(ranks), np.nan)
        for index, rank in enumerate(ranks):
            counts = [
                facts.readings[column].value
                for facts in self.of_rank(rank)
                if column in facts.readings
            ]
            if counts:
                totals[index] = sum(counts)
        return totals

    def last_steps(self, ranks: Sequence[int]) -> Floats:
        """The last step of each rank's last attempt."""
        steps = np.full(len(ranks), np.nan)
        for index, rank in enumerate(ranks):
            for facts in self.of_rank(rank):
                if facts.last_step is not None:
                    steps[index] = facts.last_step
        return steps

    def growing(self, ranks: Sequence[int]) -> tuple[list[FileFacts | None], int]:
        """Facts of one attempt, by rank, and its steps: a restart empties the memory.

        The latest attempt that is long enough to tell growth, else the longest.
        """
        best: tuple[int, int] = (0, 0)
        for attempt in reversed(self._attempts):
            of_attempt = self._by_attempt[attempt.index]
            num_steps = max(
                (of_attempt[rank].num_steps for rank in ranks if rank in of_attempt),
                default=0,
            )
            best = max(best, (num_steps, attempt.index))
            if num_steps - warmup_rows(num_steps) >= MIN_ROWS:
                best = (num_steps, attempt.index)
                break
        longest = self._by_attempt.get(best[1], {})
        return [longest.get(rank) for rank in ranks], best[0]

    def _worst(
        self, ranks: Sequence[int], pick: Callable[[FileFacts], Reading | None]
    ) -> PerRank:
        worst: list[Reading | None] = []
        for rank in ranks:
            highest = None
            for facts in self._by_rank.get(rank, ()):
                reading = pick(facts)
                if reading is None:
                    continue
                if highest is None or reading.value > highest.value:
                    highest = reading
            worst.append(highest)
        return _columns(worst)


def _columns(readings: Sequence[Reading | None]) -> PerRank:
    nothing = float("nan")
    return PerRank(
        np.array([nothing if r is None else r.value for r in readings], np.float64),
        np.array(
            [nothing if r is None or r.step is None else r.step for r in readings],
            np.float64,
        ),
        np.array([nothing if r is None else r.width for r in readings], np.float64),
    )
