"""Options that are given without the switch they need.

Whoever gives options of a kind wants the kind: it is on, unless somebody said `enabled:
false`. Where no such guess can be made (a mirror without a url), they are refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from collector.config import sections, settings
from collector.config_checks import Found, one_of
from collector.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from collector.config import RecordConfig


class _Need(NamedTuple):
    """Keys that say nothing unless somebody gave at least one of others."""

    keys: tuple[str, ...]
    needed: tuple[str, ...]
    remedy: str


_NEEDS: Final = (
    _Need(
        ("remote.*",),
        ("remote.url",),
        "Give the url to copy to, or an empty one for no mirror",
    ),
    _Need(
        ("dumps.depth", "dumps.units", "dumps.tabulate"),
        ("dumps.fsdp_report",),
        "Set it to true for the report that this belongs to",
    ),
    _Need(
        ("torch_profiler.stacks_metric",),
        ("torch_profiler.stacks_filename",),
        "Name the file that is to be written",
    ),
    _Need(
        ("dumps.dir",),
        ("dumps.yaml", "dumps.pickle", "dumps.fsdp_report", "dumps.history"),
        "Set those to true that are to be written there",
    ),
)


def written_down(config: RecordConfig) -> Iterator[str]:
    """Paths of a `RecordConfig` that somebody meant: it holds every key, meant or not.

    Those are all of a section in which anything is not the default.
    """
    for name, default in sections().items():
        if config.leaf(name) != default:
            yield from (path for path in settings() if path.startswith(f"{name}."))


def switched_on(said: Mapping[str, Found]) -> dict[str, Found]:
    """The switches of sections that are off by default and of which options are given."""
    on: dict[str, Found] = {}
    for path, found in said.items():
        name, _, leaf = path.partition(".")
        switch = f"{name}.enabled"
        is_off = leaf and _default(name, "enabled") is False
        if is_off and switch not in said:
            on.setdefault(switch, Found(True, found.place))
    return on


def check_needs(said: Mapping[str, Found]) -> None:
    """Refuse options that could never do anything.

    Raises:
        ConfigError: names the key, its place and the remedy.
    """
    for keys, needed, remedy in _NEEDS:
        if any(path in said for path in needed):
            continue
        for path, found in said.items():
            if path in keys or f"{path.partition('.')[0]}.*" in keys:
                named = one_of([f"'{other}'" for other in needed])
                raise ConfigError(
                    f"'{path}' in {found.place} says nothing without {named}. {remedy},"
                    f" or remove {path}."
                )


def _default(name: str, leaf: str) -> Any:
    return getattr(sections()[name], leaf, None)
