"""The stack of a pickle under way: entries, marks, and what all of it may take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tb_plugin.jobs.worker.errors import RefusedError

if TYPE_CHECKING:
    from tb_plugin.formats.snapshots.window import Window

MAX_BYTES: Final = 192 << 20
"""Estimate of what everything but events takes in memory; a quarter of the file more."""
_MAX_BATCH: Final = 1 << 20
"""Entries between a mark and its end; Python's picklers write a thousand."""
MAX_STACK: Final = 4 << 20
"""Entries that wait for the end of theirs."""


class StackMachine:
    """Where a pickle is being read, what waits on its stack, and what that has cost."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._data = window.data
        self._at = 0
        """Where in the window's data."""
        self._stack: list[Any] = []
        self._marks: list[int] = []
        self._fence = 0
        """The last mark: what lies below is out of reach."""
        self._spent = 0
        self._most = MAX_BYTES + window.num_bytes // 4
        """Bytes that objects take, and may take."""

    def _bytes(self, number: int) -> bytes:
        start = self._at
        self._at += number
        if self._at > len(self._data):
            raise RefusedError("the pickle ends too early", self._at)
        return self._data[start : self._at]

    def _unsigned(self, width: int) -> int:
        return int.from_bytes(self._bytes(width), "little")

    def _spend(self, num_bytes: int) -> None:
        self._spent += num_bytes
        if self._spent > self._most:
            raise RefusedError("more objects than a snapshot can have", self._at)

    def _push(self, value: Any, num_bytes: int = 0) -> None:
        """`num_bytes`: what it takes beside its place on the stack."""
        self._spent += num_bytes
        if self._spent > self._most:
            raise RefusedError("more objects than a snapshot can have", self._at)
        self._stack.append(value)

    def _pop(self) -> Any:
        if len(self._stack) <= self._fence:
            raise RefusedError("an opcode lacks what it works on", self._at)
        return self._stack.pop()

    def _top(self) -> Any:
        if len(self._stack) <= self._fence:
            raise RefusedError("an opcode lacks what it works on", self._at)
        return self._stack[-1]

    def _from_mark(self) -> list[Any]:
        if not self._marks:
            raise RefusedError("a list or dict ends that was never begun", self._at)
        mark = self._marks.pop()
        self._fence = self._marks[-1] if self._marks else 0
        items = self._stack[mark:]
        if len(items) > _MAX_BATCH:
            raise RefusedError("a list or dict is too long", self._at)
        del self._stack[mark:]
        return items
