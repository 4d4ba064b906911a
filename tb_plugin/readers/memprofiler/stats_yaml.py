"""`rank_R_memory_stats.yaml`: read event by event, so that nothing is ever constructed.

MemProfiler dumps a defaultdict, so its files begin with a tag that makes every safe
loader fail: `!!python/object/apply:collections.defaultdict`, with the mapping itself
under `dictitems`. That one tag is read as the mapping it holds; of any other tagged node
only the tag is told. Aliases are not followed: a file of numbers needs none.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import yaml

from tb_plugin.readers.memprofiler.errors import UnreadableError
from tb_plugin.readers.memprofiler.stats import Refused, Stats, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

_YAML: Final = "tag:yaml.org,2002:"
_DEFAULTDICT: Final = f"{_YAML}python/object/apply:collections.defaultdict"
_PLAIN_TAGS: Final = {None, "!", *(_YAML + name for name in ("map", "int", "float"))}
_MAX_EVENTS: Final = 4_000_000
_MAX_DEPTH: Final = 16
_INT: Final = re.compile(r"[-+]?[0-9]{1,19}")
_FLOAT: Final = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]{1,4})?")
_NULL: Final = {"", "~", "null", "Null", "NULL"}
_MAX_NUMBER: Final = 64
_REMEDY: Final = (
    "Write it again with MemProfiler, or load it where it was written and save it with"
    " yaml.safe_dump(dict(...))."
)


def read_yaml(data: bytes) -> Stats:
    """The snaps of a file; where it breaks off, those before, with `error` set.

    Raises:
        UnreadableError: no snap stands in it.
    """
    stats = Stats()
    try:
        _read_document(_Events(data), stats)
    except UnreadableError as error:
        if not stats.snaps:
            raise
        stats.error = error
    return stats


class _Events:
    """The parser's events, counted; its errors are ours."""

    def __init__(self, data: bytes) -> None:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        self._events: Iterator[yaml.Event] = yaml.parse(data, Loader=loader)
        self._num_events = 0

    def take(self) -> yaml.Event:
        """The next event."""
        self._num_events += 1
        if self._num_events > _MAX_EVENTS:
            raise UnreadableError(
                f"The file holds more than {_MAX_EVENTS:,} nodes.", "", _REMEDY
            )
        try:
            return next(self._events)
        except StopIteration:
            raise UnreadableError("The file is empty.", "", _REMEDY) from None
        except (yaml.YAMLError, ValueError) as error:
            raise _broken(error) from error

    def skip(self, event: yaml.Event) -> None:
        """Go to the end of the node that `event` begins."""
        depth = _opens(event)
        while depth:
            if depth > _MAX_DEPTH:
                raise UnreadableError(
                    f"The file nests more than {_MAX_DEPTH} levels deep.",
                    _place(event),
                    _REMEDY,
                )
            event = self.take()
            depth += _opens(event)


def _opens(event: yaml.Event) -> int:
    if isinstance(event, yaml.CollectionStartEvent):
        return 1
    return -1 if isinstance(event, yaml.CollectionEndEvent) else 0


def _read_document(events: _Events, stats: Stats) -> None:
    root = events.take()
    while isinstance(root, (yaml.StreamStartEvent, yaml.DocumentStartEvent)):
        root = events.take()
    if isinstance(root, yaml.StreamEndEvent):
        raise UnreadableError("The file is empty.", "", _REMEDY)
    tag = getattr(root, "tag", None)
    if not isinstance(root, yaml.MappingStartEvent) or tag not in (
        *_PLAIN_TAGS,
        _DEFAULTDICT,
    ):
        kind = f"tagged {str(tag)[:100]}" if tag else "no mapping"
        raise UnreadableError(
            f"The file's top level is {kind}; a mapping of snaps was expected.",
            _place(root),
            _REMEDY,
        )
    if tag != _DEFAULTDICT:
        _read_snaps(events, stats)
        return
    for key, event in _entries(events):
        if key == "dictitems" and isinstance(event, yaml.MappingStartEvent):
            _read_snaps(events, stats)
        else:
            events.skip(event)  # `args`: what a missing key would become


def _read_snaps(events: _Events, stats: Stats) -> None:
    for key, event in _entries(events):
        if isinstance(event, yaml.MappingStartEvent) and event.tag in _PLAIN_TAGS:
            _read_snap(events, stats, key)
        elif _is_defaultdict(event):
            for inner, value in _entries(events):
                if inner == "dictitems" and isinstance(value, yaml.MappingStartEvent):
                    _read_snap(events, stats, key)
                else:
                    events.skip(value)
        else:
            found = shown(_value(event))
            stats.leave_out(f"{shown(key)} is {found}, no mapping of statistics")
            events.skip(event)


def _read_snap(events: _Events, stats: Stats, key: object) -> None:
    values = stats.begin(key)
    for name, event in _entries(events):
        if values is not None:
            stats.put(values, key, name, _value(event))
        events.skip(event)


def _entries(events: _Events) -> Iterator[tuple[object, yaml.Event]]:
    """Keys and first events of the values of a mapping that has just begun.

    Whoever iterates consumes each value whole.
    """
    while True:
        event = events.take()
        if isinstance(event, yaml.MappingEndEvent):
            return
        key = event.value if isinstance(event, yaml.ScalarEvent) else None
        events.skip(event)
        yield key, events.take()


def _is_defaultdict(event: yaml.Event) -> bool:
    tag = getattr(event, "tag", None)
    return isinstance(event, yaml.MappingStartEvent) and tag == _DEFAULTDICT


def _value(event: yaml.Event) -> Any:
    """A scalar as YAML's core schema reads it; what stands for it where it is none."""
    if isinstance(event, yaml.AliasEvent):
        return Refused("an alias")
    if not isinstance(event, yaml.ScalarEvent):
        tag = getattr(event, "tag", None)
        return Refused(str(tag)) if tag else []
    if event.tag not in _PLAIN_TAGS:
        return Refused(str(event.tag))
    text = event.value
    if event.style or len(text) > _MAX_NUMBER:  # quoted, or a block: text
        return text
    if text in _NULL:
        return None
    if _INT.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


def _broken(error: Exception) -> UnreadableError:
    mark = getattr(error, "problem_mark", None)
    where = "" if mark is None else f"line {mark.line + 1}, column {mark.column + 1}"
    what = getattr(error, "problem", None) or str(error)
    return UnreadableError(
        f"The file is no YAML from here on: {str(what)[:200]}.",
        where,
        "It may have been cut off while it was written; what stands before is shown.",
    )


def _place(event: yaml.Event) -> str:
    mark = getattr(event, "start_mark", None)
    return "" if mark is None else f"line {mark.line + 1}"
