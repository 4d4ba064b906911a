"""Files for other tools that recordings asked for and a killed process did not write."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from collector.afterwards.dumps import SUFFIX, is_left, notes_of
from collector.format.names import parse_rank_file_name
from tb_plugin.cli.recordings import folder_of
from tb_plugin.storage import is_remote

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tb_plugin.index.run import Run


def finish_dumps(runs: Iterable[Run]) -> None:
    """Write what is left of these runs, and name on standard error what cannot be."""
    for run in runs:
        folder = folder_of(run)
        if run.made_of == "recording" and not is_remote(folder):
            _finish(Path(folder))


def _finish(run_dir: Path) -> None:
    for rank in sorted(
        {_rank(path) for path, one in notes_of(run_dir) if is_left(one)}
    ):
        _finish_rank(run_dir, rank)
    for path, pending in notes_of(run_dir):
        if pending.problem:
            _tell(
                f"of the files that dumps asks for, in rank {_rank(path)}:"
                f" {pending.problem}"
            )


def _finish_rank(run_dir: Path, rank: int) -> None:
    from tb_plugin.cli.dumps_process import finish

    try:
        for path in finish(run_dir, rank, waits=False):
            _tell(f"written now, as the recording asked for: {path}")
    except BlockingIOError:
        _tell(f"the files that dumps asks for are being written: {run_dir}")
    except OSError as error:
        _tell(f"the files that dumps asks for cannot be written: {error}")


def _rank(note: Path) -> int:
    name = parse_rank_file_name(note.name.removesuffix(SUFFIX) + ".events")
    return 0 if name is None else name.rank


def _tell(text: str) -> None:
    print(f"memboard report: {text}", file=sys.stderr)
