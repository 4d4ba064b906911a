"""Errors of files of other tools, each with a reason and a remedy."""

from __future__ import annotations

from typing import ClassVar, Final

REPORT: Final = "Please report this with the log of TensorBoard."
"""Remedy for a fault of ours."""


class ImportFailedError(Exception):
    """A file that gives no tables."""

    kind: ClassVar[str] = "error"
    is_lasting: ClassVar[bool] = False
    """Whether another try at the same content would fail as well."""

    def __init__(self, what: str, where: str, remedy: str) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.what} ({self.where})" if self.where else self.what


class RefusedError(ImportFailedError):
    """The file is damaged, hostile, or of another kind; `offset` says where."""

    kind = "refused"
    is_lasting = True

    def __init__(
        self,
        what: str,
        offset: int,
        where: str | None = None,
        remedy: str = "Dump the snapshot again, and copy it whole. Where it was not"
        " torch that wrote the file, do not open it anywhere else either.",
    ) -> None:
        super().__init__(what, f"byte {offset}" if where is None else where, remedy)
        self.offset = offset


class LimitError(ImportFailedError):
    """More memory or time than one file may take."""

    kind = "limit"
    is_lasting = True


class ReaderError(ImportFailedError):
    """The reader failed: a fault of ours."""

    kind = "reader"


class FileError(ImportFailedError):
    """The file cannot be read, or its tables cannot be cached."""

    kind = "file"


def error_of(kind: str, what: str, where: str, remedy: str) -> ImportFailedError:
    """The error that another process met."""
    if kind == RefusedError.kind:
        return RefusedError(what, 0, where, remedy)
    made = {error.kind: error for error in (LimitError, FileError)}
    return made.get(kind, ReaderError)(what, where, remedy)
