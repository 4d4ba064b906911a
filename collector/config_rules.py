"""What must hold between settings that are each right by themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from collector.config_torch_profiler import check_torch_profiler
from collector.errors import ConfigError
from collector.remote.templates import check_remote

if TYPE_CHECKING:
    from collections.abc import Callable

_CYCLE: Final = {"skip_first": 0, "wait": 0, "warmup": 1, "repeat": 1}
"""Keys of `schedule` that mean something with `active` alone, and their defaults."""

_READ_AT_THE_END: Final = (
    "merge_on_close",
    "dumps.yaml",
    "dumps.pickle",
    "dumps.fsdp_report",
    "dumps.history",
)
"""Switches of what is made of the recording's own files."""


def check_rules(value: Callable[[str], Any], place: Callable[[str], str]) -> None:
    """Refuse settings that contradict each other or could never do anything.

    Args:
        value: gives the effective value of a leaf by its path.
        place: says where it was set, in words.

    Raises:
        ConfigError: names the keys, their places and the remedy.
    """
    if value("schedule.choose") is None:
        if value("schedule.active") is None:
            _check_plain_schedule(value, place)
        else:
            _check_cycles(value, place)
    check_remote(value, place)
    _check_pruning(value, place)
    check_torch_profiler(value, place)
    functions = value("activations.functions")
    if len(functions) not in (0, 2):
        raise ConfigError(
            f"'activations.functions' in {place('activations.functions')} must be two,"
            f" one that packs and one that unpacks, got {len(functions)}. Add the other"
            " (collector.config_code.unchanged does nothing), or remove it."
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


def _check_plain_schedule(
    value: Callable[[str], Any], place: Callable[[str], str]
) -> None:
    for key, default in _CYCLE.items():
        path = f"schedule.{key}"
        if value(path) != default:
            raise ConfigError(
                f"'{path}' in {place(path)} says nothing without 'schedule.active'. Set"
                " schedule.active to the number of calls that a cycle collects, or"
                f" remove {path}."
            )
    warmup, last = value("schedule.warmup_iters"), value("schedule.max_iter")
    if last and last <= warmup:
        raise ConfigError(
            f"'schedule.max_iter' in {place('schedule.max_iter')} is {last} and"
            f" 'schedule.warmup_iters' in {place('schedule.warmup_iters')} is {warmup},"
            " so that no call would ever be collected. Make max_iter more than"
            " warmup_iters, or 0 for no end, or remove it for one call."
        )


def _check_cycles(value: Callable[[str], Any], place: Callable[[str], str]) -> None:
    for key, default, instead in (
        ("max_iter", None, "schedule.repeat bounds the number of cycles"),
        ("warmup_iters", 1, "schedule.warmup is the warmup of a cycle"),
    ):
        path = f"schedule.{key}"
        if value(path) != default:
            raise ConfigError(
                f"'{path}' in {place(path)} says nothing beside 'schedule.active' in"
                f" {place('schedule.active')}: {instead}. Remove one of the two."
            )
