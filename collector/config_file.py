"""A YAML file of settings: its plain data, and the line of every key for the errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from collector.config_checks import describe
from collector.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class Document(NamedTuple):
    """What a file holds."""

    plain: Mapping[Any, Any]
    lines: Mapping[str, int]
    """The line of every key by its path (`cpu.enabled`); entries of a list count too."""
    twice: Mapping[str, tuple[int, int]]
    """Keys that stand twice in one mapping, with their first two lines."""


def read(path: Path) -> Document:
    """Read one file.

    Raises:
        ConfigError: it cannot be read, is no YAML, or holds no mapping.
    """
    import yaml

    text = _text(path)
    loader = yaml.SafeLoader(text)
    lines: dict[str, int] = {}
    twice: dict[str, tuple[int, int]] = {}
    try:
        node = loader.get_single_node()
        if node is not None:
            # First the lines: merging `<<` in the next step moves keys about.
            _collect(node, "", lines, twice, set())
        plain = None if node is None else loader.construct_document(node)
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        place = at(str(path), mark.line + 1 if mark else None)
        problem = getattr(error, "problem", None) or error
        raise ConfigError(f"{place} is not valid YAML: {problem}.") from error
    finally:
        loader.dispose()
    if plain is None:
        return Document({}, {}, {})
    if not isinstance(plain, dict):
        raise ConfigError(
            f"{path} must hold keys and values (flush_seconds: 2), not"
            f" {describe(plain)}."
        )
    return Document(plain, lines, twice)


def at(place: str, line: int | None) -> str:
    """A place in words, with its line where that is known."""
    return place if line is None else f"{place}, line {line}"


def refuse_twice(document: Document, place: str, within: str = "") -> None:
    """Refuse a key that stands twice in the part of a file that is ours.

    Raises:
        ConfigError: names both lines.
    """
    for path, (first, second) in document.twice.items():
        if not within or path == within or path.startswith(f"{within}."):
            raise ConfigError(
                f"'{path}' stands twice in {place}, in lines {first} and {second}:"
                " remove one."
            )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        if not isinstance(error, (OSError, UnicodeDecodeError)):
            reason = str(error)  # the path itself cannot be one
        raise ConfigError(
            f"cannot read the configuration file {path}: {reason}. Correct the path"
            " given as config or in MEMBOARD_CONFIG."
        ) from error


def _collect(
    node: Any,
    above: str,
    lines: dict[str, int],
    twice: dict[str, tuple[int, int]],
    seen: set[int],
) -> None:
    """Note the lines below one node; what an alias repeats is walked once."""
    if id(node) in seen or node.id == "scalar":
        return
    seen.add(id(node))
    if node.id == "sequence":
        for index, item in enumerate(node.value):
            _collect(item, f"{above}{index}.", lines, twice, seen)
        return
    for key, value in node.value:
        if key.id != "scalar" or key.tag == "tag:yaml.org,2002:merge":
            continue
        path, line = f"{above}{key.value}", key.start_mark.line + 1
        if path in lines:
            twice.setdefault(path, (lines[path], line))
        else:
            lines[path] = line
        _collect(value, f"{path}.", lines, twice, seen)
