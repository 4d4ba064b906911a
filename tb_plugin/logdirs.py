"""Which directories TensorBoard was pointed at: `--logdir` or `--logdir_spec`."""

# ruff: noqa: PTH111
# os.path: the strings are compared with what os.scandir gives.

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

if TYPE_CHECKING:
    from collections.abc import Iterator

_URI = re.compile(r"[a-zA-Z][0-9a-zA-Z.+-]*://")


@dataclass(frozen=True, slots=True)
class Logdir:
    """One directory that was asked for."""

    shown: str
    """As the user gave it."""
    name: str
    """Prefix of its runs' names under `--logdir_spec`; may be empty."""
    path: str | None
    """Absolute and free of links; None where it is remote."""


def logdirs_of(context: Any) -> tuple[Logdir, ...]:
    """The directories of a `TBContext`; its `logdir` is empty under --logdir_spec."""
    flags = getattr(context, "flags", None)
    spec = getattr(flags, "logdir_spec", None) or ""
    logdir = getattr(context, "logdir", None) or getattr(flags, "logdir", None) or ""
    if logdir:
        return (_logdir(logdir, ""),)
    return tuple(_parse_spec(spec))


def _parse_spec(spec: str) -> Iterator[Logdir]:
    """TensorBoard's own syntax: `name:/path,/path,...`."""
    for item in spec.split(","):
        if not item:
            continue
        named = ":" in item and not item.startswith("/") and not _URI.match(item)
        if named and not os.path.splitdrive(item)[0]:
            name, _, path = item.partition(":")
            yield _logdir(path, name)
        else:
            yield _logdir(item, "")


def _logdir(shown: str, name: str) -> Logdir:
    path: str | None = shown
    if _URI.match(shown):
        parsed = urlparse(shown)
        local = parsed.scheme == "file" and parsed.netloc in ("", "localhost")
        path = unquote(parsed.path) if local else None
    # Links are resolved once here; below, only links that stay inside are followed.
    if path is not None:
        path = os.path.realpath(os.path.expanduser(path))
    return Logdir(shown=shown, name=name, path=path)
