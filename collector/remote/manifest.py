"""What was copied, of one rank and attempt: a small JSON file here, and the same there.

It is written whole each time, here by renaming. A later start reads the one here, so that
nothing is uploaded twice.
"""

from __future__ import annotations

import json
import os
import threading
import time
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from pathlib import Path

SUFFIX: Final = ".remote.json"
"""Behind the name that the rank's file has without its ending."""

FORMAT: Final = 1
_MAX_BYTES: Final = 1 << 26

Status: TypeAlias = Literal["waiting", "uploaded", "failed"]


@dataclass(slots=True, kw_only=True)
class Entry:
    """One file."""

    kind: str
    path: str
    """Below the run's directory, with slashes; absolute where it lies elsewhere."""
    key: str
    """Below the url."""
    url: str
    """The mirror's, with its variables filled in."""
    status: Status = "waiting"
    num_bytes: int | None = None
    crc32c: str = ""
    """Eight hexadecimal digits."""
    time_ns: int = 0
    """Of the last change of status."""
    problem: str = ""
    """Why the last try failed."""
    deleted: bool = False
    """Whether the local file was deleted after the copy had been verified."""
    delete_after: bool = False
    """Whether that is to be done."""


class Manifest:
    """The entries of one rank's attempt, by local path. Safe on any thread."""

    def __init__(self, folder: Path, stem: str) -> None:
        """`stem`: the rank file's name without its ending and segment."""
        self.stem = stem
        self.num_not_queued = 0
        """Files that found no room in the queue."""
        self._path = folder / f"{stem}{SUFFIX}"
        self._lock = threading.Lock()
        self._saving = threading.Lock()
        self._entries: dict[str, Entry] = {}

    @property
    def name(self) -> str:
        """The file's name, here and there."""
        return self._path.name

    def load(self) -> None:
        """Take over what was written before; nothing where that cannot be read."""
        try:
            if self._path.stat().st_size > _MAX_BYTES:
                return
            plain = json.loads(self._path.read_bytes())
            entries = [_entry(item) for item in plain["files"]]
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            return  # what was uploaded is then found by looking there
        with self._lock:
            self._entries = {entry.path: entry for entry in entries}

    def get(self, path: str) -> Entry | None:
        """What is known of a file."""
        return self._entries.get(path)

    def entries(self) -> tuple[Entry, ...]:
        """All files, in the order in which they came."""
        with self._lock:
            return tuple(self._entries.values())

    def add(self, entry: Entry) -> None:
        """A file waits."""
        entry.time_ns = time.time_ns()
        with self._lock:
            self._entries[entry.path] = entry

    def change(self, entry: Entry, status: Status, problem: str = "") -> None:
        """What became of a file."""
        with self._lock:
            entry.status, entry.problem = status, problem
            entry.time_ns = time.time_ns()

    def encode(self) -> bytes:
        """The whole as JSON."""
        with self._lock:
            files = [asdict(entry) for entry in self._entries.values()]
        counts = {
            f"num_{status}": sum(item["status"] == status for item in files)
            for status in ("uploaded", "waiting", "failed")
        }
        plain = {
            "format": FORMAT,
            "recording": self.stem,
            "written_ns": time.time_ns(),
            **counts,
            "num_not_queued": self.num_not_queued,
            "files": files,
        }
        return json.dumps(plain, indent=1).encode()

    def save(self) -> None:
        """Write it here, whole or not at all.

        Raises:
            OSError: it cannot be written.
        """
        begun = self._path.with_name(f"{self._path.name}.{os.getpid()}.tmp")
        with self._saving:
            try:
                begun.write_bytes(self.encode())
                os.replace(begun, self._path)  # noqa: PTH105  # the same in fewer steps
            finally:
                begun.unlink(missing_ok=True)


def _entry(plain: Any) -> Entry:
    known = {item.name for item in fields(Entry)}
    entry = Entry(**{key: value for key, value in plain.items() if key in known})
    texts = (entry.path, entry.key, entry.url, entry.kind, entry.status)
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("an entry of a manifest is none")
    return entry
