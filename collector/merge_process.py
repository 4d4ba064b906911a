"""`merge_on_close`: a process of its own that merges the run's traces after training.

Rank 0 starts it when its recording has closed, and does not wait. It waits a bounded time
for the other ranks' files, and merges what is there by then (`memboard merge`); what it
has to say goes into a log beside the rank files. Where the container ends with training,
so does it: `memboard merge` does the same at any later time.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Final

from collector.format.names import RANK_FILES_DIR

if TYPE_CHECKING:
    from pathlib import Path

    from collector.trouble import Troubles

MERGED_NAME: Final = "merged_trace.json.gz"
"""In the run's directory."""
LOG_NAME: Final = "merge.log"
"""Beside the rank files."""

_WAIT_SECONDS: Final = 60
_NICE: Final = 10
"""Whatever else runs on the host goes first."""

_started: list[subprocess.Popen[bytes]] = []
"""Held, so that none is waited for and none is complained about."""


def start_merge(run_dir: Path, troubles: Troubles, upload: bytes | None = None) -> None:
    """Start merging a run whose recording has closed here. Never raises.

    `upload`: what takes the merged trace to the mirror; see `collector.remote.contract`.
    """
    if not sys.executable:
        _tell(troubles, run_dir, FileNotFoundError("no Python interpreter is known"))
        return
    command = [sys.executable, "-m", "collector.cli", "merge", str(run_dir)]
    command += ["--wait", str(_WAIT_SECONDS), "--force"]
    command += ["-o", str(run_dir / MERGED_NAME)]
    if upload is not None:
        command = [sys.executable, "-m", "collector.remote.finishing", *command]
    try:
        log = run_dir.joinpath(*RANK_FILES_DIR, LOG_NAME)
        with log.open("wb") as output:
            process = subprocess.Popen(  # noqa: S603  # our own command
                command,
                stdin=subprocess.DEVNULL if upload is None else subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={
                    **os.environ,
                    "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                },
            )
        if upload is not None and process.stdin is not None:
            with process.stdin as task:
                task.write(upload)
    except (OSError, ValueError) as error:
        _tell(troubles, run_dir, error)
        return
    _started.append(process)
    with contextlib.suppress(OSError, AttributeError):  # it then runs as fast as others
        os.setpriority(os.PRIO_PROCESS, process.pid, _NICE)


def _tell(troubles: Troubles, run_dir: Path, error: BaseException) -> None:
    troubles.tell(
        "merge",
        "merge_on_close: merging could not be started. Run: memboard merge %s",
        run_dir,
        error=error,
    )
