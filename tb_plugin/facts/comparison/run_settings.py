"""Settings of runs, as texts by name: which of them differ between runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from memboard.collector.format.records import Header

MAX_DIFFERENT: Final = 24
"""Settings of which a column is sent."""
_OF_RANK: Final = frozenset({"rank", "local_rank", "world_size"})
"""Settings that say which process it is."""
_VERSIONS: Final = {"PyTorch": "torch", "CUDA": "cuda", "Driver": "driver"}


def settings_of(header: Header) -> dict[str, str]:
    """What a process ran with, in order of weight; empty texts: not recorded."""
    settings = {
        "Ranks": str(header.world_size),
        "Device": header.device_name or header.device_type,
        "Allocator settings": header.allocator_settings,
    }
    for title, package in _VERSIONS.items():
        settings[title] = header.versions.get(package, "")
    config = {
        setting: value
        for setting, value in header.config.items()
        if setting not in _OF_RANK
    }
    return settings | dict(_flat(config))


def different_settings(runs: Sequence[Mapping[str, str]]) -> list[str]:
    """Names that have several values, at most `MAX_DIFFERENT`, those of most weight first."""
    names = dict.fromkeys(setting for settings in runs for setting in settings)
    values = {
        setting: {text for settings in runs if (text := settings.get(setting, ""))}
        for setting in names
    }
    return [setting for setting in names if len(values[setting]) > 1][:MAX_DIFFERENT]


def _flat(config: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for setting, value in config.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{setting}.")
        else:
            yield f"{prefix}{setting}", _text(value)


def _text(value: Any) -> str:
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, float):
        return f"{value:g}"
    return str(value) or "none"
