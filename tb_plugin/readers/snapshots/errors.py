"""Why a snapshot is not read."""

from __future__ import annotations


class RefusedError(Exception):
    """The pickle is damaged, hostile, or no snapshot; `offset` says where."""

    def __init__(self, what: str, offset: int) -> None:
        super().__init__(f"{what} (byte {offset})")
        self.what = what
        self.offset = offset
