"""Composer's profiler, and Lightning's, wherever a file puts their arguments.

Composer's: below `profiler`, with `schedule` and `json_trace_handler` below it, or the
Trainer's older `prof_*`, `torch_prof_*` and `sys_prof_*`. Lightning's: below a `class_path`
that ends in `PyTorchProfiler`, with `init_args` and `dict_kwargs`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from memboard.collector.config.imports.profiler_keys import (
    COMPOSER,
    COMPOSER_KEYS,
    LIGHTNING,
    LIGHTNING_KEYS,
    OTHER_NAMES,
)
from memboard.collector.config.imports.result import (
    UNPACKED,
    ConvertedKey,
    ImportedSettings,
    Key,
    NotConstant,
    is_unpacked,
    mapping_at,
)
from memboard.collector.config.rules import ABSOLUTE
from memboard.collector.config.values import LocatedValue, Setting, checked
from memboard.collector.errors import ConfigError, nearest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from memboard.collector.config.documents import Document

_HANDLER: Final = "json_trace_handler"
_SECTIONS: Final = ("schedule", _HANDLER)
_PREFIXES: Final = ("torch_prof", "sys_prof_", "prof_", "profiler_trace")
_AS_GIVEN: Final = (
    "sys_prof_stats_thread_interval_seconds",
    "torch_prof_remote_file_name",
    "torch_prof_memory_remote_file_name",
)
"""Keys whose defaults are not taken over: MemBoard has sensors of its own, and Composer
copies nothing unless a store is named elsewhere."""
_WORK: Final = ("record_shapes", "profile_memory", "with_stack", "with_flops")


class _Place(NamedTuple):
    name: str
    keys: Mapping[str, Key]
    path: str
    values: Mapping[Any, Any]


def is_old_argument(name: str) -> bool:
    """Whether Composer's Trainer had this argument for its profiler."""
    return name.startswith(_PREFIXES) or name in OTHER_NAMES


def profilers_of(document: Document) -> list[ImportedSettings]:
    """What becomes of each profiler in a document, the outermost first.

    Raises:
        ConfigError: a key or value of one is wrong.
    """
    nodes = document.mappings(
        lambda path, node: _place(document, path, node) is not None
    )
    places = (_place(document, path, node) for path, node in nodes)
    return [_imported(document, place) for place in places if place is not None]


def _place(document: Document, path: str, node: Mapping[Any, Any]) -> _Place | None:
    """The arguments of a profiler that a mapping holds; None where it holds none."""
    if str(node.get("class_path", "")).endswith("PyTorchProfiler"):
        values: dict[Any, Any] = {}
        for part in ("init_args", "dict_kwargs"):
            arguments = mapping_at(document, f"{path}{part}", node.get(part))
            values |= {f"{part}.{key}": value for key, value in arguments.items()}
        return _Place(LIGHTNING, LIGHTNING_KEYS, path, values)
    is_object = path.endswith("profiler.")
    names = {str(name) for name in node}
    is_composers = is_object and names & {*_SECTIONS, "trace_handlers"}
    if not (is_composers or any(map(is_old_argument, names))):
        return None
    own = {
        name: value
        for name, value in node.items()
        if is_object or is_old_argument(str(name))
    }
    return _Place(COMPOSER, COMPOSER_KEYS, path, own)


def _imported(document: Document, place: _Place) -> ImportedSettings:
    raw_by_key = dict(_given(document, place, place.values, "", place.path))
    values: dict[str, Any] = {
        _HANDLER: any(
            key.startswith((_HANDLER, "trace_handlers")) and not is_unpacked(value)
            for key, (value, _) in raw_by_key.items()
        )
    }
    where: dict[str, str] = {}
    for key, rule in place.keys.items():
        values[key] = rule.default
        where[key] = f"{document.place} ({place.name}'s default of {key})"
        if key in raw_by_key:
            raw, where[key] = raw_by_key[key]
            setting = Setting(key, rule.hint, rule.default)
            is_known = isinstance(raw, NotConstant) or rule.hint is Any
            values[key] = raw if is_known else checked(setting, raw, where[key])
    entries = []
    leaves: dict[str, LocatedValue] = {}
    for key, rule in place.keys.items():
        ours, note = _leaves(place.name, key, rule, values)
        if key not in raw_by_key and key in _AS_GIVEN:
            continue
        entry = ConvertedKey(
            key, values[key], where[key], key in raw_by_key, ours, note
        )
        if entry.given or ours:
            entries.append(entry)
        leaves.update(
            (path, LocatedValue(value, where[key])) for path, value in ours.items()
        )
    return ImportedSettings(
        name=place.name, place=document.place, leaves=leaves, entries=tuple(entries)
    )


