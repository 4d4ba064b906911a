"""A mirror for tests: a run directory, who we are, and somewhere to put files."""

from __future__ import annotations

import itertools
import json
import uuid
from dataclasses import dataclass, field
from typing import Any

import pytest

from memboard.collector.config.sections import RemoteConfig
from memboard.collector.core.warn_once import WarnOnce
from memboard.collector.mirror.mirror import Mirror
from memboard.collector.process.rank import Identity

STEM = "rank00003-20261120T101530123-1f2e3d4c"

_numbers = itertools.count()


def who(**fields) -> Identity:
    known: dict[str, Any] = {
        "rank": 3,
        "local_rank": 1,
        "world_size": 8,
        "local_world_size": 2,
        "node_rank": 1,
        "host": "host",
        "job": "",
        "settled": True,
    }
    return Identity(**{**known, **fields})


@dataclass
class Bench:
    """A run directory and what a mirror of it said."""

    run_dir: Any
    notes: list[tuple[str, str, str]] = field(default_factory=list)
    warn_once: WarnOnce = field(default_factory=WarnOnce)
    stem: str = STEM
    who: Identity = field(default_factory=who)

    def mirror(self, url: str, *, start: bool = True, **settings) -> Mirror:
        options = {"close_seconds": 60.0, **settings}
        mirror = Mirror(
            RemoteConfig(url=url, **options),
            self.run_dir,
            identify=lambda: self.who,
            stem=lambda: self.stem,
            warn_once=self.warn_once,
            note=lambda *said: self.notes.append(said),
        )
        if start:
            mirror.start()
        return mirror

    def file(self, name: str = "", content: bytes = b"content"):
        path = self.run_dir / (name or f"trace{next(_numbers)}.json")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    def segment(self, number: int, content: bytes = b"", stem: str = STEM):
        name = f"plugins/memboard/{stem}.{number:04d}.events"
        return self.file(name, content or b"segment %d" % number)

    @property
    def waiting(self) -> list[str]:
        """What the list of an earlier attempt says is waiting, in order."""
        path = self.run_dir / "plugins" / "memboard" / f"{self.stem}.waiting.json"
        listed = json.loads(path.read_text()) if path.exists() else []
        return [job["path"] for job in listed]


def files_in(folder) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture
def bench(tmp_path, monkeypatch):
    monkeypatch.setattr("memboard.collector.mirror.uploads.RETRY_SECONDS", 0.1)
    run_dir = tmp_path / "exp1"
    (run_dir / "plugins" / "memboard").mkdir(parents=True)
    return Bench(run_dir)


@pytest.fixture
def there(tmp_path):
    """A directory to mirror to, and its url."""
    folder = tmp_path / "there"
    folder.mkdir()
    return folder


@pytest.fixture
def memory():
    """A place in fsspec's memory file system that no other test uses."""
    return f"memory://{uuid.uuid4().hex}"
