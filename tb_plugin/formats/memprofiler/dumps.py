"""`rank_R_memory_stats.yaml` and `.pickle`: read so that nothing is ever constructed.

MemProfiler dumps a defaultdict, so its YAML begins with a tag that makes every safe
loader fail: `!!python/object/apply:collections.defaultdict`, with the mapping itself
under `dictitems`. That one tag is read as the mapping it holds; of any other tagged node
only the tag is named. Aliases are not followed: a file of numbers needs none. Pickles are
read by the machine that reads snapshots; what they would import or call is named in its
place.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, ClassVar, Final

import yaml

from memboard.tb_plugin.formats.memprofiler.stats import (
    RefusedObject,
    Stats,
    UnreadableError,
    shown,
)
from memboard.tb_plugin.formats.memprofiler.yaml_events import (
    PLAIN_TAGS,
    PREFIX,
    REMEDY,
    Events,
    entries,
    place_of,
    value_of,
)
from memboard.tb_plugin.formats.snapshots.pickles.machine import Machine
from memboard.tb_plugin.formats.snapshots.window import Window
from memboard.tb_plugin.worker.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable


_DEFAULTDICT: Final = f"{PREFIX}python/object/apply:collections.defaultdict"


def read_yaml(data: bytes) -> Stats:
    """The snaps of a file; where it breaks off, those before, with `error` set.

    Raises:
        UnreadableError: no snap stands in it.
    """
    stats = Stats()
    try:
        _read_document(Events(data), stats)
    except UnreadableError as error:
        if not stats.snaps:
            raise
        stats.error = error
    return stats


def _read_document(events: Events, stats: Stats) -> None:
    root = events.take()
    while isinstance(root, (yaml.StreamStartEvent, yaml.DocumentStartEvent)):
        root = events.take()
    if isinstance(root, yaml.StreamEndEvent):
        raise UnreadableError("The file is empty.", "", REMEDY)
    tag = getattr(root, "tag", None)
    if not isinstance(root, yaml.MappingStartEvent) or tag not in (
        *PLAIN_TAGS,
        _DEFAULTDICT,
    ):
        kind = f"tagged {str(tag)[:100]}" if tag else "no mapping"
        raise UnreadableError(
            f"The file's top level is {kind}; a mapping of snaps was expected.",
            place_of(root),
            REMEDY,
        )
    if tag != _DEFAULTDICT:
        _read_snaps(events, stats)
        return
    for key, event in entries(events):
        if key == "dictitems" and isinstance(event, yaml.MappingStartEvent):
            _read_snaps(events, stats)
        else:
            events.skip(event)  # `args`: what a missing key would become


def _read_snaps(events: Events, stats: Stats) -> None:
    for key, event in entries(events):
        if isinstance(event, yaml.MappingStartEvent) and event.tag in PLAIN_TAGS:
            _read_snap(events, stats, key)
        elif _is_defaultdict(event):
            for inner, value in entries(events):
                if inner == "dictitems" and isinstance(value, yaml.MappingStartEvent):
                    _read_snap(events, stats, key)
                else:
                    events.skip(value)
        else:
            value_text = shown(value_of(event))
            stats.left_out.add(
                f"{shown(key)} is {value_text}, not a mapping of statistics"
            )
            events.skip(event)


def _read_snap(events: Events, stats: Stats, key: object) -> None:
    values = stats.begin(key)
    for statistic, event in entries(events):
        if values is not None:
            stats.put(values, key, statistic, value_of(event))
        events.skip(event)


def _is_defaultdict(event: yaml.Event) -> bool:
    tag = getattr(event, "tag", None)
    return isinstance(event, yaml.MappingStartEvent) and tag == _DEFAULTDICT


_REMEDY: Final = (
    "MemProfiler's YAML dump (dump_memorystats_yaml) can be read instead. Nothing in the"
    " pickle was run."
)
_PROTO: Final = b"\x80"
_MAPPINGS: Final = {
    "collections defaultdict": 1,
    "builtins dict": 0,
}
"""Callables, with their number of arguments: each makes an empty mapping."""
_OBJECT_BYTES: Final = 300


class _StatsMachine(Machine):
    """Names objects and makes none, but for mappings."""

    def _global(self) -> None:
        attribute, module = self._pop(), self._pop()
        self._push(RefusedObject(f"{shown(module)} {shown(attribute)}"), _OBJECT_BYTES)

    def _reduce(self) -> None:
        arguments, made = self._pop(), self._pop()
        most = _MAPPINGS.get(made.name) if isinstance(made, RefusedObject) else None
        if most is not None and type(arguments) is tuple and len(arguments) <= most:
            self._empty_dict()
        else:
            self._push(
                made if isinstance(made, RefusedObject) else RefusedObject(shown(made))
            )

    def _build(self) -> None:
        self._pop()

    def _update(self, items: list[Any]) -> None:
        if not isinstance(self._top(), RefusedObject):
            super()._update(items)

    def _extend(self, target: Any, items: list[Any]) -> None:
        if not isinstance(target, RefusedObject):
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
        sentence = "The file cannot be read: it does not start like a pickle."
        raise UnreadableError(sentence, "byte 0", _REMEDY)
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
            stats.left_out.add(
                f"{shown(key)} is {shown(snap)}, not a mapping of statistics"
            )
            continue
        values = stats.begin(key)
        if values is not None:
            for statistic, value in snap.items():
                stats.put(values, key, statistic, value)
    return stats