def _given(
    document: Document, place: _Place, values: Mapping[Any, Any], above: str, path: str
) -> Iterator[tuple[str, tuple[Any, str]]]:
    for name, value in values.items():
        if str(name).endswith(UNPACKED):  # may hold any of these
            start = above + str(name).removesuffix(UNPACKED)
            for key in place.keys:
                if key.startswith(start) and "." not in key.removeprefix(start):
                    yield key, (value, document.at(f"{path}{name}"))
    for name, value in values.items():
        plain = str(name).removeprefix("init_args.").removeprefix("dict_kwargs.")
        key = above + OTHER_NAMES.get(plain, plain)
        where = document.at(f"{path}{name}")
        if key.endswith(UNPACKED):
            continue
        if key in _SECTIONS and not isinstance(value, NotConstant):
            arguments = mapping_at(document, f"{path}{name}", value)
            below = f"{path}{name}."
            yield from _given(document, place, arguments, f"{key}.", below)
        elif key in _SECTIONS:
            for full_key in place.keys:
                if full_key.startswith(f"{key}."):
                    yield full_key, (value, where)
        elif key in place.keys:
            yield key, (value, where)
        else:
            near = nearest(key, place.keys)
            raise ConfigError(
                f"unknown key '{key}' in {where}: {near} {place.name} has no such key;"
                " rename it or remove it."
            )


def _leaves(
    name: str, key: str, rule: Key, values: Mapping[str, Any]
) -> tuple[dict[str, Any], str]:
    """Our settings for one key, and what is to be said of it."""
    value = values[key]
    if isinstance(value, NotConstant):
        return {}, value.advice(rule.leaves)
    if name == LIGHTNING:
        return _of_lightning(key, rule, value, values)
    if key.startswith("torch_prof_") and not any(
        values[f"torch_prof_{kind}"] for kind in _WORK
    ):
        return {}, f"off, because none of {', '.join(_WORK)} is true"
    return _of_composer(key, rule, value, values)


def _of_composer(
    key: str, rule: Key, value: Any, values: Mapping[str, Any]
) -> tuple[dict[str, Any], str]:
    match key:
        case "schedule.repeat":
            note = "Composer counts anew in each epoch"
            return {"schedule.repeat": value, "schedule.per_epoch": True}, note
        case "torch_prof_folder" if ABSOLUTE.match(value):
            return {}, "traces lie in the run's directory, in torch_profiler.folder"
        case "torch_prof_folder":
            return dict.fromkeys(
                rule.leaves, value
            ), "below the folder of the rank's files"
        case "torch_prof_use_gzip":
            return {}, "in torch_profiler.filename"
        case "torch_prof_filename":
            is_packed = (
                value.endswith(".gz") or values["torch_prof_use_gzip"] is not True
            )
            return {"torch_profiler.filename": value + ".gz" * (not is_packed)}, ""
        case "torch_prof_remote_file_name":
            return _remote("remote.traces", value)
        case "torch_prof_memory_remote_file_name":
            if values["torch_prof_memory_filename"] is None:
                return {}, "there is no memory file"
            return _remote("remote.memory", value)
        case "torch_prof_memory_filename" if value is None:
            return {}, "there is none"
        case "json_trace_handler.merged_trace_filename":
            if values[_HANDLER]:
                return {"merge_on_close": value is not None}, ""
            return {}, "there is no JSONTraceHandler"
    return dict.fromkeys(rule.leaves, value), rule.note


def _remote(path: str, value: str | None) -> tuple[dict[str, Any], str]:
    if value is None:
        return {path: None}, ""
    scheme, is_url, rest = value.partition("://")
    if not is_url:
        return {}, f"name your store in remote.url, and give this as {path}"
    bucket, _, key = rest.partition("/")
    return {"remote.url": f"{scheme}://{bucket}", path: key}, "recordings go there too"


def _of_lightning(
    key: str, rule: Key, value: Any, values: Mapping[str, Any]
) -> tuple[dict[str, Any], str]:
    match key:
        case "filename":
            stem = f"{value}-rank" if value else "rank"
            name = f"{stem}{{rank}}.{{batch}}.pt.trace.json"
            return {"torch_profiler.filename": name}, ""
        case "export_to_flame_graph":
            if not value:
                return {}, "off"
            return {"torch_profiler.stacks_filename": "rank{rank}.{batch}.stacks"}, ""
        case "metric":
            if values["export_to_flame_graph"] is not True:
                return {}, "of flame graphs, of which there are none"
            of_device = not value.startswith("self_cpu")
            return dict.fromkeys(
                rule.leaves, "self_device" if of_device else "self_cpu"
            ), ""
    return dict.fromkeys(rule.leaves, value), rule.note
