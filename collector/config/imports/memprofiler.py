"""MemProfiler's settings, as finetuning-scheduler's users have them, become ours.

`memprofiler_cfg` is found wherever a file or mapping puts it: at the top, or below
`model`, `init_args` and their like. `memprofiler_keys` says what each of its keys becomes;
each is accounted for in a list, so that nothing is dropped in silence. Keys that are not given
have MemProfiler's defaults, which are not ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, Final

from memboard.collector.config.imports.memprofiler_keys import (
    KEYS,
    NAME,
    NEED_ENABLED,
    NESTED,
)
from memboard.collector.config.imports.result import (
    IDENTITY,
    ConvertedKey,
    ImportedSettings,
)
from memboard.collector.config.settings import sections, settings
from memboard.collector.config.values import (
    UNCHANGED,
    ZERO_ATTRIBUTES,
    Code,
    LocatedValue,
    Setting,
    checked,
    code_name,
    describe,
)
from memboard.collector.errors import ConfigError, nearest
from memboard.collector.format.memory import HOOK_ATTRS

if TYPE_CHECKING:
    from memboard.collector.config.documents import Document

_PROJECTS: Final = {"fts_examples", "finetuning_scheduler", "interpretune"}
_CAPTURED: Final = "collect_funcs.cuda_allocator_history"
_RESETS: Final = "_reset_memory_hooks_state"
_BUILT_IN: Final = {
    "_hook_npp_pre_forward",
    "_hook_npp_post_forward",
    _RESETS,
    "_npp_hook",
}


def imported(document: Document) -> ImportedSettings | None:
    """Our settings for the `memprofiler_cfg` in a document; None where there is none.

    Raises:
        ConfigError: there are several, or a key or value of it is wrong.
    """
    section = _find(document)
    if section is None:
        return None
    path, value = section
    document.refuse_twice(path)
    theirs = _read_keys(document, path, value)
    entries = tuple(_became(key, theirs) for key in KEYS)
    others = [key for key in document.plain if str(key) != path]
    # Beside a `memprofiler_cfg` at the top our own keys count too; a trainer's file
    # with one somewhere below may have keys of its own that are merely called alike.
    ours = {*settings(), *sections()} if path in document.plain else set()
    leaves: dict[str, LocatedValue] = {}
    for entry in entries:
        for leaf, value in entry.leaves.items():
            if leaf in leaves:  # a list that several keys add to
                both = dict.fromkeys((*leaves[leaf].value, *value))
                leaves[leaf] = LocatedValue(tuple(both), entry.place)
            else:
                leaves[leaf] = LocatedValue(value, entry.place)
    return ImportedSettings(
        name=NAME,
        place=document.place,
        leaves=leaves,
        entries=entries,
        beside=tuple(key for key in others if key in ours),
        left_out=tuple(str(key) for key in others if key not in ours),
    )


def summary(imported: ImportedSettings) -> str:
    """What the keys that are given became, a line each, for the log."""
    lines = [f"{imported.place} holds MemProfiler's settings; they became:"]
    told = [
        entry for entry in imported.entries if entry.given or entry.key == "enabled"
    ]
    lines += [f"  {entry}" for entry in told]
    if imported.left_out:
        lines.append(f"  not of {NAME}, left out: {', '.join(imported.left_out)}")
    lines.append(
        "  All other keys have MemProfiler's defaults. `memboard import-config` lists"
        " them and writes the file in MemBoard's words."
    )
    return "\n".join(lines)


def _became(key: str, theirs: Mapping[str, ConvertedKey]) -> ConvertedKey:
    """One key with our settings."""
    entry, rule = theirs[key], KEYS[key]
    value: Any = entry.value
    leaves = dict.fromkeys(rule.leaves, value)
    if key in NEED_ENABLED:
        leaves = dict.fromkeys(leaves, value and theirs["enabled"].value)
    elif key in (_CAPTURED, "collect_funcs.fsdp"):
        both = (*theirs["collect_funcs.default"].value, *value)
        leaves = dict.fromkeys(leaves, tuple(dict.fromkeys(both)))
        if key == _CAPTURED and value and not theirs["cuda_allocator_history"].value:
            leaves["functions.device"] = value  # their hooks are read all the same
    elif key.startswith("memory_hooks."):
        leaves = dict.fromkeys(leaves, _own_hooks(key, theirs))
    elif key == "save_hook_attrs":
        leaves = dict.fromkeys(leaves, _own_attrs(theirs))
    elif key == "saved_tensors_funcs":
        leaves = dict.fromkeys(leaves, _pair(entry))
    elif key == "schedule.max_iter":
        leaves = dict.fromkeys(leaves, _num_active(entry, theirs))
    elif key == "save_dir":
        leaves = dict.fromkeys(leaves, value or "")
    for path in tuple(leaves):
        name, _, kind = path.partition(".")
        if name == "dumps" and kind:  # one entry of a list
            leaves["dumps"] = (kind,) if leaves.pop(path) else ()
    return entry._replace(leaves=leaves, note=_note(key, theirs, leaves))


def _note(
    key: str, theirs: Mapping[str, ConvertedKey], leaves: Mapping[str, Any]
) -> str:
    """What is to be said of a key that became `leaves`: only what is so with them."""
    value, rule = theirs[key].value, KEYS[key]
    enabled = theirs["enabled"].value
    if key == "enabled":
        return "" if value else "steps are recorded all the same"
    if key in NEED_ENABLED and value and not enabled:
        return "off, because enabled is false"
    if rule.needs and not (enabled and theirs[rule.needs].value):
        off = rule.needs if enabled else "enabled"
        if enabled and key == _CAPTURED and value:
            return f"not captured, because {off} is false; hooks are read as there"
        return f"of no effect, because {off} is false"
    if key == "save_hook_attrs":
        is_counted = theirs["enable_saved_tensors_hooks"].value
        attrs = "rss_* and npp_* are" if is_counted else "rss_* are"
        return f"{attrs} recorded of every module that runs in a collected call"
    if key == "saved_tensors_funcs":
        return "MemProfiler's own is built in" if any(map(_is_built_in, value)) else ""
    if key == "save_dir":
        return "" if value else "memprofiler in the run's directory"
    is_off = bool(rule.leaves) and not value and not any(leaves.values())
    return "" if is_off else rule.note


def _own_attrs(theirs: Mapping[str, ConvertedKey]) -> tuple[str, ...]:
    """Attributes that hooks of the user's set."""
    attrs = theirs["save_hook_attrs"].value
    return tuple(name for name in attrs if name not in HOOK_ATTRS)


