"""The keys of MemProfiler's settings: where they stand, what they may be, their defaults.

`memprofiler_cfg` is looked for wherever a file or mapping puts it: at the top, or below
`model`, `init_args` and their like.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final, Literal, NamedTuple

from collector.config_checks import Setting, checked, describe, nearest
from collector.config_code import UNCHANGED, code_name
from collector.config_file import at
from collector.config_sections import Code, Names
from collector.errors import ConfigError

NAME: Final = "memprofiler_cfg"

_HOOKS: Final = "fts_examples.profiling.npp_hooks."
_PROJECTS: Final = {"fts_examples", "finetuning_scheduler", "interpretune"}
_BUILT_IN: Final = {
    "_hook_npp_pre_forward",
    "_hook_npp_post_forward",
    "_reset_memory_hooks_state",
    "_npp_hook",
}
IDENTITY: Final = "identity_lambda"
"""MemProfiler's word for a function that does nothing."""

BUILT_IN_ATTRS: Final = (
    *("rss_pre_forward", "rss_post_forward", "rss_diff"),
    *("npp_pre_forward", "npp_post_forward", "npp_diff"),
)
"""What its own hooks leave on every module."""

_Codes = tuple[Code, ...]

KEYS: Final[dict[str, tuple[Any, Any]]] = {
    "enabled": (bool, False),
    "collect_funcs.default": (Names, ("training_step",)),
    "collect_funcs.cpu": (Names, ()),
    "collect_funcs.cuda": (Names, ()),
    "collect_funcs.cuda_allocator_history": (Names, ()),
    "collect_funcs.fsdp": (Names, ()),
    "cuda_allocator_history": (bool, False),
    "track_fsdp_mem": (bool, False),
    "fsdp_mem_track_module_depth": (int, 2),
    "fsdp_mem_tracker_tabulate": (bool, False),
    "fsdp_mem_tracker_units": (Literal["B", "KiB", "MiB", "GiB"], "MiB"),
    "fsdp_mem_tracker_root_module": (str, ""),
    "dump_memorystats_pickle": (bool, False),
    "dump_memorystats_yaml": (bool, True),
    "schedule.warmup_iters": (int, 1),
    "schedule.max_iter": (int | None, None),
    "save_dir": (str | None, None),
    "enable_memory_hooks": (bool, True),
    "enable_saved_tensors_hooks": (bool, True),
    "memory_hooks.pre_forward_hooks": (_Codes, (f"{_HOOKS}_hook_npp_pre_forward",)),
    "memory_hooks.post_forward_hooks": (_Codes, (f"{_HOOKS}_hook_npp_post_forward",)),
    "memory_hooks.reset_state_hooks": (_Codes, (f"{_HOOKS}_reset_memory_hooks_state",)),
    "saved_tensors_funcs": (_Codes, (f"{_HOOKS}_npp_hook", UNCHANGED)),
    "save_hook_attrs": (Names, BUILT_IN_ATTRS),
    "retain_hooks_for_funcs": (Names, ("training_step",)),
}
"""Every key of `MemProfilerCfg`: what it may be, and its default."""

_NESTED: Final = {key.partition(".")[0] for key in KEYS if "." in key}

_LIMITS: Final[dict[str, dict[str, int]]] = {
    "fsdp_mem_track_module_depth": {"least": 1, "most": 1000},
    "schedule.warmup_iters": {"least": 0},
    "schedule.max_iter": {"least": 0},
}


class Given(NamedTuple):
    """One key with its effective value."""

    value: Any
    place: str
    given: bool
    """False: it is MemProfiler's default."""


def is_built_in(code: Any) -> bool:
    """Whether code is MemProfiler's own, of which ours takes the place."""
    project, _, rest = code_name(code).partition(".")
    return project in _PROJECTS and rest.rpartition(".")[2] in _BUILT_IN


