"""The layers a setting can stand in: a file, the environment, keywords; and their merge.

Every layer becomes leaves by path with the place they are at, in one way, so that an
unknown key is refused with the same words wherever it stands, and a later layer replaces
single leaves, not whole sections.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import msgspec

from memboard.collector.config.documents import Document, read
from memboard.collector.config.imports.memprofiler import imported
from memboard.collector.config.imports.profiler_keys import HINTS
from memboard.collector.config.rules import check_needs, check_rules
from memboard.collector.config.settings import RecordConfig, sections, settings
from memboard.collector.config.values import (
    LocatedValue,
    Options,
    checked,
    describe,
    one_of,
)
from memboard.collector.core.guard import Block
from memboard.collector.core.plain import MAX_KEY, described, forgiving, text_of
from memboard.collector.core.warn_once import WarnOnce
from memboard.collector.errors import ConfigError, nearest
from memboard.collector.process.private_folder import CACHE_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Unpack

    from memboard.collector.config.imports.result import ImportedSettings
    from memboard.collector.config.options import RecordOptions

    Layer: TypeAlias = str | Path | Mapping[str, Any] | RecordConfig

ENV_PREFIX: Final = "MEMBOARD_"

ENV_FILE: Final = "MEMBOARD_CONFIG"
"""Names the configuration files, where `load` is given none."""

_OTHER_PREFIXES: Final = ("MEMBOARD_PLUGIN_", "MEMBOARD_VIRTUAL_")
_NO_SETTINGS: Final = frozenset({ENV_FILE, CACHE_VARIABLE})
"""Variables of the viewer and of the virtual GPU, and where settings are."""

_MAX_KEYS: Final = 10_000
"""Of a mapping of settings and all in it; one of the user's own making may have no end."""

_warn_once: Final = WarnOnce()
"""Of this process: settings may be read many times."""

_TRUE: Final = frozenset({"1", "true", "yes", "on"})
_FALSE: Final = frozenset({"0", "false", "no", "off"})


class MergedSettings(NamedTuple):
    """What is set in all layers."""

    leaves: dict[str, LocatedValue]
    """By path: the value that wins, and its place."""
    said: dict[str, LocatedValue]
    """Of `leaves`, what somebody wrote down: a `RecordConfig` holds every key."""
    imported: list[ImportedSettings]
    """What the layers held in MemProfiler's words."""

    def place(self, path: str) -> str:
        """Where the value of a leaf was set, in words."""
        return self.leaves[path].place if path in self.leaves else "the defaults"


def load(
    config: Layer | Sequence[Layer] | None = None, **keywords: Unpack[RecordOptions]
) -> RecordConfig:
    """Merge keywords, environment variables, `config` and defaults, in that order.

    Args:
        config: a YAML file, a mapping, or settings made before; or several of them, of
            which a later one wins. None: the files that `MEMBOARD_CONFIG` names, or
            nothing.
        **keywords: any field of `RecordConfig`; a section's takes its struct, a
            mapping, or its short form.

    Raises:
        ConfigError: a key is unknown, or a value ill-typed or out of range; says which,
            where and what to do.
    """
    refused: list[BaseException] = []
    with Block(refused.append, (ConfigError,)):
        return load_with_imports(config, **keywords)[0]
    raise ConfigError(
        f"the settings cannot be read: {described(refused[0])} was raised by a mapping, a"
        " list or a value among them. Give plain ones."
    ) from refused[0]


def load_with_imports(
    config: Layer | Sequence[Layer] | None = None,
    command_line: Mapping[str, Any] = MappingProxyType({}),
    /,
    **keywords: Unpack[RecordOptions],
) -> tuple[RecordConfig, list[ImportedSettings]]:
    """As `load`; also what became of the layers that hold MemProfiler's settings.

    `command_line`: settings of `memboard run --set`, which win over all others.
    """
    layers = merged(config, keywords, command_line)
    effective = {path: setting.default for path, setting in settings().items()}
    for path, (value, place) in layers.leaves.items():
        effective[path] = checked(settings()[path], value, place)
    check_needs(layers.said)
    check_rules(effective.__getitem__, layers.place)
    values = nested(effective)
    for section_name, section in sections().items():
        values[section_name] = type(section)(**values[section_name])
    return RecordConfig(**values), layers.imported


