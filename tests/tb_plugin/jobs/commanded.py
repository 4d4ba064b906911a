"""A reader that does what its file says: however workers end, a file can have them do it."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any

import numpy as np

from memboard.tb_plugin.worker.limits import SNAPSHOT

if TYPE_CHECKING:
    from collections.abc import Callable

COMMANDED = SNAPSHOT._replace(name="commanded", module=__name__)
HANG = "import time; time.sleep(600)"
BUSY = "import itertools; all(itertools.count(1))"


def imported(
    file: IO[bytes], report: Callable[[float], None]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """One number for each byte of the file, after it did what that says."""
    content = file.read()
    report(0.25)
    exec(content.decode(), {"report": report})
    return {"bytes": {"value": np.frombuffer(content, np.uint8).astype(np.int64)}}, {}
