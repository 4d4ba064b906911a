"""A store that fails in all the ways that stores do, as a file system of fsspec's."""

from __future__ import annotations

import io
import itertools
import time
from pathlib import Path
from typing import Any, ClassVar

import fsspec
from fsspec.implementations.memory import MemoryFileSystem

FAULTS = (
    "none",
    "refuses",
    "times out before",
    "times out after",
    "answers late",
    "confirms without storing",
    "stores a part",
    "stores something else",
)
"""What becomes of one upload."""


class FaultyStore(MemoryFileSystem):
    """Each upload has the next of `faults`, and then none has any."""

    protocol = "faulty"
    cachable = False
    objects: ClassVar[dict[str, bytes]] = {}
    faults: ClassVar[Any] = iter(())

    @classmethod
    def empty(cls, faults: Any) -> None:
        """Begin anew, with these faults."""
        cls.objects.clear()
        cls.faults = itertools.chain(faults, itertools.repeat("none"))

    def put_file(self, lpath: str, rpath: str, **_: Any) -> None:
        content = Path(lpath).read_bytes()
        fault = next(self.faults)
        if fault == "refuses":
            raise PermissionError("AccessDenied")
        if fault == "times out before":
            raise TimeoutError("no answer")
        if fault == "answers late":
            time.sleep(0.02)
        if fault == "stores a part":
            content = content[:-1]
        if fault == "stores something else":
            content = bytes(len(content))
        if fault != "confirms without storing":
            self.objects[rpath] = content
        if fault == "times out after":
            raise TimeoutError("no answer")

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        if path not in self.objects:
            raise FileNotFoundError(path)
        return {"name": path, "size": len(self.objects[path]), "type": "file"}

    def mv(self, path1: str, path2: str, **_: Any) -> None:
        self.objects[path2] = self.objects.pop(path1)

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        pass

    def open(self, path: str, *_: Any, **__: Any) -> Any:
        return io.BytesIO(self.objects[path])

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return path.removeprefix("faulty://")


fsspec.register_implementation("faulty", FaultyStore, clobber=True)
