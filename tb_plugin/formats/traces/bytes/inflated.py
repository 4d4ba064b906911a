"""The bytes of a trace's file, inflated where it is deflated, a block at a time."""

from __future__ import annotations

import zlib
from typing import IO, TYPE_CHECKING, Final

from memboard.collector.format.sizes import counted
from memboard.tb_plugin.formats.file_size import size_of
from memboard.tb_plugin.worker.errors import RefusedError
from memboard.tb_plugin.worker.limits import GZIP, MIB

if TYPE_CHECKING:
    from collections.abc import Callable

BLOCK: Final = 256 * 1024
"""Deflated bytes that are read at once, and inflated bytes that are handed out."""
_MIN_INFLATED: Final = 256 * MIB
_MAX_RATIO: Final = 250
"""Real traces inflate to 10 to 60 times their size; deflate's most is 1,030."""
_MAX_BYTES: Final = 64 << 30


class InflatedFile:
    """A file's content from start to end; `problem` says how it ended, if not well."""

    def __init__(
        self, file: IO[bytes], report: Callable[[float], None] | None = None
    ) -> None:
        """`report` is told the share that was read."""
        self._file = file
        self._report = report
        self._size = max(size_of(file), 1)
        self._num_read = 0
        self._left = b""
        self._given = 0
        first = self._read()
        self._ended = not first
        self.is_deflated = first[: len(GZIP)] == GZIP
        self._inflate = zlib.decompressobj(31) if self.is_deflated else None
        self._left = first
        self._most = min(max(_MIN_INFLATED, _MAX_RATIO * self._size), _MAX_BYTES)
        self.problem = ""

    def read(self) -> bytes:
        """The next block; empty at the end.

        Raises:
            RefusedError: it inflates to more than any trace does.
            OSError: the file cannot be read.
        """
        while True:
            block = self._block() if self._inflate is None else self._inflated()
            if block:
                self._given += len(block)
                if self._inflate is not None and self._given > self._most:
                    raise RefusedError(
                        f"It inflates from {counted(self._size, 'byte')} to more than"
                        f" {self._most:,}, which no trace does.",
                        self._num_read,
                        remedy="If it is a trace, inflate it with gunzip and open that.",
                    )
                return block
            if self._ended and not self._left:
                return b""

    def _block(self) -> bytes:
        block, self._left = self._left, b""
        if not block:
            block = self._read()
            self._ended = not block
        return block

    def _inflated(self) -> bytes:
        """Some bytes, or none although there may be more."""
        assert self._inflate is not None  # noqa: S101  # called for deflated files alone
        if not self._left and not self._ended:
            self._left = self._read()
            self._ended = not self._left
        if self._ended and not self._left:
            if not self._inflate.eof and not self.problem:
                self.problem = "The file ends inside its gzip stream: it is incomplete."
            return b""
        try:
            block = self._inflate.decompress(self._left, BLOCK)
        except zlib.error as error:
            self.problem = (
                f"Its gzip stream is damaged near byte {self._num_read}: {error}."
            )
            self._left, self._ended = b"", True
            return b""
        if self._inflate.eof:
            self._left = self._inflate.unused_data.lstrip(b"\0")
            if self._left:
                if self._left[:1] != GZIP[:1]:
                    self.problem = "Something follows its gzip stream; it is not read."
                    self._left, self._ended = b"", True
                else:
                    self._inflate = zlib.decompressobj(31)
        else:
            self._left = self._inflate.unconsumed_tail
        return block

    def _read(self) -> bytes:
        data = self._file.read(BLOCK)
        self._num_read += len(data)
        if self._report is not None:
            self._report(min(self._num_read / self._size, 1.0))
        return data