def _own_hooks(key: str, theirs: Mapping[str, ConvertedKey]) -> tuple[Code, ...]:
    """Hooks of the user's; MemProfiler's reset stays where attributes need it."""
    hooks: list[Code] = []
    for code in theirs[key].value:
        if not _is_built_in(code):
            hooks.append(code)
        elif code_name(code).endswith(f".{_RESETS}") and _own_attrs(theirs):
            hooks.append(ZERO_ATTRIBUTES)
    return tuple(hooks)


def _num_active(entry: ConvertedKey, theirs: Mapping[str, ConvertedKey]) -> int:
    """Calls from the end of warmup to `max_iter`, the number of the last one."""
    warmup = theirs["schedule.warmup_iters"]
    last = warmup.value + 1 if entry.value is None else entry.value
    if last and last <= warmup.value:
        raise ConfigError(
            f"'{NAME}.schedule.max_iter' in {entry.place} is {last} and"
            f" '{NAME}.schedule.warmup_iters' in {warmup.place} is {warmup.value}, so"
            " that no call would ever be collected. Make max_iter more than"
            " warmup_iters, or 0 for no end, or remove it for one call."
        )
    return int(max(0, last - warmup.value))


def _pair(entry: ConvertedKey) -> tuple[Code, ...]:
    """The functions that pack and unpack; none where both do nothing of the user's."""
    if len(entry.value) not in (0, 2):
        raise ConfigError(
            f"'{NAME}.{entry.key}' in {entry.place} must be two, one that packs and one"
            f" that unpacks, got {len(entry.value)}. Add 'identity_lambda' for the"
            " other."
        )
    pair = tuple(UNCHANGED if _is_built_in(code) else code for code in entry.value)
    return () if all(code == UNCHANGED for code in pair) else pair


