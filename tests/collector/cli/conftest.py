"""Fixtures of the verbs' tests."""

from __future__ import annotations

import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING

import fsspec
import pytest

from memboard.tb_plugin.cli import main
from tests.memprofiler_files import printed_by_torch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MEMORY = fsspec.filesystem("memory")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("MEMBOARD_CACHE_DIR", str(tmp_path / "cache"))


@contextmanager
def stored(folder: Path) -> Iterator[str]:
    """The address of a store that holds the same files."""
    name = uuid.uuid4().hex
    for path in folder.rglob("*"):
        if path.is_file():
            below = path.relative_to(folder).as_posix()
            MEMORY.pipe_file(f"/{name}/{below}", path.read_bytes())
    yield f"memory://{name}"
    MEMORY.rm(f"/{name}", recursive=True)


def command(*arguments: object) -> int:
    """Runs `memboard`; its exit code, also where argparse ends it."""
    try:
        return main(list(map(str, arguments)))
    except SystemExit as ended:
        return int(ended.code or 0)


@pytest.fixture(scope="session")
def torch_reports(fsdp_on_cpu, tmp_path_factory) -> tuple[Path, dict]:
    """What torch's own trackers print here, and what they held."""
    folder = tmp_path_factory.mktemp("torch")
    return folder, printed_by_torch(folder)
