"""The last uploads of a process whose interpreter shuts down, in a process of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from collector.config_remote import RemoteConfig
from collector.remote.mirror import Mirror
from collector.trouble import Troubles, warn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.rank import Identity

_START_SECONDS: Final = 10.0
"""What a new interpreter and a file system's package may take to load."""

_ROOT: Final = Path(__file__).resolve().parent.parent.parent


def finish(
    settings: RemoteConfig, run_dir: Path, stems: Sequence[str], seconds: float
) -> bool:
    """Have what these recordings' manifests say is waiting uploaded by another process.

    False where that could not be; what is left there, it names itself.
    """
    try:
        task = task_of(settings, run_dir, stems, seconds)
        paths = [path for path in sys.path if path and Path(path).exists()]
        subprocess.run(  # noqa: S603  # our own interpreter and module
            [sys.executable or "python3", "-m", "collector.remote.finishing"],
            cwd=_ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
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
    settings: RemoteConfig, run_dir: Path, stems: Sequence[str], seconds: float
) -> bytes:
    """What this module's process takes on its standard input.

    Raises:
        TypeError: `storage_options` holds what another process cannot be given.
    """
    plain = {item.name: getattr(settings, item.name) for item in fields(settings)}
    task = {
        "settings": {**plain, "storage_options": dict(settings.storage_options)},
        "run_dir": str(run_dir),
        "stems": list(stems),
        "seconds": seconds,
    }
    return json.dumps(task).encode()


def _nobody() -> Identity:
    """Every key and url was made before."""
    from collector.rank import Identity

    return Identity(
        rank=0,
        local_rank=0,
        world_size=1,
        local_world_size=None,
        node_rank=None,
        host="",
        job="",
        settled=True,
    )


def main() -> None:
    """Do the task that standard input holds as JSON, after the command in the arguments."""
    task: dict[str, Any] = json.load(sys.stdin)
    if sys.argv[1:]:  # it makes what is to be uploaded
        subprocess.run(  # noqa: S603  # our own command
            sys.argv[1:], stdin=subprocess.DEVNULL, check=False
        )
    mirror = Mirror(
        RemoteConfig(**task["settings"]),
        Path(task["run_dir"]),
        identify=_nobody,
        stem=lambda: "",
        troubles=Troubles(),
    )
    mirror.adopt(task["stems"])
    mirror.start(sweep=False)
    mirror.close(float(task["seconds"]))


if __name__ == "__main__":
    main()
