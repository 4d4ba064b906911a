"""Other tools' files that no run is made of: told apart by their names, and counted."""

from __future__ import annotations

import re
from typing import Final, Literal, TypeAlias

Kind: TypeAlias = Literal["tfevents", "memprofiler", "other"]

# Order matters: the first pattern that fits decides.
_KINDS: Final[tuple[tuple[Kind, re.Pattern[str]], ...]] = (
    ("tfevents", re.compile(r"tfevents")),
    (
        "memprofiler",
        re.compile(
            r"^rank_\d+_memory_stats\.(yaml|pickle)$|^fsdp_mem_rank_.*\.log$"
            r"|^cuda_alloc_rank_.*\.(start|end)\.pickle$"
        ),
    ),
    ("other", re.compile(r"\.xplane\.pb$", re.IGNORECASE)),
)


def kind_of(name: str) -> Kind | None:
    """What a file is by its base name; None where it is nobody's we know."""
    if "." not in name:
        return None
    for kind, pattern in _KINDS:
        if pattern.search(name):
            return kind
    return None
