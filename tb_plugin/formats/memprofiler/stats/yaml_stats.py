"""`rank_R_memory_stats.yaml`: read event by event, so that nothing is ever constructed.

MemProfiler dumps a defaultdict, so its files begin with a tag that makes every safe
loader fail: `!!python/object/apply:collections.defaultdict`, with the mapping itself
under `dictitems`. That one tag is read as the mapping it holds; of any other tagged node
only the tag is told. Aliases are not followed: a file of numbers needs none.
"""

from __future__ import annotations

from typing import Final

import yaml

from tb_plugin.formats.memprofiler.errors import UnreadableError
from tb_plugin.formats.memprofiler.stats.stats import Stats, shown
from tb_plugin.formats.memprofiler.yaml_events import (
    PLAIN_TAGS,
    PREFIX,
    REMEDY,
    Events,
    entries,
    place_of,
    value_of,
)

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
            found = shown(value_of(event))
            stats.leave_out(f"{shown(key)} is {found}, no mapping of statistics")
            events.skip(event)


def _read_snap(events: Events, stats: Stats, key: object) -> None:
    values = stats.begin(key)
    for name, event in entries(events):
        if values is not None:
            stats.put(values, key, name, value_of(event))
        events.skip(event)


def _is_defaultdict(event: yaml.Event) -> bool:
    tag = getattr(event, "tag", None)
    return isinstance(event, yaml.MappingStartEvent) and tag == _DEFAULTDICT
