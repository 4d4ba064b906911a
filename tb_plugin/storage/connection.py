"""The file system of fsspec's that a URL is read by. Asked on threads of our own alone."""

from __future__ import annotations

import errno
import threading
from typing import TYPE_CHECKING, Any, TypeVar

from memboard.tb_plugin.storage.contract import StorageError
from memboard.tb_plugin.storage.refusals import refusal_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from memboard.tb_plugin.storage.urls import Url

_T = TypeVar("_T")


class Connection:
    """Asks one store. Whatever its package raises becomes a `StorageError`."""

    def __init__(self, url: Url) -> None:
        """Asks for nothing yet; fsspec is imported by the thread that first does."""
        self._url = url
        self._lock = threading.Lock()
        self._opened: tuple[Any, str] | None = None
        """A file system, and where the URL begins in it."""

    def ls(self, path: str) -> Sequence[Mapping[str, Any]] | None:
        """What a folder holds, each by its name in it; None where there is none."""
        try:
            return self._ask(
                path, lambda files, inner: self._listed(files, inner, path)
            )
        except StorageError as error:
            if error.errno == errno.ENOENT and path != self._url.root:
                return None
            raise

    def read(self, path: str, start: int, end: int) -> bytes:
        """Bytes of a file from one offset to another, fewer where it is shorter."""
        return self._ask(path, lambda files, inner: _range_of(files, inner, start, end))

    def write(self, path: str, data: bytes) -> None:
        """Put a file there, whole, in place of one of the same name."""
        self._ask(path, lambda files, inner: files.pipe_file(inner, data))

    def info(self, path: str) -> Mapping[str, Any]:
        """What the store says of one file now."""
        return self._ask(path, lambda files, inner: dict(files.info(inner)))

    def is_file(self) -> bool:
        """Whether the URL itself is a file's."""
        return self._ask(self._url.root, lambda files, inner: bool(files.isfile(inner)))

    def _ask(self, path: str, call: Callable[[Any, str], _T]) -> _T:
        try:
            with self._lock:
                if self._opened is None:
                    self._opened = _open(self._url)
                files, base = self._opened
            return call(files, base + path[len(self._url.root) :])
        except StorageError:
            raise
        except Exception as error:  # noqa: BLE001  # a file system may raise anything
            refusal = refusal_of(error, self._url)
            if refusal.errno == errno.EACCES:
                self._opened = None  # somebody may log in: it looks for that once
            raise refusal from None

    def _listed(self, files: Any, inner: str, path: str) -> list[Mapping[str, Any]]:
        files.invalidate_cache(inner)
        infos = files.ls(inner, detail=True)
        if path == self._url.root and _is_file(infos, inner):
            raise StorageError(
                "This is a file; a folder was expected",
                "Name the folder it lies in, or run: memboard open URL",
            )
        return list(_named(infos, inner))


def _open(url: Url) -> tuple[Any, str]:
    """The file system of a URL, with listings that are never kept."""
    import fsspec.core

    files, base = fsspec.core.url_to_fs(
        url.whole, use_listings_cache=False, skip_instance_cache=True, **url.options
    )
    return files, str(base).rstrip("/")


def _range_of(files: Any, inner: str, start: int, end: int) -> bytes:
    if getattr(files, "async_impl", False):  # by one request
        return bytes(files.cat_file(inner, start=start, end=end))
    # What HDFS is read by (Arrow's wrapper) takes no range that begins at 0 otherwise.
    with files.open(inner, "rb") as file:
        file.seek(start)
        pieces, wanted = [], end - start
        while wanted > 0 and (piece := file.read(wanted)):
            pieces.append(piece)
            wanted -= len(piece)
    return b"".join(pieces)


def _is_file(infos: Sequence[Mapping[str, Any]], inner: str) -> bool:
    """Whether what was listed is a file itself."""
    if len(infos) != 1 or infos[0].get("type") != "file":
        return False
    return str(infos[0].get("name", "")).lstrip("/") == inner.lstrip("/")


def _named(
    infos: Sequence[Mapping[str, Any]], inner: str
) -> Iterator[Mapping[str, Any]]:
    """What a folder holds, each by its name in it alone."""
    folder = inner.strip("/")
    for info in infos:
        whole = str(info.get("name", "")).lstrip("/")
        entry_name = whole.removeprefix(folder + "/") if folder else whole
        if whole.rstrip("/") == folder:
            continue  # the folder itself, which some stores keep as an empty file
        if info.get("type") == "directory":
            entry_name = entry_name.removesuffix("/")
        yield {**info, "name": entry_name}
