"""Logdirs at stores for tests: a tree on the disk, put there, and a page that asks."""

from __future__ import annotations

import json
import pickle
import time
from typing import TYPE_CHECKING, Any

from memboard.tb_plugin import storage
from tests.builders import RunBuilder
from tests.made_snapshots import long_history
from tests.memprofiler_files import write_report, write_stats
from tests.tb_plugin.client import Page

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TRACE = {
    "distributedInfo": {"rank": 3},
    "traceEvents": [
        {
            "ph": "X",
            "cat": "cpu_op",
            "name": f"op{number}",
            "ts": 10 * number,
            "dur": 5,
            "pid": 1,
            "tid": 1,
            "args": {"number": number},
        }
        for number in range(100)
    ],
}


def fill(logdir: Path) -> Path:
    """A run of each sort that is read."""
    RunBuilder(logdir / "exp").simple(2, 50)
    snapshots = logdir / "snaps" / "step_40"
    snapshots.mkdir(parents=True)
    for rank in range(2):
        path = snapshots / f"rank{rank}_memory_snapshot.pickle"
        path.write_bytes(pickle.dumps(long_history(100 + rank), 4))
    # Only its first bytes tell what it is.
    (logdir / "snaps" / "dump.pickle").write_bytes(pickle.dumps(long_history(50), 4))
    (logdir / "snaps" / "model.pickle").write_bytes(pickle.dumps({"weights": [1, 2]}))
    (logdir / "traces").mkdir()
    (logdir / "traces" / "worker.1.pt.trace.json").write_text(json.dumps(TRACE))
    (logdir / "profiler").mkdir()
    write_stats(logdir / "profiler", 0)
    write_report(logdir / "profiler", 0, 2)
    return logdir


class StorePage(Page):
    """A page on a logdir that is listed behind its back."""

    @property
    def remote(self) -> Any:
        """The store of its logdir."""
        return storage.remote_at(self.store.index.logdirs[0].path)

    def until(self, is_so: Callable[[dict[str, Any]], object], seconds: float = 180):
        """Poll as a browser does until `/runs` is as it should be; the answer."""
        end = time.monotonic() + seconds
        while True:
            found = self.get("/runs")
            if is_so(found):
                return found
            assert time.monotonic() < end, found
            time.sleep(0.02)
            self.store.index._clock.later(10)

    def settled(self) -> dict[str, Any]:
        """The answer once all is listed and nothing more comes."""
        self.until(lambda found: found["runs"] or found["problems"])
        in_a_row = in_all = 0
        # A store that takes longer to list than it is left alone is never long at rest.
        while in_a_row < 5 and in_all < 12:
            found = self.until(lambda _: True)
            is_quiet = not self.store.index.is_walking
            in_a_row = in_a_row + 1 if is_quiet else 0
            in_all += is_quiet
        return found


def names(found: dict[str, Any]) -> list[str]:
    return [run["name"] for run in found["runs"]]


def whats(found: dict[str, Any]) -> str:
    return "\n".join(problem["what"] for problem in found["problems"])