def _is_built_in(code: Any) -> bool:
    """Whether code is MemProfiler's own, of which ours takes the place."""
    project, _, rest = code_name(code).partition(".")
    return project in _PROJECTS and rest.rpartition(".")[2] in _BUILT_IN


def _find(document: Document) -> tuple[str, Any] | None:
    """The path and value of `memprofiler_cfg`, wherever it stands; None without one."""
    places: dict[int, tuple[str, Any]] = {}
    for path, value in _named(document):
        places.setdefault(id(value), (path, value))
    with_value = {key: pair for key, pair in places.items() if pair[1] is not None}
    if len(with_value) > 1:
        lines = {path: document.lines.get(path) for path, _ in with_value.values()}
        where = [f"'{p}'" + f" (line {n})" * (n is not None) for p, n in lines.items()]
        raise ConfigError(
            f"{document.place} holds {len(where)} mappings of {NAME}:"
            f" {', '.join(where)}. Keep the one that counts."
        )
    return next(iter((with_value or places).values()), None)


def _named(document: Document) -> Iterator[tuple[str, Any]]:
    """Every value under the name, top first."""

    def is_named(key: object) -> bool:
        return str(key).rpartition(".")[2] == NAME

    for above, node in document.mappings(lambda path, _: is_named(path.rstrip("."))):
        for key, value in node.items():
            if is_named(key):
                yield f"{above}{key}", value


def _read_keys(document: Document, path: str, value: Any) -> dict[str, ConvertedKey]:
    """Every key of `KEYS`, as given below `path` or by default."""
    raw_by_key = dict(_given(document, path, value))
    keys = {}
    for key, (hint, default, *_) in KEYS.items():
        if key in raw_by_key:
            setting = Setting(f"{NAME}.{key}", hint, default)
            raw, place = raw_by_key[key]
            if isinstance(raw, (list, tuple)):
                raw = [UNCHANGED if entry == IDENTITY else entry for entry in raw]
            keys[key] = ConvertedKey(
                key, checked(setting, raw, place), place, given=True
            )
        else:
            place = f"{document.at(path)} (MemProfiler's default of {key})"
            keys[key] = ConvertedKey(key, default, place, given=False)
    return keys


def _given(
    document: Document, path: str, value: Any, above: str = ""
) -> Iterator[tuple[str, tuple[Any, str]]]:
    """The keys that are given, nested ones with a dot, each with its place."""
    where = document.at(path)
    if value is None:
        return  # all of its keys are commented out
    if is_dataclass(value) and not isinstance(value, type):
        value = {item.name: getattr(value, item.name) for item in fields(value)}
    elif isinstance(value, Mapping) and "class_path" in value:
        path, value = f"{path}.init_args", value.get("init_args") or {}
    if not isinstance(value, Mapping):
        name = f"{NAME}.{above}".rstrip(".")
        raise ConfigError(
            f"'{name}' in {where} must hold keys and values, got {describe(value)}."
            " Write its keys below it; where it names a file, give that file as config."
        )
    for name, inner in value.items():
        key, below = f"{above}{name}", f"{path}.{name}"
        if key in NESTED:
            yield from _given(document, below, inner, f"{key}.")
        elif key in KEYS:
            yield key, (inner, document.at(below))
        else:
            near = nearest(key, [*KEYS, *NESTED])
            raise ConfigError(
                f"unknown key '{NAME}.{key}' in {document.at(below)}: {near}"
                " MemProfiler has no such key; rename it or remove it."
            )
