"""The last uploads of a process whose interpreter shuts down, in a process of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from collector.afterwards.detached import environment
from collector.config.sections import RemoteConfig
from collector.core.warn_once import Troubles, warn
from collector.mirror.mirror import Mirror
from collector.mirror.waiting import from_plain, to_plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from collector.core.rank import Identity
    from collector.mirror.contract import Kind
    from collector.mirror.waiting import Job

_START_SECONDS: Final = 10.0
"""What a new interpreter and a file system's package may take to load."""

_ROOT: Final = Path(__file__).resolve().parent.parent.parent


def finish(task: bytes, seconds: float) -> bool:
    """Have another process do a task, and wait for it.

    False where that could not be; what is left there, it names itself.
    """
    try:
        subprocess.run(  # noqa: S603  # our own interpreter and module
            [sys.executable or "python3", "-m", "collector.mirror.finishing"],
            cwd=_ROOT,
            env=environment(),
            input=task,  # not an argument: options may be secret
            stdout=subprocess.DEVNULL,
            timeout=seconds + _START_SECONDS,
            check=True,
        )
    except Exception as error:  # noqa: BLE001  # the border to training's end
        warn("the last uploads failed: %s", f"{type(error).__name__}: {error}"[:500])
        return False
    return True


def task_of(
    settings: RemoteConfig,
    run_dir: Path,
    stem: str,
    who: Identity,
    jobs: Iterable[Job],
    seconds: float,
) -> bytes:
    """What this module's process takes on its standard input.

    Raises:
        TypeError: `storage_options` holds what another process cannot be given.
    """
    task = {
        "settings": msgspec.structs.asdict(settings),
        "run_dir": str(run_dir),
        "stem": stem,
        "who": asdict(who),
        "jobs": to_plain(jobs, run_dir),
        "seconds": seconds,
    }
    return json.dumps(task).encode()


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