def merged(
    config: Any, keywords: Mapping[str, Any], command_line: Mapping[str, Any]
) -> MergedSettings:
    """What is set, the strongest layer last and so winning."""
    every = MergedSettings({}, {}, [])
    for layer in _layers(config):
        if isinstance(layer, RecordConfig):  # it says all, of whatever came before
            place = "the given RecordConfig"
            every.leaves.update(
                (p, LocatedValue(layer.leaf(p), place)) for p in settings()
            )
            every.said.clear()
            every.said.update((p, every.leaves[p]) for p in _written_down(layer))
            continue
        leaves, imports = from_document(_document(layer))
        every.leaves.update(leaves)
        every.said.update(leaves)
        every.imported.extend(imports)
    of_keywords = dict(
        flatten(Document(_bounded(keywords, "keywords"), "the keywords"))
    )
    last = dict(flatten(Document(command_line, "--set")))
    for leaves in (_from_environment(), of_keywords, last):
        every.leaves.update(leaves)
        every.said.update(leaves)
    for path, found_at in every.said.items():
        # Who gives options of what is off by default wants it, unless he says so.
        switch = f"{path.partition('.')[0]}.enabled"
        is_off = switch in settings() and settings()[switch].default is False
        if "." in path and is_off and switch not in every.said:
            every.leaves[switch] = LocatedValue(True, found_at.place)
    return every


def _written_down(config: RecordConfig) -> Iterator[str]:
    """Paths that somebody meant: all of a section where anything is not the default."""
    for path in settings():
        section_name = path.partition(".")[0]
        if (
            section_name in sections()
            and config.leaf(section_name) != sections()[section_name]
        ):
            yield path


def _layers(config: Any) -> Sequence[Any]:
    """The layers that are given, or that the environment names."""
    if config is None:
        named = os.environ.get(ENV_FILE, "")
        return [Path(path) for path in named.split(os.pathsep) if path]
    return config if isinstance(config, (list, tuple)) else [config]


def _document(layer: Any) -> Document:
    if isinstance(layer, Mapping):
        return Document(_bounded(layer, "given mapping"), "the given mapping")
    if isinstance(layer, (str, Path)):
        return read(Path(layer).expanduser())
    raise ConfigError(
        "config must be a file, a mapping or a RecordConfig, or a list of them, got"
        f" {describe(layer)}."
    )


def _bounded(layer: Mapping[Any, Any], name: str) -> dict[Any, Any]:
    """A copy in which mappings and lists are plain, and have an end."""
    whole: dict[Any, Any] = {}
    copies: dict[int, Any] = {id(layer): whole}
    waiting: list[tuple[Any, Any]] = [(layer, whole)]
    num_left = _MAX_KEYS
    for source, copy in waiting:  # which grows
        is_mapping = isinstance(copy, dict)
        for entry in source.items() if is_mapping else source:
            num_left -= 1
            if num_left < 0:
                raise ConfigError(f"the {name} has more than {_MAX_KEYS} keys.")
            key, value = entry if is_mapping else (None, entry)
            plain = copies.get(id(value))
            if plain is None and (plain := _plain_like(value)) is not None:
                copies[id(value)] = plain
                waiting.append((value, plain))
            if is_mapping:
                key = text_of(key) if isinstance(key, str) else key
                copy[key] = value if plain is None else plain
            else:
                copy.append(value if plain is None else plain)
    return whole


def _plain_like(value: Any) -> dict[Any, Any] | list[Any] | None:
    """An empty one of its kind, where it is a mapping or a list."""
    with forgiving:  # a value of the user's own making
        if isinstance(value, Mapping):
            return {}
        if isinstance(value, (list, tuple)):
            return []
    return None


def from_document(
    document: Document,
) -> tuple[dict[str, LocatedValue], list[ImportedSettings]]:
    """What one document sets: our own keys, above what MemProfiler's become.

    Raises:
        ConfigError: a key is unknown or stands twice, or MemProfiler's are wrong.
    """
    section = imported(document)
    if section is None:
        document.refuse_twice()
        return dict(flatten(document)), []
    own = {key: document.plain[key] for key in section.beside}
    return {**section.leaves, **dict(flatten(document._replace(plain=own)))}, [section]


def variable(path: str) -> str:
    """The environment variable of a setting or of a section's short form."""
    return ENV_PREFIX + path.replace(".", "_").upper()


def _from_environment() -> dict[str, LocatedValue]:
    """Settings from `MEMBOARD_*`; a section's own keys win over its short form."""
    leaves: dict[str, LocatedValue] = {}
    path_by_variable = {variable(path): path for path in (*sections(), *settings())}
    text_by_variable = {
        n: t for n, t in os.environ.items() if t and n.startswith(ENV_PREFIX)
    }
    for name, path in path_by_variable.items():
        if name in text_by_variable:
            place = f"the environment variable {name}"
            leaves.update(_from_text(path, text_by_variable[name], place))
    for name in sorted(
        text_by_variable.keys() - path_by_variable.keys() - _NO_SETTINGS
    ):
        if not name.startswith(_OTHER_PREFIXES):
            _warn_once(  # another program's, perhaps: training must not stop for it
                name,
                "unknown environment variable %s is ignored: %s Rename it, or unset it.",
                name,
                nearest(name, [*path_by_variable, ENV_FILE]),
            )
    return leaves


