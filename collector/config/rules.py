"""Rules between settings that are each right by themselves."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from memboard.collector.config.templates import (
    IDENTITY,
    MOMENT,
    check_remote,
    checked_names,
)
from memboard.collector.config.values import one_of
from memboard.collector.errors import ConfigError
from memboard.collector.format.sizes import agreeing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from memboard.collector.config.values import LocatedValue

TEMPLATES: Final = ("folder", "filename", "stacks_filename", "memory_filename")
ABSOLUTE: Final = re.compile(r"[/\\~]|[A-Za-z]:")
"""Begins a path that is not below another one."""

NEEDED_BY_MEMORY: Final = ("record_shapes", "profile_memory", "with_stack")
"""Without these, nobody can say what an allocation was for."""

_READ_AT_THE_END: Final = ("merge_on_close", "dumps")
"""Settings whose files are made of the recording's own."""


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
        ("torch_profiler.stacks_metric",),
        ("torch_profiler.stacks_filename",),
        "Name the file that is to be written",
    ),
    _Need(
        ("dumps_dir",),
        ("dumps",),
        "Name those that are to be written there",
    ),
)


def check_rules(value: Callable[[str], Any], place: Callable[[str], str]) -> None:
    """Refuse settings that contradict each other or could never do anything.

    Args:
        value: gives the effective value of a leaf by its path.
        place: says where it was set, in words.

    Raises:
        ConfigError: names the keys, their places and the remedy.
    """
    check_remote(value, place)
    _check_pruning(value, place)
    _check_torch_profiler(value, place)
    functions = value("activations.functions")
    if len(functions) not in (0, 2):
        raise ConfigError(
            f"'activations.functions' in {place('activations.functions')} must be two,"
            f" one that packs and one that unpacks, got {len(functions)}. Add the other"
            " (memboard.collector.config.values.unchanged does nothing), or remove it."
        )


def _check_pruning(value: Callable[[str], Any], place: Callable[[str], str]) -> None:
    """What is made at the end of what lies here must find it here."""
    if not (value("remote.url") and value("remote.prune")):
        return
    for path in _READ_AT_THE_END:
        if value(path):
            raise ConfigError(
                f"'remote.prune' in {place('remote.prune')} deletes what '{path}' in"
                f" {place(path)} reads when the recording closes. Remove one of the two;"
                " memboard merge and memboard export do the same with a downloaded"
                " mirror at any later time."
            )


def _check_torch_profiler(
    value: Callable[[str], Any], place: Callable[[str], str]
) -> None:
    for key in TEMPLATES:
        template = value(f"torch_profiler.{key}")
        if template:
            _check_template(f"torch_profiler.{key}", template, place)
    if not value("torch_profiler.enabled"):
        return
    _check_needed("memory_filename", NEEDED_BY_MEMORY, value, place)
    _check_needed("stacks_filename", ("with_stack",), value, place)


def _check_template(path: str, template: str, place: Callable[[str], str]) -> None:
    checked_names(template, IDENTITY + MOMENT, path, place)
    if ABSOLUTE.match(template):
        raise ConfigError(
            f"'{path}' in {place(path)} is {template!r}, an absolute path: traces lie below"
            " the folder beside the rank's file, where the page finds them. Write a"
            " relative one; to have them elsewhere too, set 'remote'."
        )
    parts = template.replace("\\", "/").split("/")
    if ".." in parts:
        raise ConfigError(
            f"'{path}' in {place(path)} is {template!r}, which leaves the folder beside"
            " the rank's file. Remove '..'; to have traces elsewhere, set 'remote'."
        )
    if not parts[-1].strip(". ") and path != "torch_profiler.folder":
        raise ConfigError(
            f"'{path}' in {place(path)} is {template!r}, which names no file. Add a name."
        )


def _check_needed(
    key: str,
    needed: tuple[str, ...],
    value: Callable[[str], Any],
    place: Callable[[str], str],
) -> None:
    missing = [option for option in needed if not value(f"torch_profiler.{option}")]
    if value(f"torch_profiler.{key}") and missing:
        path = f"torch_profiler.{key}"
        named = " and ".join(f"torch_profiler.{option}" for option in missing)
        raise ConfigError(
            f"'{path}' in {place(path)} needs {named}, which"
            f" {agreeing(len(missing), 'is', 'are')} off. Set"
            f" {agreeing(len(missing), 'it', 'them')} to true, or remove {key}."
        )


def check_needs(located_by_path: Mapping[str, LocatedValue]) -> None:
    """Refuse options that could never do anything.

    Raises:
        ConfigError: names the key, its place and the remedy.
    """
    for keys, needed, remedy in _NEEDS:
        if any(path in located_by_path for path in needed):
            continue
        for path, located in located_by_path.items():
            if path in keys or f"{path.partition('.')[0]}.*" in keys:
                named = one_of([f"'{other}'" for other in needed])
                raise ConfigError(
                    f"'{path}' in {located.place} has no effect without {named}."
                    f" {remedy}, or remove {path}."
                )
