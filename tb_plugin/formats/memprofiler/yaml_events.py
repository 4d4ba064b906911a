"""YAML as a stream of events, bounded, so that nothing a file asks for is constructed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import yaml

from memboard.tb_plugin.formats.memprofiler.stats import RefusedObject, UnreadableError

if TYPE_CHECKING:
    from collections.abc import Iterator

PREFIX: Final = "tag:yaml.org,2002:"
PLAIN_TAGS: Final = {None, "!", *(PREFIX + name for name in ("map", "int", "float"))}
"""Of nodes that are what they look like."""
_MAX_EVENTS: Final = 4_000_000
_MAX_DEPTH: Final = 16
_INT: Final = re.compile(r"[-+]?[0-9]{1,19}")
_FLOAT: Final = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]{1,4})?")
_NULL: Final = {"", "~", "null", "Null", "NULL"}
_MAX_NUMBER: Final = 64
REMEDY: Final = (
    "Write it again with MemProfiler, or load it where it was written and save it with"
    " yaml.safe_dump(dict(...))."
)


class Events:
    """The parser's events, counted; its errors are ours."""

    def __init__(self, data: bytes) -> None:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        self._events: Iterator[yaml.Event] = yaml.parse(data, Loader=loader)
        self._num_events = 0

    def take(self) -> yaml.Event:
        self._num_events += 1
        if self._num_events > _MAX_EVENTS:
            raise UnreadableError(
                f"The file holds more than {_MAX_EVENTS:,} nodes.", "", REMEDY
            )
        try:
            return next(self._events)
        except StopIteration:
            raise UnreadableError("The file is empty.", "", REMEDY) from None
        except (yaml.YAMLError, ValueError) as error:
            raise _broken(error) from error

    def skip(self, event: yaml.Event) -> None:
        """Go to the end of the node that `event` begins."""
        depth = _opens(event)
        while depth:
            if depth > _MAX_DEPTH:
                raise UnreadableError(
                    f"The file nests more than {_MAX_DEPTH} levels deep.",
                    place_of(event),
                    REMEDY,
                )
            event = self.take()
            depth += _opens(event)


def _opens(event: yaml.Event) -> int:
    if isinstance(event, yaml.CollectionStartEvent):
        return 1
    return -1 if isinstance(event, yaml.CollectionEndEvent) else 0


def entries(events: Events) -> Iterator[tuple[object, yaml.Event]]:
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


def value_of(event: yaml.Event) -> Any:
    """A scalar as YAML's core schema reads it; what stands for it where it is none."""
    if isinstance(event, yaml.AliasEvent):
        return RefusedObject("an alias")
    if not isinstance(event, yaml.ScalarEvent):
        tag = getattr(event, "tag", None)
        return RefusedObject(str(tag)) if tag else []
    if event.tag not in PLAIN_TAGS:
        return RefusedObject(str(event.tag))
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
    problem = getattr(error, "problem", None) or str(error)
    return UnreadableError(
        f"The file is no YAML from here on: {str(problem)[:200]}.",
        where,
        "It may have been cut off while it was written; everything before that is"
        " shown.",
    )


def place_of(event: yaml.Event) -> str:
    """Where it begins, for people."""
    mark = getattr(event, "start_mark", None)
    return "" if mark is None else f"line {mark.line + 1}"
