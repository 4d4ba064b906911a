"""`merge_on_close`: a process of its own that merges the run's traces after training.

Rank 0 starts it when its recording has closed, and does not wait. It waits a bounded time
for the other ranks' files, and merges what is there by then (`memboard merge`); what it
has to say goes into a log beside the rank files. Where the container ends with training,
so does it: `memboard merge` does the same at any later time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from collector import detached
from collector.format.names import RANK_FILES_DIR

if TYPE_CHECKING:
    from pathlib import Path

    from collector.trouble import Troubles

MERGED_NAME: Final = "merged_trace.json.gz"
"""In the run's directory."""
LOG_NAME: Final = "merge.log"
"""Beside the rank files."""

_WAIT_SECONDS: Final = 60


def start_merge(run_dir: Path, troubles: Troubles, upload: bytes = b"") -> None:
    """Start merging a run whose recording has closed here. Never raises.

    `upload`: what takes the merged trace to the mirror; empty: it stays here.
    """
    module = "collector.cli"
    arguments = ["merge", str(run_dir), "--wait", str(_WAIT_SECONDS), "--force"]
    arguments += ["-o", str(run_dir / MERGED_NAME)]
    if upload:
        arguments, module = [module, *arguments], "collector.remote.finishing"
    try:
        log = run_dir.joinpath(*RANK_FILES_DIR, LOG_NAME)
        log.unlink(missing_ok=True)
        detached.start(module, arguments, log, upload)
    except (OSError, ValueError) as error:
        troubles.tell(
            "merge",
            "merge_on_close: merging could not be started. Run: memboard merge %s",
            run_dir,
            error=error,
        )
