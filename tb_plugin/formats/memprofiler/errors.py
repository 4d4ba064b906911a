"""Why a file is not read, in words for a person."""

from __future__ import annotations


class UnreadableError(Exception):
    """A file, or the rest of it, that cannot be read. Others are not affected."""

    def __init__(self, what: str, where: str, remedy: str) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.remedy = remedy
