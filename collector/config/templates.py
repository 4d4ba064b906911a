"""Templates of urls and keys: which variables there are, and what they become.

They are written as `str.format` does it, with Composer's names: `{run_name}`,
`{rank:05d}`. Only names and formats, no attributes or indices: a template is data.
"""

from __future__ import annotations

import posixpath
import re
from string import Formatter
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from memboard.collector.errors import ConfigError, nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

Kind: TypeAlias = Literal["events", "traces", "stacks", "memory", "dumps", "merged"]

OF_TRACES: Final[tuple[Kind, ...]] = ("traces", "stacks", "memory")
"""Kinds that have a key of their own, which may hold the moment of a trace."""

IDENTITY: Final = (
    "run_name",
    "rank",
    "local_rank",
    "world_size",
    "local_world_size",
    "node_rank",
)

FILE: Final = ("path", "name", "attempt")
"""Known of the file: its path below the run's directory, its name, its recording."""

MOMENT: Final = (
    "epoch",
    "batch",
    "batch_in_epoch",
    "sample",
    "sample_in_epoch",
    "token",
    "token_in_epoch",
    "total_wct",
    "epoch_wct",
    "batch_wct",
)
"""Known of files that were taken at one moment of training."""

UNKNOWN: Final = "unknown"
"""Value of a variable that is not known."""


def check_remote(value: Callable[[str], Any], place: Callable[[str], str]) -> None:
    """Refuse templates that could never name a file.

    Raises:
        ConfigError: names the key, its place and the remedy.
    """
    url = value("remote.url")
    if not url:
        return
    if "://" not in url:
        raise ConfigError(
            f"'remote.url' in {place('remote.url')} must be a url with its protocol, got"
            f" {url!r}. Write s3://bucket/{{run_name}}, or file:///path for a directory."
        )
    if re.match(r"[^/]+://[^/@]+:[^/@]+@", url):
        raise ConfigError(
            f"'remote.url' in {place('remote.url')} holds a password, which would be"
            " recorded. Give it in remote.storage_options instead."
        )
    checked_names(url, IDENTITY, "remote.url", place)
    paths = [setting_of(kind) for kind in OF_TRACES]
    without_name: dict[str, str] = {}
    for path in ("remote.files", *paths):
        template = value(path)
        if template is None:
            continue
        variables = IDENTITY + FILE + (MOMENT if path in paths else ())
        names = checked_names(template, variables, path, place)
        # Two files of one key would overwrite each other.
        needed = {"path", "name"}
        if not needed & names:
            twin = without_name.setdefault(key_of(template, {}), path)
            if twin != path:
                raise ConfigError(
                    f"'{path}' in {place(path)} gives the same keys as '{twin}' in"
                    f" {place(twin)}. Give one of the two another ending, or add {{name}}."
                )
        if path in paths:
            needed |= {"batch", "total_wct", "batch_wct", "token", "sample"}
        if not needed & names:
            raise ConfigError(
                f"'{path}' in {place(path)} is {template!r}, which gives every file the"
                " same key. Add {path} (the path below the run's directory) or {name}."
            )


def setting_of(kind: str) -> str:
    """The setting with the template of a kind's keys."""
    return f"remote.{kind if kind in OF_TRACES else 'files'}"


def checked_names(
    template: str, variables: tuple[str, ...], path: str, place: Callable[[str], str]
) -> set[str]:
    """The variables of a template, all of which are known."""
    names = set()
    try:
        pieces = list(Formatter().parse(template))
    except ValueError as error:
        raise ConfigError(
            f"'{path}' in {place(path)} is not a template: {error}. Double a brace that"
            f" is not part of a variable: {{ or }}."
        ) from error
    for _, name, form, conversion in pieces:
        if name is None:
            continue
        if name not in variables or conversion or "{" in (form or ""):
            raise ConfigError(
                f"'{path}' in {place(path)} holds the unknown variable"
                f" '{{{name}}}': {nearest(name, list(variables))} Known are"
                f" {', '.join(variables)}."
            )
        names.add(name)
    if not template.strip("/ "):
        raise ConfigError(
            f"'{path}' in {place(path)} is empty. Write {{path}}, or null to keep these"
            " files here."
        )
    return names


def filled(template: str, values: Mapping[str, object]) -> str:
    """The template's text; what `values` lacks, or cannot be formatted, as text."""
    pieces = []
    for text, name, form, _ in Formatter().parse(template):
        pieces.append(text)
        if name is not None:
            value = values.get(name)
            shown = UNKNOWN if value is None else value
            try:
                pieces.append(format(shown, form or ""))
            except (ArithmeticError, TypeError, ValueError):
                pieces.append(str(shown))
    return "".join(pieces)


def key_of(template: str, values: Mapping[str, object]) -> str:
    """A key below the url. It never starts with a slash nor leaves the url.

    An object store takes `/a` for another key than `a`, with an empty folder above it.
    """
    text = posixpath.normpath(filled(template, values).replace("\\", "/").lstrip("/"))
    return "/".join(part for part in text.split("/") if part not in ("", ".", ".."))
