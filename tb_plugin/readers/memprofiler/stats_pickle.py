"""`rank_R_memory_stats.pickle`: read without an unpickler, see `pickle_machine`."""

from __future__ import annotations

from typing import Final

from tb_plugin.readers.memprofiler.errors import UnreadableError
from tb_plugin.readers.memprofiler.pickle_machine import PickleMachine
from tb_plugin.readers.memprofiler.stats import Stats, shown

_REMEDY: Final = (
    "MemProfiler's YAML dump (dump_memorystats_yaml) can be read instead. Nothing in the"
    " pickle was run."
)


def read_pickle(data: bytes) -> Stats:
    """The snaps of a file.

    Raises:
        UnreadableError: it is cut off, damaged, or no mapping of snaps.
    """
    machine = PickleMachine()
    try:
        root = machine.run(data)
    except ValueError as error:
        raise UnreadableError(
            f"The pickle cannot be read: {str(error)[:200]}.",
            f"byte {machine.position} of {len(data)}",
            _REMEDY,
        ) from error
    if not isinstance(root, dict):
        raise UnreadableError(
            f"The file holds {shown(root)}; a mapping of snaps was expected.",
            "",
            _REMEDY,
        )
    stats = Stats()
    for key, snap in root.items():
        if not isinstance(snap, dict):
            stats.leave_out(f"{shown(key)} is {shown(snap)}, no mapping of statistics")
            continue
        values = stats.begin(key)
        if values is not None:
            for name, value in snap.items():
                stats.put(values, key, name, value)
    return stats
