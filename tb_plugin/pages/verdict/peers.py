"""The other ranks: what each had last, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tb_plugin import api
from tb_plugin.analysis.oom.error import Growth
from tb_plugin.contract.wire import f64, i32, u8
from tb_plugin.pages.overview.facts import ALLOCATED, RESERVED

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from tb_plugin.budget import Budget
    from tb_plugin.formats.recording.rank_file import RankFile
    from tb_plugin.index.run import AttemptFiles, Run
    from tb_plugin.pages.overview.facts import FactsReader, FileFacts

MAX_PEERS: Final = 4096
_NAN: Final = float("nan")
_ENDED: Final = {"running": 0, "closed": 1, "exception": 2, "lost": 3, "signal": 4}


@dataclass(frozen=True, slots=True)
class Peer:
    """One rank."""

    rank: int
    step: float = _NAN
    allocated_bytes: float = _NAN
    reserved_bytes: float = _NAN
    peak_bytes: float = _NAN
    ended: int = 0


class Peers:
    """What the files of one start of a job say."""

    def __init__(
        self, run: Run, reader: FactsReader, attempt: AttemptFiles, budget: Budget
    ) -> None:
        self._facts: dict[int, FileFacts] = {}
        self._ended: dict[int, int] = {}
        reader.make_missing(attempt.files.values(), budget)
        for rank, file in attempt.files.items():
            facts = reader.within(file, budget)
            if facts is not None:
                self._facts[rank] = facts
            self._ended[rank] = _ENDED[_how_ended(run, file)]

    def others(self, rank: int) -> list[Peer]:
        """All ranks but one, ascending."""
        found = []
        for other in sorted(self._ended):
            if other == rank:
                continue
            facts = self._facts.get(other)
            found.append(
                Peer(other, ended=self._ended[other])
                if facts is None
                else Peer(
                    rank=other,
                    step=_NAN if facts.last_step is None else facts.last_step,
                    allocated_bytes=facts.latest.get(ALLOCATED, _NAN),
                    reserved_bytes=facts.latest.get(RESERVED, _NAN),
                    peak_bytes=_reading(facts, ALLOCATED),
                    ended=self._ended[other],
                )
            )
        return found

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


def peak_sizes(peers: Sequence[Peer]) -> tuple[int, ...]:
    """Peaks that are known."""
    return tuple(int(peer.peak_bytes) for peer in peers if peer.peak_bytes >= 0)


def response_of(peers: Sequence[Peer], ran_out: Collection[int]) -> api.OomPeers:
    """The columns."""
    shown = peers[:MAX_PEERS]
    return api.OomPeers(
        rank=i32([peer.rank for peer in shown]),
        step=f64([peer.step for peer in shown]),
        allocated_bytes=f64([peer.allocated_bytes for peer in shown]),
        reserved_bytes=f64([peer.reserved_bytes for peer in shown]),
        peak_bytes=f64([peer.peak_bytes for peer in shown]),
        ended=u8([peer.ended for peer in shown]),
        ran_out=u8([peer.rank in ran_out for peer in shown]),
    )


def of_snapshots(peaks: Mapping[int, int], rank: int | None) -> list[Peer]:
    """Other ranks of which only snapshots are known; none where the rank is not."""
    if rank is None:
        return []
    return [
        Peer(other, peak_bytes=float(peak))
        for other, peak in sorted(peaks.items())
        if other != rank
    ]


def _reading(facts: FileFacts, column: str) -> float:
    reading = facts.readings.get(column)
    return _NAN if reading is None else reading.value


def _how_ended(run: Run, file: RankFile) -> str:
    if file.close is not None:
        return file.close.how
    return "running" if file.unfinished or run.file_is_live(file) else "lost"
