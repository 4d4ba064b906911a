"""Files and mappings of settings, with the line of each key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from memboard.collector.config.values import describe
from memboard.collector.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


class Document(NamedTuple):
    """What a file or mapping holds."""

    plain: Mapping[Any, Any]
    place: str
    """What it is called in errors."""
    lines: Mapping[str, int] = {}
    """The line of every key by its path (`cpu.enabled`); entries of a list count too."""
    twice: Mapping[str, tuple[int, int]] = {}
    """Keys that stand twice in one mapping, with their first two lines."""

    def at(self, path: str) -> str:
        """The place of a key in words, with its line where that is known."""
        line = self.lines.get(path)
        return self.place if line is None else f"{self.place}, line {line}"

    def mappings(
        self, is_leaf: Callable[[str, Mapping[Any, Any]], bool]
    ) -> Iterator[tuple[str, Mapping[Any, Any]]]:
        """Every mapping with the start of its keys' paths (`cpu.`), top first.

        `is_leaf`, given both, says below which none is wanted. What an alias repeats
        comes once.
        """
        waiting: list[tuple[str, Any]] = [("", self.plain)]
        seen = set()
        while waiting:
            above, node = waiting.pop(0)
            if id(node) in seen:
                continue
            seen.add(id(node))
            if isinstance(node, Mapping):
                yield above, node
                if is_leaf(above, node):
                    continue
            pairs = node.items() if isinstance(node, Mapping) else enumerate(node)
            waiting += [
                (f"{above}{key}.", value)
                for key, value in pairs
                if isinstance(value, (Mapping, list, tuple))
            ]

    def refuse_twice(self, within: str = "") -> None:
        """Refuse a key that stands twice in the part of a file that is ours.

        Raises:
            ConfigError: names both lines.
        """
        for path, (first, second) in self.twice.items():
            if not within or path == within or path.startswith(f"{within}."):
                raise ConfigError(
                    f"'{path}' stands twice in {self.place}, in lines {first} and"
                    f" {second}: remove one."
                )


def read(path: Path) -> Document:
    """Read one YAML file.

    Raises:
        ConfigError: it cannot be read, is no YAML, or holds no mapping.
    """
    import yaml

    try:
        loader = yaml.SafeLoader(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        if not isinstance(error, (OSError, UnicodeDecodeError, yaml.YAMLError)):
            reason = str(error)  # the path itself cannot be one
        raise ConfigError(
            f"cannot read the configuration file {path}: {reason}. Correct the path"
            " given as config or in MEMBOARD_CONFIG."
        ) from error
    document = Document({}, str(path), {}, {})
    try:
        node = loader.get_single_node()
        if node is None:
            return document
        # First the lines: merging `<<` in the next step moves keys about.
        _collect(node, "", document, set())
        plain = loader.construct_document(node)
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{path}, line {mark.line + 1}" if mark else path
        problem = getattr(error, "problem", None) or error
        raise ConfigError(f"{place} is not valid YAML: {problem}.") from error
    finally:
        loader.dispose()
    if not isinstance(plain, dict):
        raise ConfigError(
            f"{path} must hold keys and values (flush_seconds: 2), not"
            f" {describe(plain)}."
        )
    return document._replace(plain=plain)


def _collect(node: Any, above: str, document: Any, seen: set[int]) -> None:
    """Note the lines below one node; what an alias repeats is walked once."""
    if id(node) in seen or node.id == "scalar":
        return
    seen.add(id(node))
    if node.id == "sequence":
        for index, item in enumerate(node.value):
            _collect(item, f"{above}{index}.", document, seen)
        return
    for key, value in node.value:
        if key.id != "scalar" or key.tag == "tag:yaml.org,2002:merge":
            continue
        path, line = f"{above}{key.value}", key.start_mark.line + 1
        if document.lines.setdefault(path, line) != line:
            document.twice.setdefault(path, (document.lines[path], line))
        _collect(value, f"{path}.", document, seen)
