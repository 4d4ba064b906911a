"""Logdirs with files of other tools, and the index over them alone."""

from __future__ import annotations

import os
import pickle
from types import SimpleNamespace
from typing import TYPE_CHECKING

from memboard.tb_plugin.index.logdirs import logdirs_of
from memboard.tb_plugin.index.search.walk import Index
from tests.made_snapshots import long_history
from tests.tb_plugin.client import Ticking

if TYPE_CHECKING:
    from pathlib import Path

SMALL = pickle.dumps(long_history(20))
"""A snapshot."""


def write(path: Path, data: bytes = SMALL) -> Path:
    """A file of long ago, so that nobody may still be writing it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    os.utime(path, (1.7e9, 1.7e9))
    return path


def index_of(logdir: object, clock: Ticking | None = None) -> Index:
    """What is found in a logdir at the first look."""
    context = SimpleNamespace(logdir=str(logdir), flags=None)
    index = Index(logdirs_of(context), clock or Ticking())
    index.refresh()
    return index


def again(index: Index) -> None:
    """Look once more, later."""
    index._clock.later()
    index.refresh()


def dropped_in(folder: Path) -> list[Path]:
    """Files that were dropped onto a page whose temporary files go there."""
    return [path for path in folder.rglob("*") if path.suffix == ".snapshot"]
