"""Files dropped onto the page: the one route that takes something.

Only our own page may send them: a browser says where a request comes from, and no other
page can set the header that this route wants. What arrives is written to a private temporary
directory under a name of our own, and read like any other file; the name it was given is
only shown. It all goes when TensorBoard ends.
"""

from __future__ import annotations

import re
import secrets
import shutil
import threading
from contextlib import ExitStack, suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from memboard.collector.format.sizes import counted, printable
from memboard.collector.process.private_folder import TemporaryFolder
from memboard.tb_plugin.api.drop import DropResponse
from memboard.tb_plugin.contract.errors import BadRequestError, RequestError
from memboard.tb_plugin.formats.file_listing import Candidate, file_id
from memboard.tb_plugin.formats.registry import FORMATS, UnknownFormatError, format_of
from memboard.tb_plugin.index.listing import FoundRun
from memboard.tb_plugin.index.search.layout import run_id
from memboard.tb_plugin.server.request_body import pieces_of

if TYPE_CHECKING:
    from pathlib import Path
    from typing import IO

    from werkzeug.wrappers import Request

    from memboard.tb_plugin.formats.registry import Kind


class DroppedFile(NamedTuple):
    """A file that was received."""

    kind: Kind
    file: Candidate


MAX_BYTES: Final = 4 << 30
MAX_FILES: Final = 200
HEADER: Final = "X-MemBoard-Drop"
RUN_NAME: Final = "dropped files"

_SPARE_BYTES: Final = 1 << 30
"""Left free on the disk."""
_MAX_AT_ONCE: Final = 2
_MAX_NAME: Final = 200


class Drops:
    """The files that were dropped. Safe for threads, but for `run` and `add`."""

    def __init__(self, *, allowed: bool = True) -> None:
        """`allowed`: whether files are taken at all."""
        self.allowed = allowed
        self.run: FoundRun | None = None
        """The run they make; None before the first."""
        self._folder = TemporaryFolder("memboard-dropped-")
        self._files: list[DroppedFile] = []
        self._lock = threading.Lock()
        self._num_coming = 0

    @property
    def limit_bytes(self) -> int:
        """The largest file that is taken; 0 where none is."""
        return MAX_BYTES if self.allowed else 0

    def receive(self, request: Request) -> DroppedFile:
        """Write the body of a request to a file of our own.

        Raises:
            RequestError: it is not taken, is not from our page, or did not come whole.
        """
        if not self.allowed:
            raise RequestError(
                "Dropping files is switched off.",
                "--memboard_drop=false",
                "Open the file with `memboard open`, or start TensorBoard without this"
                " flag.",
                HTTPStatus.FORBIDDEN,
            )
        check_origin(request)
        length = request.content_length
        if length is None:
            raise RequestError(
                "The size of the dropped file is not said.",
                "Content-Length",
                "Send the file whole, not in chunks.",
                HTTPStatus.LENGTH_REQUIRED,
            )
        if length > MAX_BYTES:
            raise RequestError(
                f"The file has {counted(length, 'byte')}; at most {MAX_BYTES:,} are taken.",
                shown_name(request.args.get("name", "")),
                "Open it where it lies: memboard open FILE",
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            )
        with self._lock:
            if self._num_coming >= _MAX_AT_ONCE:
                raise RequestError(
                    "Other dropped files are still on their way.",
                    counted(self._num_coming, "file"),
                    "Drop this one again in a moment.",
                    HTTPStatus.SERVICE_UNAVAILABLE,
                )
            if len(self._files) + self._num_coming >= MAX_FILES:
                raise RequestError(
                    f"{MAX_FILES} files were dropped, and more are not kept.",
                    RUN_NAME,
                    "Restart TensorBoard, or put them into a directory: memboard open"
                    " DIR",
                    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                )
            self._num_coming += 1
        try:
            return self._received(request, length)
        finally:
            with self._lock:
                self._num_coming -= 1

    def add(self, dropped: DroppedFile) -> FoundRun:
        """Take a received file into the run; whoever calls it holds the store's lock."""
        folder = str(self._folder.path())
        run = self.run
        if run is None:
            identity = run_id(folder, RUN_NAME, "dropped")
            run = FoundRun(identity, RUN_NAME, folder, RUN_NAME, folder)
            self.run = run
        self._files.append(dropped)
        of_kind = [
            dropped_file.file
            for dropped_file in self._files
            if dropped_file.kind == dropped.kind
        ]
        run.put(dropped.kind, folder, of_kind, None)
        run.list_files()
        return run

    def runs(self) -> tuple[FoundRun, ...]:
        """The run, once there is one."""
        return () if self.run is None else (self.run,)

    def response(self, dropped: DroppedFile, run: FoundRun) -> DropResponse:
        """What the page is told."""
        file, is_trace = dropped.file, dropped.kind == "traces"
        return DropResponse(
            run=run.id,
            view="trace" if is_trace else "blocks",
            history="" if is_trace else file.id,
            name=file.shown_path,
            rank=FORMATS[dropped.kind].listing.rank_of(file),
        )

    def _received(self, request: Request, length: int) -> DroppedFile:
        file_name = shown_name(request.args.get("name", ""))
        try:
            folder = self._folder.path()
            if shutil.disk_usage(folder).free < length + _SPARE_BYTES:
                raise _no_room(folder)
            path = folder / f"{secrets.token_hex(16)}.snapshot"
            with ExitStack() as unless_taken:
                unless_taken.callback(_removed, path)
                with path.open("xb") as file:
                    num_bytes = _copy(request, file, length)
                kind = _kind_of(path, file_name, num_bytes, length)
                unless_taken.pop_all()
        except OSError as error:
            raise RequestError(
                f"The dropped file cannot be kept: {error.strerror or error}.",
                "the directory for temporary files",
                "Make room there, or point TMPDIR at another directory.",
                HTTPStatus.INSUFFICIENT_STORAGE,
            ) from error
        identity = file_id(FORMATS[kind].listing.letter, path.name)
        return DroppedFile(kind, Candidate(str(path), file_name, id=identity))


