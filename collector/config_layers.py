"""The layers a setting can stand in, each as leaves by path with the place they are at.

Every layer is flattened the same way, so that an unknown key is refused with the same
words wherever it stands, and a later layer replaces single leaves, not whole sources.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Final, NamedTuple, get_args

from collector.config import (
    ENV_PREFIX,
    RecordConfig,
    SourceConfig,
    sections,
    settings,
    variable,
)
from collector.config_checks import describe
from collector.errors import ConfigError

ENV_FILE: Final = "MEMBOARD_CONFIG"
"""Names a configuration file, where `load` is given none."""

_PLUGIN_PREFIX: Final = "MEMBOARD_PLUGIN_"
"""Variables of the viewer: none of the collector's business."""

_TRUE: Final = frozenset({"1", "true", "yes", "on"})
_FALSE: Final = frozenset({"0", "false", "no", "off"})


class Found(NamedTuple):
    """A value and where it stands, in words."""

    value: Any
    place: str


def merged(
    config: str | Path | Mapping[str, Any] | RecordConfig | None,
    keywords: Mapping[str, Any],
) -> dict[str, Found]:
    """What is set, by path, the strongest layer last and so winning."""
    return {
        **_from_config(config),
        **_from_environment(),
        **dict(_flatten(keywords, "the keywords", {})),
    }


def _from_config(
    config: str | Path | Mapping[str, Any] | RecordConfig | None,
) -> dict[str, Found]:
    if config is None:
        named = os.environ.get(ENV_FILE)
        if not named:
            return {}
        config = Path(named)
    if isinstance(config, RecordConfig):
        return dict(_flatten(config.to_plain(), "the given RecordConfig", {}))
    if isinstance(config, Mapping):
        return dict(_flatten(config, "the given mapping", {}))
    if isinstance(config, (str, Path)):
        return _from_file(Path(config).expanduser())
    raise ConfigError(
        f"config must be a file, a mapping or a RecordConfig, got {describe(config)}."
    )


def _from_environment() -> dict[str, Found]:
    """Settings from `MEMBOARD_*`; a source's own keys win over its short form."""
    found: dict[str, Found] = {}
    shorts = {variable(name): name for name in sections()}
    leaves = {variable(path): setting for path, setting in settings().items()}
    given = {
        name: text
        for name, text in os.environ.items()
        if name.startswith(ENV_PREFIX)
        and not name.startswith(_PLUGIN_PREFIX)
        and name != ENV_FILE
        and text
    }
    for name in sorted(given, key=lambda name: name not in shorts):
        place = f"the environment variable {name}"
        if name in shorts:
            value = _parse(given[name], bool, float)
            found.update(_flatten({shorts[name]: value}, place, {}))
        elif name in leaves:
            setting = leaves[name]
            value = _parse(given[name], *(get_args(setting.hint) or (setting.hint,)))
            found[setting.path] = Found(value, place)
        else:
            near = _nearest(name, [*leaves, *shorts, ENV_FILE])
            raise ConfigError(
                f"unknown environment variable {name}: {near} Rename it, or unset it."
            )
    return found


def _parse(text: str, *accepts: Any) -> Any:
    """A variable's text as the first type it reads as; the text itself where none."""
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


def _flatten(
    plain: Mapping[str, Any], place: str, lines: Mapping[str, int]
) -> Iterator[tuple[str, Found]]:
    """Leaves by path, short forms spelled out; unknown keys are refused."""
    for key, value in plain.items():
        name = str(key)
        at = _at(place, lines.get(name))
        if name not in sections():
            if name not in settings():
                _refuse(name, at, [*settings(), *sections()])
            yield name, Found(value, at)
        elif isinstance(value, bool):
            yield f"{name}.enabled", Found(value, at)
        elif isinstance(value, (int, float)):
            yield f"{name}.enabled", Found(True, at)
            yield f"{name}.interval_seconds", Found(value, at)
        elif isinstance(value, (Mapping, SourceConfig)):
            inner = asdict(value) if isinstance(value, SourceConfig) else value
            for leaf, item in inner.items():
                path = f"{name}.{leaf}"
                inner_at = _at(place, lines.get(path))
                if path not in settings():
                    _refuse(
                        path,
                        inner_at,
                        [f"{name}.{f.name}" for f in fields(SourceConfig)],
                    )
                yield path, Found(item, inner_at)
        elif value is not None:  # a section whose keys are all commented out is null
            raise ConfigError(
                f"'{name}' in {at} must be true, false, an interval in seconds, or"
                f" the keys enabled and interval_seconds, got {describe(value)}."
            )


def _refuse(key: str, place: str, known: list[str]) -> None:
    raise ConfigError(
        f"unknown key '{key}' in {place}: {_nearest(key, known)} Rename it or remove"
        " it; `python -m collector.config --markdown` lists every key."
    )


def _nearest(word: str, known: list[str]) -> str:
    import difflib

    near = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f"did you mean '{near[0]}'?" if near else "no key is like it."


def _at(place: str, line: int | None) -> str:
    return place if line is None else f"{place}, line {line}"


def _from_file(path: Path) -> dict[str, Found]:
    """Settings from a YAML file, each with its line."""
    import yaml

    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        if not isinstance(error, (OSError, UnicodeDecodeError)):
            reason = str(error)  # the path itself cannot be one
        raise ConfigError(
            f"cannot read the configuration file {path}: {reason}. Correct the path"
            f" given as config or in {ENV_FILE}."
        ) from error
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        plain = None if node is None else loader.construct_document(node)
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        place = _at(str(path), mark.line + 1 if mark else None)
        problem = getattr(error, "problem", None) or error
        raise ConfigError(f"{place} is not valid YAML: {problem}.") from error
    finally:
        loader.dispose()
    if plain is None:
        return {}
    if not isinstance(plain, dict):
        raise ConfigError(
            f"{path} must hold keys and values (flush_seconds: 2), not"
            f" {describe(plain)}."
        )
    return dict(_flatten(plain, str(path), _lines(node, str(path))))


def _lines(node: Any, place: str, above: str = "") -> dict[str, int]:
    """The line of every key, one level deep; a key given twice is refused."""
    lines: dict[str, int] = {}
    for key, value in node.value:
        path, line = f"{above}{key.value}", key.start_mark.line + 1
        if path in lines:
            raise ConfigError(
                f"'{path}' stands twice in {place}, in lines {lines[path]} and {line}:"
                " remove one."
            )
        lines[path] = line
        if not above and hasattr(value, "value") and value.id == "mapping":
            lines.update(_lines(value, place, f"{path}."))
    return lines
