"""Other tools' files, told apart by their names alone: they are counted, never opened."""

from __future__ import annotations

import re
from typing import Final, Literal, TypeAlias

Kind: TypeAlias = Literal[
    "tfevents", "snapshot_pickle", "kineto_trace", "memprofiler", "other"
]

# Order matters: the first pattern that fits decides.
_KINDS: Final[tuple[tuple[Kind, re.Pattern[str]], ...]] = (
    ("tfevents", re.compile(r"tfevents")),
    ("kineto_trace", re.compile(r"\.pt\.trace\.json(\.gz)?$|^rank\d+_trace\.json")),
    (
        "memprofiler",
        re.compile(
            r"^rank_\d+_memory_stats\.(yaml|pickle)$|^fsdp_mem_rank_.*\.log$"
            r"|^cuda_alloc_rank_.*\.(start|end)\.pickle$"
        ),
    ),
    (
        "snapshot_pickle",
        re.compile(r"(snapshot|memory).*\.(pickle|pkl)(\.gz|\.\d+)?$", re.IGNORECASE),
    ),
    (
        "other",
        re.compile(
            r"^ep\d+-ba\d+-rank\d+\.json(\.gz)?$|^profiler_traces\.json$"
            r"|memory.*timeline.*\.(html|json|json\.gz)$|\.xplane\.pb$",
            re.IGNORECASE,
        ),
    ),
)


def kind_of(name: str) -> Kind | None:
    """What a file is by its base name; None where it is nobody's we know."""
    if "." not in name:
        return None
    for kind, pattern in _KINDS:
        if pattern.search(name):
            return kind
    return None
