"""The file system of fsspec's that a URL is read by. Asked on threads of our own alone."""

from __future__ import annotations

import errno
import threading
from typing import TYPE_CHECKING, Any, NamedTuple

from tb_plugin.storage.contract import StorageError
from tb_plugin.storage.refusals import refusal_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tb_plugin.storage.urls import Url


class _Opened(NamedTuple):
    """A file system, and where the URL begins in it."""

    system: Any
    base: str


class System:
    """Asks one store. Whatever its package raises becomes a `StorageError`."""

    def __init__(self, url: Url) -> None:
        """Asks for nothing yet; fsspec is imported by the thread that first does."""
        self._url = url
        self._lock = threading.Lock()
        self._opened: _Opened | None = None

    def ls(self, path: str) -> Sequence[Mapping[str, Any]] | None:
        """What a folder holds, each by its name in it; None where there is none.

        Raises:
            StorageError: the store refused, or there is nothing at the URL.
        """
        try:
            system, inner = self._inner(path)
            system.invalidate_cache(inner)
            found = system.ls(inner, detail=True)
        except FileNotFoundError as error:
            if path == self._url.root:
                raise refusal_of(error, self._url) from None
            return None
        except Exception as error:  # noqa: BLE001  # a file system may raise anything
            refusal = refusal_of(error, self._url)
            if refusal.errno == errno.EACCES:
                self._opened = None  # somebody may log in: it looks for that once
            raise refusal from None
        if path == self._url.root and _is_file(found, inner):
            raise StorageError(
                "This is a file; a folder was expected",
                "Name the folder it lies in, or run: memboard open URL",
            )
        return list(_named(found, inner))

    def read(self, path: str, start: int, end: int) -> bytes:
        """Bytes of a file from one offset to another, fewer where it is shorter.

        Raises:
            StorageError: the store refused; `ENOENT` where the file is gone.
        """
        try:
            system, inner = self._inner(path)
            return _range_of(system, inner, start, end)
        except Exception as error:  # noqa: BLE001  # a file system may raise anything
            raise refusal_of(error, self._url) from None

    def write(self, path: str, data: bytes) -> None:
        """Put a file there, whole, in place of one of the same name.

        Raises:
            StorageError: the store refused.
        """
        try:
            system, inner = self._inner(path)
            system.pipe_file(inner, data)
        except Exception as error:  # noqa: BLE001  # a file system may raise anything
            raise refusal_of(error, self._url) from None

    def info(self, path: str) -> Mapping[str, Any]:
        """What the store says of one file now.

        Raises:
            StorageError: the store refused.
        """
        try:
            system, inner = self._inner(path)
            found: Mapping[str, Any] = system.info(inner)
        except Exception as error:  # noqa: BLE001  # a file system may raise anything
            raise refusal_of(error, self._url) from None
        return found

    def is_file(self) -> bool:
        """Whether the URL itself is a file's.

        Raises:
            StorageError: there is no file system for it.
        """
        try:
            system, inner = self._inner(self._url.root)
            return bool(system.isfile(inner))
        except Exception as error:  # noqa: BLE001  # a file system may raise anything
            raise refusal_of(error, self._url) from None

    def _inner(self, path: str) -> tuple[Any, str]:
        with self._lock:
            if self._opened is None:
                self._opened = _open(self._url)
            opened = self._opened
        return opened.system, opened.base + path[len(self._url.root) :]


def _open(url: Url) -> _Opened:
    """The file system of a URL, with listings that are never kept.

    Raises:
        Exception: whatever its package raises.
    """
    import fsspec.core

    system, base = fsspec.core.url_to_fs(
        url.whole,
        use_listings_cache=False,
        skip_instance_cache=True,
        **url.options,
    )
    return _Opened(system, str(base).rstrip("/"))


def _range_of(system: Any, inner: str, start: int, end: int) -> bytes:
    if getattr(system, "async_impl", False):  # by one request
        return bytes(system.cat_file(inner, start=start, end=end))
    # What HDFS is read by (Arrow's wrapper) takes no range that begins at 0 otherwise.
    with system.open(inner, "rb") as file:
        file.seek(start)
        pieces, wanted = [], end - start
        while wanted > 0 and (piece := file.read(wanted)):
            pieces.append(piece)
            wanted -= len(piece)
    return b"".join(pieces)


def _is_file(found: Sequence[Mapping[str, Any]], inner: str) -> bool:
    """Whether what was listed is a file itself."""
    if len(found) != 1 or found[0].get("type") != "file":
        return False
    return str(found[0].get("name", "")).lstrip("/") == inner.lstrip("/")


def _named(
    found: Iterable[Mapping[str, Any]], inner: str
) -> Iterator[Mapping[str, Any]]:
    """What a folder holds, each by its name in it alone."""
    folder = inner.strip("/")
    for info in found:
        whole = str(info.get("name", "")).lstrip("/")
        name = whole.removeprefix(folder + "/") if folder else whole
        if whole.rstrip("/") == folder:
            continue  # the folder itself, which some stores keep as an empty file
        if info.get("type") == "directory":
            name = name.removesuffix("/")
        yield {**info, "name": name}
