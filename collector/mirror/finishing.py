"""The last uploads of a process whose interpreter shuts down, in a process of their own."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from memboard.collector.config.sections import RemoteConfig
from memboard.collector.core.warn_once import WarnOnce
from memboard.collector.mirror.jobs import decode_task
from memboard.collector.mirror.mirror import Mirror
from memboard.collector.process.child_python import own_module

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from memboard.collector.config.templates import Kind


def upload(data: bytes, made: Sequence[tuple[Kind, Path]] = ()) -> None:
    """Upload what a task says waits, and files that were made since."""
    task = decode_task(data)
    mirror = Mirror(
        RemoteConfig(**task.settings),
        task.run_dir,
        identify=lambda: task.who,
        stem=lambda: task.stem,
        warn_once=WarnOnce(),
    )
    mirror.adopt(task.jobs)
    mirror.start(sweep=False)
    for kind, path in made:
        mirror.put(kind, path)
    mirror.close(task.seconds)


def main() -> None:
    """Do the task that standard input holds, after the module in the arguments."""
    task = sys.stdin.buffer.read()
    if sys.argv[1:]:  # it makes what is to be uploaded
        command = own_module(*sys.argv[1:])
        subprocess.run(command, stdin=subprocess.DEVNULL, check=False)  # noqa: S603
    upload(task)


if __name__ == "__main__":
    main()
