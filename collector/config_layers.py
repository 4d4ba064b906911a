"""The layers a setting can stand in, each as leaves by path with the place they are at.

Every layer is flattened the same way, so that an unknown key is refused with the same
words wherever it stands, and a later layer replaces single leaves, not whole sections.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from collector.config import ENV_PREFIX, RecordConfig, sections, settings, variable
from collector.config_checks import Found, Setting, describe, nearest, one_of
from collector.config_file import Document, at, read, refuse_twice
from collector.config_memprofiler import Imported, imported
from collector.config_switches import switched_on, written_down
from collector.errors import ConfigError
from collector.trouble import Troubles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.config import Layer

ENV_FILE: Final = "MEMBOARD_CONFIG"
"""Names the configuration files, where `load` is given none."""

_OTHER_PREFIXES: Final = ("MEMBOARD_PLUGIN_", "MEMBOARD_VIRTUAL_")
_PLUGIN_VARIABLES: Final = frozenset({"MEMBOARD_CACHE_DIR"})
"""Variables of the viewer and of the virtual GPU, which are no settings."""

_troubles: Final = Troubles()
"""Of this process: settings may be read many times."""

_TRUE: Final = frozenset({"1", "true", "yes", "on"})
_FALSE: Final = frozenset({"0", "false", "no", "off"})


class Merged(NamedTuple):
    """What is set in all layers."""

    leaves: dict[str, Found]
    """By path: the value that wins, and its place."""
    imported: list[Imported]
    """What the layers held in MemProfiler's words."""
    said: Mapping[str, Found] = MappingProxyType({})
    """Of `leaves`, what somebody wrote down; see `config_switches`."""

    def place(self, path: str) -> str:
        """Where the value of a leaf was set, in words."""
        return self.leaves[path].place if path in self.leaves else "the defaults"


def merged(
    config: Layer | Sequence[Layer] | None, keywords: Mapping[str, Any]
) -> Merged:
    """What is set, the strongest layer last and so winning."""
    every = Merged({}, [])
    said: dict[str, Found] = {}
    for layer in _layers(config):
        found = _read(layer)
        every.leaves.update(found.leaves)
        every.imported.extend(found.imported)
        if isinstance(layer, RecordConfig):  # it says all, of whatever came before
            said = {path: found.leaves[path] for path in written_down(layer)}
        else:
            said.update(found.leaves)
    for leaves in (_from_environment(), dict(flatten(keywords, "the keywords"))):
        every.leaves.update(leaves)
        said.update(leaves)
    every.leaves.update(switched_on(said))
    return every._replace(said=said)


def _layers(config: Any) -> Sequence[Any]:
    """The layers that are given, or that the environment names."""
    if config is None:
        named = os.environ.get(ENV_FILE, "")
        return [Path(name) for name in named.split(os.pathsep) if name]
    return config if isinstance(config, (list, tuple)) else [config]


def _read(layer: Any) -> Merged:
    """What one layer sets."""
    if isinstance(layer, RecordConfig):
        return Merged(dict(_from_record(layer)), [])
    if isinstance(layer, Mapping):
        return from_document(Document(layer, {}, {}), "the given mapping")
    if isinstance(layer, (str, Path)):
        path = Path(layer).expanduser()
        return from_document(read(path), str(path))
    raise ConfigError(
        "config must be a file, a mapping or a RecordConfig, or a list of them, got"
        f" {describe(layer)}."
    )


def from_document(document: Document, place: str) -> Merged:
    """What one document sets: our own keys, above what MemProfiler's become.

    Raises:
        ConfigError: a key is unknown or stands twice, or MemProfiler's are wrong.
    """
    found = imported(document, place)
    if found is None:
        refuse_twice(document, place)
        return Merged(dict(flatten(document.plain, place, document.lines)), [])
    own = {key: document.plain[key] for key in found.beside}
    leaves = {**found.leaves, **dict(flatten(own, place, document.lines))}
    return Merged(leaves, [found])


def _from_record(config: RecordConfig) -> Iterator[tuple[str, Found]]:
    """Every leaf of settings made before, callables as they are."""
    for path in settings():
        yield path, Found(config.leaf(path), "the given RecordConfig")


def _from_environment() -> dict[str, Found]:
    """Settings from `MEMBOARD_*`; a section's own keys win over its short form."""
    found: dict[str, Found] = {}
    shorts = {variable(name): name for name in sections() if _short_forms(name)}
    leaves = {variable(path): setting for path, setting in settings().items()}
    given = {
        name: text
        for name, text in os.environ.items()
        if name.startswith(ENV_PREFIX)
        and not name.startswith(_OTHER_PREFIXES)
        and name not in _PLUGIN_VARIABLES
        and name != ENV_FILE
        and text
    }
    for name in sorted(given, key=lambda name: name not in shorts):
        place = f"the environment variable {name}"
        if name in shorts:
            section = shorts[name]
            found.update(flatten({section: _short_value(section, given[name])}, place))
        elif name in leaves:
            setting = leaves[name]
            found[setting.path] = Found(_from_text(given[name], setting), place)
        else:
            near = nearest(name, [*leaves, *shorts, ENV_FILE])
            _troubles.tell(  # another program's, perhaps: training must not stop for it
                name,
                "unknown environment variable %s is ignored: %s Rename it, or unset it.",
                name,
                near,
            )
    return found