def from_assignments(texts: Sequence[str], place: str) -> dict[str, Any]:
    """Texts such as `schedule.active=2` as keywords of `load`; a later one wins.

    A section takes its short form: `history=true`.

    Raises:
        ConfigError: a key is unknown, or there is none; names `place`.
    """
    leaves: dict[str, Any] = {}
    for text in texts:
        path, is_one, value = text.partition("=")
        path = path.strip()
        if not is_one:
            raise ConfigError(
                f"'{text}' in {place} sets nothing. Write the key, = and the value:"
                f" {path or 'history'}=true"
            )
        if path not in settings() and path not in sections():
            _refuse(path, place, [*settings(), *sections()])
        leaves.update((p, f.value) for p, f in _from_text(path, value, place).items())
    return nested(leaves)


def nested(leaves: Mapping[str, Any]) -> dict[str, Any]:
    """Leaves by path as a mapping of sections."""
    values: dict[str, Any] = {}
    for path, value in leaves.items():
        name, _, leaf = path.partition(".")
        section = values.setdefault(name, {}) if leaf else values
        section[leaf or name] = value
    return values


def _from_text(path: str, text: str, place: str) -> dict[str, LocatedValue]:
    """The leaves that a text sets, for a setting or for the short form of a section."""
    value: Any = text
    if path in settings() and settings()[path].many:
        value = [word for part in text.split(",") if (word := part.strip())]
    elif path in settings():
        value = _read_as(text, settings()[path].kinds)
    elif f"{path}.url" not in settings():
        value = _read_as(text, (bool,))
    return dict(flatten(Document(nested({path: value}), place)))


def _read_as(text: str, kinds: Collection[Any]) -> Any:
    """A text as the first type that it reads as; the text itself where none."""
    word = text.strip()
    lower = word.lower()
    is_number = float in kinds and lower in {"0", "1"}
    if bool in kinds and lower in _TRUE | _FALSE and not is_number:
        return lower in _TRUE
    if type(None) in kinds and lower in {"null", "none"}:
        return None
    for kind, read_one in ((Options, json.loads), (int, int), (float, float)):
        if kind in kinds:
            with contextlib.suppress(ValueError):
                return read_one(word)
    return word


def flatten(document: Document) -> Iterator[tuple[str, LocatedValue]]:
    """Leaves by path, short forms spelled out.

    Raises:
        ConfigError: a key is unknown, or a section holds nothing that it takes.
    """
    for key, value in document.plain.items():
        name = str(key)
        where = document.at(name)
        if name not in sections():
            if name not in settings():
                _refuse(name, where, [*settings(), *sections()])
            yield name, LocatedValue(value, where)
        elif isinstance(value, (Mapping, type(sections()[name]))):
            inner = (
                value if isinstance(value, Mapping) else msgspec.structs.asdict(value)
            )
            for leaf, item in inner.items():
                path = f"{name}.{leaf}"
                if path not in settings():
                    _refuse(path, document.at(path), _leaves(name))
                yield path, LocatedValue(item, document.at(path))
        else:
            for leaf, item in _spelled_out(name, value, where):
                yield f"{name}.{leaf}", LocatedValue(item, where)


def _spelled_out(
    section_name: str, value: Any, place: str
) -> Iterator[tuple[str, Any]]:
    """The leaves that a section's short form stands for."""
    keys = [path.partition(".")[2] for path in _leaves(section_name)]
    if value is None:
        return  # a section whose keys are all commented out is null
    if isinstance(value, bool) and "enabled" in keys:
        yield "enabled", value
    elif "url" in keys and (value is False or isinstance(value, str)):
        yield "url", value or ""
    else:
        admitted = ["true", "false"] if "enabled" in keys else []
        admitted += ["a url"] if "url" in keys else []
        admitted.append(f"a mapping of the keys {', '.join(keys[:-1])} and {keys[-1]}")
        raise ConfigError(
            f"'{section_name}' in {place} must be {one_of(admitted)}, got {describe(value)}."
        )


def _leaves(section_name: str) -> list[str]:
    return [path for path in settings() if path.startswith(f"{section_name}.")]


def _refuse(key: str, place: str, keys: list[str]) -> None:
    hint = HINTS.get(key.rpartition(".")[2])
    hint_sentence = f"{hint}." if hint else nearest(key, keys)
    raise ConfigError(
        f"unknown key '{text_of(key, MAX_KEY)}' in {place}: {hint_sentence} Rename it or remove"
        " it; `python -m memboard.collector.config.table --markdown` lists every key."
    )
