"""Takes a recording back that has nothing to say."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collector.recorder import Recorder


def discard(recorder: Recorder) -> None:
    """Close it; where it has no step, remove its file and the folders that are empty then.

    One with a mirror stays: its file may be there already.
    """
    recorder.close()
    path, run_dir = recorder.path, recorder.run_dir
    is_mirrored = recorder._session.engine.remote.is_on  # noqa: SLF001  # our own
    if path is None or recorder.num_steps or is_mirrored:
        return
    path.unlink(missing_ok=True)
    folder = path.parent
    with contextlib.suppress(OSError):  # others are in it, or it is gone
        while folder != run_dir.parent:
            folder.rmdir()
            folder = folder.parent
