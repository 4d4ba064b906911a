"""`rank_R_memory_stats.pickle`: read by the machine that reads snapshots, nothing is run.

MemProfiler dumps a defaultdict, which is the mapping it holds. What else would be imported
or called is named in its place, and the numbers beside it are read.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, ClassVar, Final

from tb_plugin.formats.memprofiler.errors import UnreadableError
from tb_plugin.formats.memprofiler.stats.stats import Refused, Stats, shown
from tb_plugin.formats.snapshots.pickles.machine import Machine
from tb_plugin.formats.snapshots.window import Window
from tb_plugin.jobs.worker.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable

_REMEDY: Final = (
    "MemProfiler's YAML dump (dump_memorystats_yaml) can be read instead. Nothing in the"
    " pickle was run."
)
_PROTO: Final = b"\x80"
_MAPPINGS: Final = {
    "collections defaultdict": 1,
    "builtins dict": 0,
}
"""What may be called, by how many arguments: it makes an empty mapping."""
_OBJECT_BYTES: Final = 300


class _StatsMachine(Machine):
    """Names objects and makes none, but for mappings."""

    def _global(self) -> None:
        attribute, module = self._pop(), self._pop()
        self._push(Refused(f"{shown(module)} {shown(attribute)}"), _OBJECT_BYTES)

    def _reduce(self) -> None:
        arguments, made = self._pop(), self._pop()
        most = _MAPPINGS.get(made.name) if isinstance(made, Refused) else None
        if most is not None and type(arguments) is tuple and len(arguments) <= most:
            self._empty_dict()
        else:
            self._push(made if isinstance(made, Refused) else Refused(shown(made)))

    def _build(self) -> None:
        self._pop()

    def _update(self, items: list[Any]) -> None:
        if not isinstance(self._top(), Refused):
            super()._update(items)

    def _extend(self, target: Any, items: list[Any]) -> None:
        if not isinstance(target, Refused):
            super()._extend(target, items)

    _steps: ClassVar[dict[int, Callable[[Any], None]]] = {
        **Machine._steps,  # noqa: SLF001  # of the class above
        0x93: _global,
        ord("R"): _reduce,
        0x81: _reduce,
        ord("b"): _build,
    }


def read_pickle(data: bytes) -> Stats:
    """The snaps of a file.

    Raises:
        UnreadableError: it is cut off, damaged, or no mapping of snaps.
    """
    if data[:1] != _PROTO:
        what = "The pickle cannot be read: it does not begin as one."
        raise UnreadableError(what, "byte 0", _REMEDY)
    try:
        root = _StatsMachine(Window(io.BytesIO(data))).run()
    except RefusedError as error:
        raise UnreadableError(
            f"The pickle cannot be read: {error.what[:200]}.",
            f"byte {error.offset} of {len(data)}",
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
