"""One place at the other end: a file system of fsspec's and a path in it.

fsspec and the file system's own package are imported only here, and only for a recording
that has a mirror.
"""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import google_crc32c

from collector.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_WHOLE_OBJECTS: Final = frozenset(
    {"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "oss", "oci", "memory"}
)
"""Where an object is there whole or not at all; elsewhere a file is renamed at the end."""

_EXTRAS: Final = {
    **dict.fromkeys(("s3", "s3a"), "s3"),
    **dict.fromkeys(("gs", "gcs"), "gs"),
    **dict.fromkeys(("az", "abfs", "abfss", "adl"), "azure"),
    **dict.fromkeys(("hdfs", "webhdfs"), "hdfs"),
}
"""The extra of ours that brings a protocol's package."""

_MAX_PIECES: Final = 2
"""Of a large file, that are under way at the same time."""

_BLOCK_BYTES: Final = 1 << 20
_MD5_HEX: Final = re.compile(r'"?([0-9a-f]{32})"?')


class NotVerifiedError(OSError):
    """What lies at the other end is not what was sent."""


@dataclass(frozen=True, slots=True)
class Sums:
    """What a file's content comes to."""

    num_bytes: int
    crc32c: int
    md5: str
    """In hexadecimal digits; the name that S3 gives to what was put in one piece."""


def sums_of(path: Path) -> Sums:
    """Read a file once, in blocks.

    Raises:
        OSError: it cannot be read.
    """
    # Not for security: S3 and GCS answer with this very sum.
    md5 = hashlib.md5(usedforsecurity=False)
    crc, size = 0, 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            crc = google_crc32c.extend(crc, block)
            md5.update(block)
            size += len(block)
    return Sums(size, crc, md5.hexdigest())


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
            extra = _EXTRAS.get(protocol)
            package = f"memboard[{extra}]" if extra else "the package it names"
            raise ConfigError(
                f"'remote.url' needs a package that is not there: {error}. Install"
                f" {package} where training runs, or remove remote.url."
            ) from error


class Store:
    """Everything below one url. Its calls block, and may be made on several threads."""

    def __init__(self, url: str, options: Mapping[str, Any]) -> None:
        """Open the file system.

        Raises:
            Exception: whatever the file system raises where it cannot be opened.
        """
        from fsspec.core import url_to_fs

        # An instance of its own: the program may close, or fork with, a shared one.
        given = {**options, "skip_instance_cache": True}
        self._files, root = url_to_fs(url, **given)
        if "max_concurrency" not in options and hasattr(self._files, "max_concurrency"):
            # Pieces of 50 MB, ten at a time, are memory that training may need.
            self._files.max_concurrency = _MAX_PIECES
        self._root = str(root).rstrip("/")
        protocols = self._files.protocol
        names = (protocols,) if isinstance(protocols, str) else tuple(protocols)
        self._is_whole = bool(_WHOLE_OBJECTS & set(names))

    def put(self, path: Path, key: str, sums: Sums, *, read_back: bool) -> None:
        """Copy a file, and look whether it arrived.

        Args:
            path: the local file.
            key: where it goes, below the url.
            sums: of the file.
            read_back: where the store tells no checksum of its own, read the copy: the
                local file is to be deleted.

        Raises:
            NotVerifiedError: something else lies there now.
            Exception: whatever the file system raises.
        """
        target = self._path(key)
        with self._replacing(target) as begun:
            self._files.put_file(str(path), begun)
        self._verify(target, sums, read_back=read_back)

    def size_of(self, key: str) -> int | None:
        """How many bytes lie there; None where nothing does, or nobody says.

        Raises:
            Exception: whatever the file system raises, besides that nothing is there.
        """
        self._files.invalidate_cache()
        try:
            size = self._files.info(self._path(key)).get("size")
        except FileNotFoundError:
            return None
        return None if size is None else int(size)

    def _path(self, key: str) -> str:
        return f"{self._root}/{key}"

    def _replacing(self, target: str) -> _Replacing:
        return _Replacing(self._files, target, is_whole=self._is_whole)

    def _verify(self, target: str, sums: Sums, *, read_back: bool) -> None:
        self._files.invalidate_cache()
        info = self._files.info(target)
        size = info.get("size")
        if size is not None and int(size) != sums.num_bytes:
            raise NotVerifiedError(
                f"{target} has {size} bytes there, {sums.num_bytes} were sent"
            )
        # A sum that differs may be of something else (encrypted, in pieces): then read.
        if _says(info, sums) or not read_back:
            return
        crc = 0
        with self._files.open(target, "rb", block_size=_BLOCK_BYTES) as file:
            while block := file.read(_BLOCK_BYTES):
                crc = google_crc32c.extend(crc, block)
        if crc != sums.crc32c:
            raise NotVerifiedError(f"{target} does not hold what was sent")


class _Replacing:
    """A path to write to, which takes the target's place once it is whole."""

    def __init__(self, files: Any, target: str, *, is_whole: bool) -> None:
        self._files, self._target, self._is_whole = files, target, is_whole
        self._begun = target if is_whole else f"{target}.part"

    def __enter__(self) -> str:
        if not self._is_whole:  # of an object store this would create the bucket
            self._files.makedirs(self._target.rpartition("/")[0], exist_ok=True)
        return self._begun

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None and not self._is_whole:
            self._files.mv(self._begun, self._target)


def _says(info: Mapping[str, Any], sums: Sums) -> bool:
    """Whether a checksum that the store itself tells is that of the content."""
    tag = _MD5_HEX.fullmatch(str(info.get("ETag", "")))
    if tag is not None and tag[1] == sums.md5:
        return True
    md5 = base64.b64encode(bytes.fromhex(sums.md5)).decode()
    crc = base64.b64encode(sums.crc32c.to_bytes(4, "big")).decode()
    settings = info.get("content_settings")
    held = getattr(settings, "content_md5", None)
    azure = base64.b64encode(bytes(held)).decode() if held else ""
    return info.get("md5Hash") == md5 or info.get("crc32c") == crc or azure == md5