def _removed(path: Path) -> None:
    with suppress(OSError):
        path.unlink()


def check_origin(request: Request) -> None:
    """Refuse what does not come from our own page.

    Browsers name the page that sends a request, and send a header of one's own to another
    site only if that site agrees, which nobody here does.

    Raises:
        RequestError: it does not.
    """
    site = request.headers.get("Sec-Fetch-Site")
    origin = request.headers.get("Origin")
    if site is not None:
        own = site == "same-origin"
    elif origin is not None:
        parts = urlsplit(origin)
        own = parts.scheme in ("http", "https") and parts.netloc == request.host
    else:
        own = False
    if not own:
        raise RequestError(
            "Files are taken from MemBoard's own page alone.",
            f"Origin: {(origin or 'not said')[:200]}",
            "Drop the file onto the page itself.",
            HTTPStatus.FORBIDDEN,
        )
    if request.headers.get(HEADER) != "1":
        raise RequestError(
            f"The header {HEADER} is missing.",
            request.path,
            "Drop the file onto the page itself.",
            HTTPStatus.FORBIDDEN,
        )


def shown_name(sent_name: str) -> str:
    """The last part of a name, without what must not be shown; never a path."""
    last = re.split(r"[/\\]", sent_name)[-1]
    shown = printable(last).strip()
    return shown[-_MAX_NAME:] if shown.strip(".") else "unnamed"


def _copy(request: Request, target: IO[bytes], length: int) -> int:
    return sum(target.write(piece) for piece in pieces_of(request, length))


def _kind_of(path: Path, file_name: str, num_bytes: int, length: int) -> Kind:
    """What a file that arrived is.

    Raises:
        BadRequestError: it is not whole.
        RequestError: it is nothing that is shown.
    """
    if num_bytes != length:
        raise BadRequestError(
            f"The file broke off after {num_bytes:,} of {counted(length, 'byte')}.",
            file_name,
            "Drop it again.",
        )
    try:
        return format_of(str(path)).kind
    except UnknownFormatError as error:
        raise RequestError(
            error.what, file_name, error.remedy, HTTPStatus.UNPROCESSABLE_ENTITY
        ) from error


def _no_room(folder: Path) -> RequestError:
    return RequestError(
        "The disk for temporary files is too full for this file.",
        str(folder.parent),
        "Make room there, point TMPDIR at another directory, or open the file where it"
        " lies: memboard open FILE",
        HTTPStatus.INSUFFICIENT_STORAGE,
    )
