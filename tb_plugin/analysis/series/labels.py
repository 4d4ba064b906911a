"""Names of recorded columns and of parts of a step, as pages write them."""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from memboard.collector.format.sizes import capitalized

_UNIT: Final = re.compile(
    r"_(bytes_per_second|per_second|bytes|seconds|pct|celsius|watts)\Z"
)
_ACRONYMS: Final = {
    word.lower(): word
    for word in ("CPU", "GPU", "RSS", "VMS", "USS", "PSS", "IO", "NVML", "FDs", "OOMs")
}
_SPECIAL: Final = {
    "process_rss_bytes": "RSS between steps",
    "process_uss_bytes": "USS (not shared)",
    "process_pss_bytes": "PSS (shared pages divided)",
    "process_shared_bytes": "Shared",
    "npp_compat_bytes": "Saved (MemProfiler's sum)",
    "workers_rss_bytes": "Dataloader workers RSS",
    "gc_partial_collections": "Garbage collections, partial",
    "gc_full_collections": "Garbage collections, full",
    "gc_collected_objects": "Objects the garbage collector freed",
}
"""Names that say too little beside their neighbours."""


@cache
def column_label(column: str) -> str:
    """`Allocated peak` of `allocated_peak_bytes`; new columns have labels too."""
    if column in _SPECIAL:
        return _SPECIAL[column]
    parts = _UNIT.sub("", column.removeprefix("num_")).split("_")
    label = " ".join(_ACRONYMS.get(word, word) for word in parts if word)
    return capitalized(label)


_HOOKS: Final = {
    "rss_pre_forward": "RSS before forward",
    "rss_post_forward": "RSS after forward",
    "rss_diff": "RSS change in forward",
    "npp_pre_forward": "Saved before forward",
    "npp_post_forward": "Saved after forward",
    "npp_diff": "Saved in forward",
}
"""What the built-in hooks leave of each module (`format.memory.HOOK_ATTRS`)."""


def hook_label(hook: str) -> str:
    """`RSS before forward`; values of the program's own hooks keep their names."""
    return _HOOKS.get(hook, hook)


_PARTS: Final = {
    "step": (
        "Step time",
        "From the end of the step before to the end of this one: rec.step ends it",
    ),
    "dataloader": ("Dataloader", "Waiting for the next batch"),
    "forward": ("Forward", "The model's forward"),
    "backward": ("Backward", "Backward, up to where it returns"),
    "optimizer": ("Optimizer", "The optimizer's step"),
    "zero_grad": ("zero_grad", "Setting gradients to zero, or to None"),
    "checkpoint": ("Checkpoint", "Saving or loading checkpoints"),
    "eval": ("Evaluation", "Evaluation between steps of training"),
    "communication": (
        "Communication",
        "Calls of collectives, and waiting for them",
    ),
    "other": ("Other", "Step time less all other parts: code that no part covers"),
}
_HOST_TIME: Final = (
    " Time of the training thread; where parts lie in one another it counts for the "
    "innermost. With a device that is what launching and waiting took, not what ran on "
    "it meanwhile."
)


def part_words(part: str) -> tuple[str, str]:
    """The label of a part of the step; what it is, and what its time leaves out."""
    label, help_text = _PARTS[part]
    return label, f"{help_text}.{'' if part in ('step', 'other') else _HOST_TIME}"
