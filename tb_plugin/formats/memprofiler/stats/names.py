"""MemProfiler's names of statistics and ours.

Both keep torch's own names of its memory statistics. MemProfiler puts its `rss`, `vms`
and the attributes that hooks left on the root module beside them, under bare names; ours
carry a unit or the prefix `hook.`.
"""

from __future__ import annotations

from typing import Final

from tb_plugin.analysis.series.functions import HOOK_PREFIX

_PROCESS: Final = {"rss": "rss_bytes", "vms": "vms_bytes"}
_PROCESS_BACK: Final = {ours: theirs for theirs, ours in _PROCESS.items()}


def our_name(name: str) -> str:
    """The stat that MemProfiler calls `name`."""
    if name in _PROCESS:
        return _PROCESS[name]
    # torch's: `allocated_bytes.all.current`, `num_ooms`, `max_split_size`.
    if "." in name or name.startswith("num_") or name == "max_split_size":
        return name
    return HOOK_PREFIX + name


def their_name(name: str) -> str:
    """What MemProfiler calls our stat `name`."""
    return _PROCESS_BACK.get(name, name.removeprefix(HOOK_PREFIX))
