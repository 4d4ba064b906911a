"""What is said at the end of a recorded program."""

from __future__ import annotations

import os
import shlex
from pathlib import Path


def ending(run_dir: Path | None, run_dirs: list[Path], num_steps: int) -> str:
    """Where the run lies and how to see it; `run_dirs`: where the program recorded."""
    if run_dirs:
        where = " and ".join(dict.fromkeys(map(_shown, run_dirs)))
        logdir = _shown(run_dirs[-1].parent)
        return (
            f"the program recorded itself in {where}. To see it:"
            f" tensorboard --logdir {shlex.quote(logdir)}"
        )
    if run_dir is None:
        return "nothing is recorded: the program ended before it imported torch."
    what = f"{num_steps} step{'s' * (num_steps != 1)} recorded in"
    if not num_steps:
        what = "no optimizer of torch stepped in this process; its host is recorded in"
    return (
        f"{what} {_shown(run_dir)}. To see it:"
        f" tensorboard --logdir {shlex.quote(_shown(run_dir.parent))}"
    )


def _shown(path: Path) -> str:
    """Relative to the working directory where it is below it."""
    try:
        return str(path.relative_to(Path.cwd())) or "."
    except (ValueError, OSError):
        return os.fspath(path)
