"""Names in a folder of a store, as `os.DirEntry` has them."""

from __future__ import annotations

import hashlib
import stat
import time
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from memboard.tb_plugin.storage.contract import FixedStatus

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

_MAX_NAME: Final = 1024
_SECOND_NS: Final = 1_000_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)
_TIMES: Final = (
    "LastModified",
    "last_modified",
    "mtime",
    "modified",
    "updated",
    "created",
    "creation_time",
)


class RemoteEntry(NamedTuple):
    """A name in a folder. Stores have no links that matter to who reads."""

    name: str
    path: str
    status: FixedStatus
    etag: str = ""

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        """Whether it is a folder."""
        del follow_symlinks
        return stat.S_ISDIR(self.status.st_mode)

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        """Whether it is a plain file."""
        del follow_symlinks
        return stat.S_ISREG(self.status.st_mode)

    def is_symlink(self) -> bool:
        return False

    def stat(self, *, follow_symlinks: bool = True) -> FixedStatus:
        del follow_symlinks
        return self.status


Entry: TypeAlias = "os.DirEntry[str] | RemoteEntry"


def entry_of(
    folder: str, earlier: Mapping[str, RemoteEntry], info: Mapping[str, Any]
) -> RemoteEntry | None:
    """An entry out of what fsspec says of it; None where no file has such a name.

    `earlier`: what the folder held before.
    """
    entry_name = str(info.get("name", ""))
    is_name = 0 < len(entry_name) <= _MAX_NAME and entry_name not in (".", "..")
    if not is_name or any(c in "/\\\0" for c in entry_name):
        return None
    path = f"{folder}/{entry_name}"
    kinds = {"file": stat.S_IFREG, "directory": stat.S_IFDIR}
    mode = kinds.get(str(info.get("type")), 0)
    if mode == stat.S_IFDIR:
        return RemoteEntry(entry_name, path, FixedStatus(mode, 0, 0, 1, 0))
    size = info.get("size")
    size = size if isinstance(size, int) and size >= 0 else 0
    etag, before = tag_of(info), earlier.get(entry_name)
    mtime_ns = _mtime_ns(info)
    if mtime_ns is None:  # nobody says: it was when it was first seen like this
        if before is not None and (before.status.st_size, before.etag) == (size, etag):
            return before
        mtime_ns = time.time_ns()
    elif etag and mtime_ns % _SECOND_NS == 0:
        # Stores tell whole seconds; what was written twice in one has another tag.
        mtime_ns += _number(etag) % _SECOND_NS
    status = FixedStatus(mode, size, mtime_ns, 1, _number(path))
    return RemoteEntry(entry_name, path, status, etag)


def tag_of(info: Mapping[str, Any]) -> str:
    """Another text for another content; empty where the store tells none."""
    return str(info.get("ETag") or info.get("etag") or info.get("generation") or "")


def _number(text: str) -> int:
    digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
    return int.from_bytes(digest[:8], "little") >> 2 or 1


def _mtime_ns(info: Mapping[str, Any]) -> int | None:
    """When it was written, as file systems say it in their own ways."""
    for key in _TIMES:
        value = info.get(key)
        if isinstance(value, str):
            try:
                value = datetime.fromisoformat(value.replace("Z", "+00:00"))
            except ValueError:
                continue
        if isinstance(value, datetime):
            aware = value if value.tzinfo else value.replace(tzinfo=timezone.utc)
            since = aware - _EPOCH
            seconds = since.days * 86_400 + since.seconds
            return seconds * _SECOND_NS + since.microseconds * 1000
        if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
            return int(value * 1e9)
    return None
