"""Raw pickles for viewers that read nothing else: their names and protocol."""

from __future__ import annotations

from typing import Final

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


def _safe(name: str) -> str:
    """A name without what a file's name must not hold; the user chose it."""
    kept = (c if c.isalnum() or c in "-_.+" else "_" for c in name)
    return "".join(kept).strip(".")[:_MAX_NAME] or "snapshot"
