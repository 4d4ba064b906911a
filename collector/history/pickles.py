"""Raw pickles beside the rank's file, for viewers that read nothing else."""

from __future__ import annotations

import os
import pickle
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pathlib import Path

PROTOCOL: Final = 4
"""What memory_viz has read from the first; Python 3.14's own default is 5."""

_MAX_NAME: Final = 100


def pickle_name(
    rank: int,
    function: str,
    iteration: int,
    *,
    phase: str = "train",
    context: str = "",
    label: str = "",
) -> str:
    """The name that MemProfiler gives: `cuda_alloc_rank_R.FUNCTION.ITER.start|end.pickle`.

    Of another phase than train, whose calls count by themselves, the phase stands before
    the function. Of a snapshot by hand: `cuda_alloc_rank_R.LABEL.STEP.pickle`, where
    `iteration` is the training step.
    """
    name = label or function
    if phase != "train":
        name = f"{phase}.{name}"
    parts = (f"cuda_alloc_rank_{rank}", _safe(name), str(iteration), context, "pickle")
    return ".".join(filter(None, parts))


def write_pickle(snapshot: Any, path: Path) -> None:
    """Write a snapshot as torch's own dump does, whole or not at all.

    Raises:
        OSError: the file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    begun = path.with_name(f"{path.name}.tmp")
    try:
        with begun.open("wb") as file:
            pickle.dump(snapshot, file, protocol=PROTOCOL)
        os.replace(begun, path)  # noqa: PTH105  # the same in fewer steps
    finally:
        begun.unlink(missing_ok=True)


def _safe(name: str) -> str:
    """A name without what a file's name must not hold; the user chose it."""
    kept = (c if c.isalnum() or c in "-_.+" else "_" for c in name)
    return "".join(kept).strip(".")[:_MAX_NAME] or "snapshot"
