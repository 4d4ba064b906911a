"""The other ranks: what each had last, and how it ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import structs

from tb_plugin.analysis.findings.finding import PeerState
from tb_plugin.analysis.oom.error import Growth
from tb_plugin.contract.wire import finite
from tb_plugin.pages.overview.facts import ALLOCATED, RESERVED

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from tb_plugin.budget import Budget
    from tb_plugin.formats.recording.rank_file import RankFile
    from tb_plugin.index.run import AttemptFiles, Run
    from tb_plugin.pages.overview.facts import FactsReader, FileFacts

MAX_PEERS: Final = 64
"""Shown of an error."""


class Peers:
    """What the files of one start of a job say."""

    def __init__(
        self, run: Run, reader: FactsReader, attempt: AttemptFiles, budget: Budget
    ) -> None:
        self._facts: dict[int, FileFacts] = {}
        self._ended: dict[int, str] = {}
        reader.make_missing(attempt.files.values(), budget)
        for rank, file in attempt.files.items():
            facts = reader.within(file, budget)
            if facts is not None:
                self._facts[rank] = facts
            self._ended[rank] = _how_ended(run, file)

    def others(self, rank: int) -> list[PeerState]:
        """All ranks but one, ascending."""
        return [
            self._state(other, ended)
            for other, ended in sorted(self._ended.items())
            if other != rank
        ]

    def _state(self, rank: int, ended: str) -> PeerState:
        facts = self._facts.get(rank)
        if facts is None:
            return PeerState(rank, ended=ended)
        peak = facts.readings.get(ALLOCATED)
        return PeerState(
            rank=rank,
            step=facts.last_step,
            allocated_bytes=finite(facts.latest.get(ALLOCATED)),
            reserved_bytes=finite(facts.latest.get(RESERVED)),
            peak_bytes=None if peak is None else finite(peak.value),
            ended=ended,
        )

    def usual_non_torch_bytes(self, rank: int) -> int | None:
        """Median of what the others use beside torch; None where none recorded it."""
        used = [
            facts.non_torch.value
            for other, facts in self._facts.items()
            if other != rank and facts.non_torch is not None
        ]
        return int(np.median(used)) if used else None

    def growth(self, rank: int) -> Growth | None:
        """Growth of a rank's step peaks; None where they do not rise."""
        facts = self._facts.get(rank)
        if facts is None or not (facts.growth > 0 and facts.rise > 0):
            return None
        return Growth(
            num_bytes=int(facts.rise),
            bytes_per_round=facts.growth,
            num_rounds=facts.num_steps,
            by="series",
            is_run_rate=True,
            late_bytes_per_round=(
                None if np.isnan(facts.late_growth) else facts.late_growth
            ),
        )


def peak_sizes(peers: Sequence[PeerState]) -> tuple[int, ...]:
    """Peaks that are known."""
    return tuple(int(one.peak_bytes) for one in peers if one.peak_bytes is not None)


def shown_peers(
    peers: Sequence[PeerState], ran_out: Collection[int]
) -> tuple[PeerState, ...]:
    """Those that ran out first, then by their peaks."""
    marked = [structs.replace(one, ran_out=one.rank in ran_out) for one in peers]
    marked.sort(key=lambda one: (not one.ran_out, -(one.peak_bytes or 0.0), one.rank))
    return tuple(marked[:MAX_PEERS])


def of_snapshots(peaks: Mapping[int, int], rank: int | None) -> list[PeerState]:
    """Other ranks of which only snapshots are known; none where the rank is not."""
    if rank is None:
        return []
    return [
        PeerState(other, peak_bytes=float(peak))
        for other, peak in sorted(peaks.items())
        if other != rank
    ]


def _how_ended(run: Run, file: RankFile) -> str:
    if file.close is not None:
        return file.close.how
    return "" if file.unfinished or run.file_is_live(file) else "lost"
