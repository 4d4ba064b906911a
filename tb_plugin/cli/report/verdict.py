"""The section `verdict` of a report: why memory ran out, as the Overview says it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tb_plugin.cli.report.values import plain, rows, values_of

if TYPE_CHECKING:
    from tb_plugin import api
    from tb_plugin.cache import Cache
    from tb_plugin.index.run import Run
    from tb_plugin.jobs.histories import HistoriesReader
    from tb_plugin.pages.overview.facts import FactsReader
    from tb_plugin.pages.verdict.judge import HistoryJudge

_ENDED: Final = ("", "closed", "exception", "lost", "signal")
"""By number, see `api.OomPeers`; empty: running, or not known."""

_SECONDS: Final = 600.0
"""What opening and judging one history may take."""


class VerdictSection:
    """Asks the view, once it has judged every history."""

    def __init__(
        self,
        facts: FactsReader,
        histories: HistoriesReader,
        cache: Cache,
        capacity_bytes: int | None,
    ) -> None:
        """`cache` keeps decoded reports; `capacity_bytes`: of devices of unknown size."""
        from tb_plugin.pages.verdict.verdict import VerdictReader

        self._reader = VerdictReader(facts, histories, cache, capacity_bytes)

    @property
    def judge(self) -> HistoryJudge:
        """Who judges histories."""
        return self._reader.judge

    def of(
        self, run: Run, summary: api.RunSummary, rank: int | None
    ) -> tuple[dict[str, Any], tuple[api.OutOfMemory, ...]]:
        """The section of one run, or of one rank; and its errors as the page has them."""
        from tb_plugin.cli.recordings import unhurried

        self._reader.judge_all(run, rank, unhurried(), _SECONDS)
        with run.lock:
            answer = self._reader.verdict(run, summary, rank, unhurried())
        section = {
            "num_ooms": answer.num_ooms,
            "ooms": [_one(one) for one in answer.ooms],
            "problems": plain(answer.problems),
        }
        return section, answer.ooms


def _one(one: api.OutOfMemory) -> dict[str, Any]:
    peers = one.peers
    columns = {
        "rank": values_of(peers.rank),
        "step": values_of(peers.step),
        "allocated_bytes": values_of(peers.allocated_bytes),
        "reserved_bytes": values_of(peers.reserved_bytes),
        "peak_bytes": values_of(peers.peak_bytes),
        "ended": [_ENDED[ended] for ended in values_of(peers.ended)],
        "ran_out": [flag == 1 for flag in values_of(peers.ran_out)],
    }
    return {**plain(one, leave_out=("peers", "report")), "peers": rows(columns)}
