"""One place at the other end: a file system of fsspec's and a path in it.

fsspec and the file system's own package are imported only here, and only for a recording
that has a mirror.
"""

from __future__ import annotations

import base64
import hashlib
from typing import IO, TYPE_CHECKING, Any, Final

from memboard.collector.errors import ConfigError
from memboard.collector.format.sizes import counted
from memboard.collector.mirror.refusals import EXTRAS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_WHOLE_OBJECTS: Final = frozenset(
    {"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "oss", "oci", "memory"}
)
"""Stores whose objects are there whole or not at all; elsewhere a file is renamed."""

_MAX_PIECES: Final = 2
"""Of a large file, that are under way at the same time."""

_BLOCK_BYTES: Final = 1 << 20


class NotVerifiedError(OSError):
    """What lies at the other end is not what was sent."""


def check_protocol(url: str) -> None:
    """Import what a url's protocol needs, on the calling thread.

    Raises:
        ConfigError: fsspec knows no such protocol, or its package is missing.
    """
    import fsspec

    # A chain (`filecache::s3://`) needs the classes of all its links.
    for part in url.split("::"):
        protocol = part.split("://", 1)[0].lower()
        try:
            fsspec.get_filesystem_class(protocol)
        except ValueError as error:
            raise ConfigError(
                f"'remote.url' names the protocol {protocol!r}, which fsspec does not"
                " know. Correct it, or install the package that brings it."
            ) from error
        except ImportError as error:
            extra = EXTRAS.get(protocol)
            package = f"memboard[{extra}]" if extra else "the package it names"
            raise ConfigError(
                f"'remote.url' needs a package that is not there: {error}. Install"
                f" {package} where training runs, or remove remote.url."
            ) from error


class Store:
    """Everything below one url. Its calls block, and may be made on several threads.

    They raise whatever the file system raises.
    """

    def __init__(self, url: str, options: Mapping[str, Any]) -> None:
        from fsspec.core import url_to_fs

        # An instance of its own: the program may close, or fork with, a shared one.
        all_options = {**options, "skip_instance_cache": True}
        self._files, root = url_to_fs(url, **all_options)
        if "max_concurrency" not in options and hasattr(self._files, "max_concurrency"):
            # Pieces of 50 MB, ten at a time, are memory that training may need.
            self._files.max_concurrency = _MAX_PIECES
        self._root = str(root).rstrip("/")
        protocols = self._files.protocol
        names = (protocols,) if isinstance(protocols, str) else tuple(protocols)
        self._is_whole = bool(_WHOLE_OBJECTS & set(names))

    def put(self, path: Path, key: str) -> None:
        """Copy a file to a key below the url, and verify the copy by its size.

        Raises:
            NotVerifiedError: something else lies there now.
        """
        target = f"{self._root}/{key}"
        if self._is_whole:
            self._files.put_file(str(path), target)
        else:  # of an object store `makedirs` would create the bucket
            self._files.makedirs(target.rpartition("/")[0], exist_ok=True)
            self._files.put_file(str(path), f"{target}.part")
            self._files.mv(f"{target}.part", target)
        size, num_bytes = self._info(target).get("size"), path.stat().st_size
        if size is not None and int(size) != num_bytes:
            raise NotVerifiedError(
                f"{target} has {counted(size, 'byte')} there, {num_bytes} were sent"
            )

    def has(self, key: str) -> bool:
        try:
            self._info(f"{self._root}/{key}")
        except FileNotFoundError:
            return False
        return True

    def size_of(self, key: str) -> int | None:
        """How many bytes lie there; None where nothing does, or nobody says."""
        try:
            size = self._info(f"{self._root}/{key}").get("size")
        except FileNotFoundError:
            return None
        return None if size is None else int(size)

    def _info(self, target: str) -> Mapping[str, Any]:
        """What lies there now, not as it was listed; not every system can cache nothing."""
        self._files.invalidate_cache()
        info: Mapping[str, Any] = self._files.info(target)
        return info

    def holds(self, key: str, path: Path) -> bool:
        """Whether what lies there is the file: by the store's own sum, else by reading it.

        A sum that differs may be of something else (encrypted, in pieces).
        """
        target = f"{self._root}/{key}"
        info = self._info(target)
        with path.open("rb") as file:
            md5 = _md5(file)
        content_md5 = getattr(info.get("content_settings"), "content_md5", None)
        checksums = (
            str(info.get("ETag", "")).strip('"'),
            info.get("md5Hash"),
            content_md5,
        )
        told = (md5.hex(), base64.b64encode(md5).decode(), md5)
        if any(
            checksum == other for checksum, other in zip(checksums, told, strict=True)
        ):
            return True
        with self._files.open(target, "rb", block_size=_BLOCK_BYTES) as copy:
            return _md5(copy) == md5


def _md5(file: IO[bytes]) -> bytes:
    """Not for security: S3, GCS and Azure tell this very sum."""
    md5 = hashlib.md5(usedforsecurity=False)
    while block := file.read(_BLOCK_BYTES):
        md5.update(block)
    return md5.digest()
