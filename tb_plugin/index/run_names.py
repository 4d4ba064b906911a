"""What a run is called, and its id: by where it lies below its logdir."""

# os.path: the strings are compared with what os.scandir gives.

from __future__ import annotations

import hashlib
import os
from typing import NamedTuple

_ID_DIGITS = 16


class RunName(NamedTuple):
    """Of one run."""

    shown_folder: str
    """Its directory, relative to the logdir; `.` for the logdir itself."""
    name: str
    """As TensorBoard names it."""
    id: str


def run_name(path: str, prefix: str, root: str, made_of: str = "") -> RunName:
    """The name of a run whose directory is `path`, below the logdir `root`.

    `prefix` stands before all names of a logdir of `--logdir_spec`. What is `made_of`
    another tool's files is another run than the one recorded in the same directory.
    """
    shown = relative(path, root)
    name = os.path.normpath(f"{prefix}/{shown}") if prefix else shown
    return RunName(shown, name, run_id(root, name, made_of))


def run_id(root: str, name: str, made_of: str = "") -> str:
    """16 hex digits that stay the same while neither is renamed."""
    key = f"{root}\0{name}" + (f"\0{made_of}" if made_of else "")
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()[:_ID_DIGITS]


def relative(path: str, root: str) -> str:
    """A path below the logdir; `.` for the logdir itself."""
    if path == root:
        return "."
    return path[len(root.rstrip(os.sep)) + 1 :]


def below(shown_folder: str, name: str) -> str:
    """The path of a file in a directory that is given relative to the logdir."""
    return name if shown_folder == "." else f"{shown_folder}/{name}"