def find(
    plain: Mapping[Any, Any], place: str, lines: Mapping[str, int]
) -> tuple[str, Any] | None:
    """The path and value of `memprofiler_cfg`, wherever it stands; None without one.

    Raises:
        ConfigError: there are several, none of which is the one.
    """
    found: dict[int, tuple[str, Any]] = {}
    for path, value in _walk(plain):
        found.setdefault(id(value), (path, value))
    held = {key: pair for key, pair in found.items() if pair[1] is not None}
    if len(held) > 1:
        paths = [path for path, _ in held.values()]
        where = [f"'{path}'{_line(lines.get(path))}" for path in paths]
        raise ConfigError(
            f"{place} holds {len(paths)} mappings of {NAME}: {', '.join(where)}. Keep"
            " the one that counts."
        )
    return next(iter((held or found).values()), None)


def _walk(plain: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
    """Every value under the name, top first; what refers to itself is walked once."""
    waiting: list[tuple[str, Any]] = [("", plain)]
    seen = set()
    while waiting:
        above, node = waiting.pop(0)
        if id(node) in seen:
            continue
        seen.add(id(node))
        pairs = node.items() if isinstance(node, Mapping) else enumerate(node)
        for key, value in pairs:
            path = f"{above}{key}"
            if str(key).rpartition(".")[2] == NAME:
                yield path, value
            elif isinstance(value, (Mapping, list, tuple)):
                waiting.append((f"{path}.", value))


def _line(line: int | None) -> str:
    return "" if line is None else f" (line {line})"


def read_keys(
    path: str, value: Any, place: str, lines: Mapping[str, int]
) -> dict[str, Given]:
    """Every key of `KEYS`, as given below `path` or by default.

    Raises:
        ConfigError: a key is unknown, or a value is none that it may have.
    """
    given = dict(_leaves(path, value, place, lines))
    top = at(place, lines.get(path))
    keys = {}
    for key, (hint, default) in KEYS.items():
        setting = Setting(f"{NAME}.{key}", hint, default, _LIMITS.get(key, {}))
        if key in given:
            raw, where = given[key]
            keys[key] = Given(checked(setting, _named(raw), where), where, given=True)
        else:
            where = f"{top} (MemProfiler's default of {key})"
            keys[key] = Given(default, where, given=False)
    return keys


def _leaves(
    path: str, value: Any, place: str, lines: Mapping[str, int], above: str = ""
) -> Iterator[tuple[str, tuple[Any, str]]]:
    """The keys that are given, nested ones with a dot, each with its place."""
    where = at(place, lines.get(path))
    if value is None:
        return  # all of its keys are commented out
    path, value = _unwrapped(path, value)
    if not isinstance(value, Mapping):
        name = f"{NAME}.{above}".rstrip(".")
        raise ConfigError(
            f"'{name}' in {where} must hold keys and values, got {describe(value)}."
            " Write its keys below it; where it names a file, give that file as config."
        )
    for name, inner in value.items():
        key, below = f"{above}{name}", f"{path}.{name}"
        if key in _NESTED:
            yield from _leaves(below, inner, place, lines, f"{key}.")
        elif key in KEYS:
            yield key, (inner, at(place, lines.get(below)))
        else:
            near = nearest(key, [*KEYS, *_NESTED])
            raise ConfigError(
                f"unknown key '{NAME}.{key}' in {at(place, lines.get(below))}: {near}"
                " MemProfiler has no such key; rename it or remove it."
            )


def _unwrapped(path: str, value: Any) -> tuple[str, Any]:
    """A dataclass, or the arguments of a `class_path`, as the mapping it stands for."""
    if is_dataclass(value) and not isinstance(value, type):
        return path, {item.name: getattr(value, item.name) for item in fields(value)}
    if isinstance(value, Mapping) and "class_path" in value:
        return f"{path}.init_args", value.get("init_args") or {}
    return path, value


def _named(value: Any) -> Any:
    """`identity_lambda` by the dotted name of ours."""
    if isinstance(value, (list, tuple)):
        return [UNCHANGED if entry == IDENTITY else entry for entry in value]
    return value
