"""The last uploads of a process whose interpreter shuts down, in a process of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from collector.config.sections import RemoteConfig
from collector.core.warn_once import Troubles
from collector.mirror.mirror import Mirror
from collector.mirror.waiting import from_plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.mirror.contract import Kind


def upload(task: dict[str, Any], made: Sequence[tuple[Kind, Path]] = ()) -> None:
    """Upload what waits, and files that were made since."""
    from collector.core.rank import Identity

    who, run_dir = Identity(**task["who"]), Path(task["run_dir"])
    mirror = Mirror(
        RemoteConfig(**task["settings"]),
        run_dir,
        identify=lambda: who,
        stem=lambda: str(task["stem"]),
        troubles=Troubles(),
    )
    mirror.adopt(from_plain(task["jobs"], run_dir))
    mirror.start(sweep=False)
    for kind, path in made:
        mirror.put(kind, path)
    mirror.close(float(task["seconds"]))


def main() -> None:
    """Do the task that standard input holds as JSON, after the module in the arguments."""
    task: dict[str, Any] = json.load(sys.stdin)
    if sys.argv[1:]:  # it makes what is to be uploaded
        subprocess.run(  # noqa: S603  # our own interpreter and module
            [sys.executable, "-m", *sys.argv[1:]], stdin=subprocess.DEVNULL, check=False
        )
    upload(task)


if __name__ == "__main__":
    main()