def from_assignments(texts: Sequence[str], place: str) -> dict[str, Any]:
    """Texts such as `schedule.active=2` as keywords of `load`; a later one wins.

    A section takes its short form: `history=true`, `cpu=5`.

    Raises:
        ConfigError: a key is unknown, or there is none; names `place`.
    """
    keywords: dict[str, Any] = {}
    for text in texts:
        path, is_one, value = text.partition("=")
        path = path.strip()
        if not is_one:
            raise ConfigError(
                f"'{text}' in {place} sets nothing. Write the key, = and the value:"
                f" {path or 'history'}=true"
            )
        section, _, leaf = path.partition(".")
        if path in settings():
            held = keywords.setdefault(section, {}) if leaf else keywords
            held[leaf or section] = _from_text(value, settings()[path])
        elif path in sections():
            short = dict(flatten({path: _short_value(path, value)}, place))
            leaves = {name.partition(".")[2]: one.value for name, one in short.items()}
            keywords.setdefault(path, {}).update(leaves)
        else:
            refuse(path, place, [*settings(), *sections()])
    return keywords


def _short_value(section: str, text: str) -> Any:
    """The short form of a section as a text has it."""
    forms = _short_forms(section)
    if "url" in forms:
        return text
    kinds = (bool, float) if "interval_seconds" in forms else (bool,)
    return _number_or_switch(text, kinds)


def _from_text(text: str, setting: Setting) -> Any:
    """A variable's text as the setting's type; as text where it reads as none."""
    if setting.takes_options:
        with contextlib.suppress(ValueError):
            return json.loads(text)
    if setting.many:
        return [word for part in text.split(",") if (word := part.strip())]
    return _number_or_switch(text, setting.accepts)


def _number_or_switch(text: str, accepts: tuple[Any, ...]) -> Any:
    """A text as the first type it reads as; the text itself where none."""
    word = text.strip()
    lower = word.lower()
    if (
        bool in accepts
        and lower in _TRUE | _FALSE
        and not (float in accepts and lower in {"0", "1"})
    ):
        return lower in _TRUE
    if type(None) in accepts and lower in {"null", "none"}:
        return None
    for kind in (int, float):
        if kind in accepts:
            try:
                return kind(word)
            except ValueError:
                continue
    return word


def flatten(
    plain: Mapping[Any, Any], place: str, lines: Mapping[str, int] | None = None
) -> Iterator[tuple[str, Found]]:
    """Leaves by path, short forms spelled out.

    Raises:
        ConfigError: a key is unknown, or a section holds nothing that it takes.
    """
    lines = lines or {}
    for key, value in plain.items():
        name = str(key)
        where = at(place, lines.get(name))
        if name not in sections():
            if name not in settings():
                refuse(name, where, [*settings(), *sections()])
            yield name, Found(value, where)
        elif isinstance(value, (Mapping, type(sections()[name]))):
            for leaf, item in _inner(value):
                path = f"{name}.{leaf}"
                inner = at(place, lines.get(path))
                if path not in settings():
                    refuse(path, inner, _leaves(name))
                yield path, Found(item, inner)
        else:
            for leaf, item in _spelled_out(name, value, where):
                yield f"{name}.{leaf}", Found(item, where)


def _inner(section: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(section, Mapping):
        yield from section.items()
    else:
        for item in fields(section):
            yield item.name, getattr(section, item.name)


def _spelled_out(name: str, value: Any, place: str) -> Iterator[tuple[str, Any]]:
    """The leaves that a section's short form stands for."""
    forms = _short_forms(name)
    if value is None:
        return  # a section whose keys are all commented out is null
    if isinstance(value, bool) and "enabled" in forms:
        yield "enabled", value
        return
    paced = isinstance(value, (int, float)) and not isinstance(value, bool)
    if paced and "interval_seconds" in forms:
        yield "enabled", True
        yield "interval_seconds", value
        return
    if "url" in forms and (value is False or isinstance(value, str)):
        yield "url", value or ""
        return
    keys = [path.partition(".")[2] for path in _leaves(name)]
    admitted = ["true", "false"] if "enabled" in forms else []
    admitted += ["an interval in seconds"] if "interval_seconds" in forms else []
    admitted += ["a url"] if "url" in forms else []
    admitted.append(f"a mapping of the keys {', '.join(keys[:-1])} and {keys[-1]}")
    raise ConfigError(
        f"'{name}' in {place} must be {one_of(admitted)}, got {describe(value)}."
    )


def _short_forms(name: str) -> set[str]:
    """The leaves of a section that its bare value may set."""
    leaves = {item.name for item in fields(sections()[name])}
    return {"enabled", "interval_seconds", "url"} & leaves


def _leaves(name: str) -> list[str]:
    return [path for path in settings() if path.startswith(f"{name}.")]


def refuse(key: str, place: str, known: list[str]) -> None:
    """Refuse a key that there is not.

    Raises:
        ConfigError: names the key, its place and the nearest of `known`.
    """
    raise ConfigError(
        f"unknown key '{key}' in {place}: {nearest(key, known)} Rename it or remove"
        " it; `python -m collector.config --markdown` lists every key."
    )
