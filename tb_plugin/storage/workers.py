"""Threads on which stores are asked, so that nobody who waits for a page waits for them."""

from __future__ import annotations

import itertools
import queue
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

_T = TypeVar("_T")


class Workers:
    """A few threads that end with the process.

    Those of `concurrent.futures` are waited for when the interpreter ends, and a store
    that does not answer would hold it up.
    """

    def __init__(self, thread_name: str, most: int) -> None:
        self._name = thread_name
        self._idle = threading.Semaphore(most)
        """Threads that may be started still."""
        self._numbers = itertools.count()
        self._queue: queue.PriorityQueue[tuple[bool, int, Any, Any]]
        self._queue = queue.PriorityQueue()

    def do(self, work: Callable[[], _T], *, is_urgent: bool = False) -> Future[_T]:
        """Have something done; its result, or what it raised, is in the future.

        What is urgent is done before what is not.
        """
        future: Future[_T] = Future()
        self._queue.put((not is_urgent, next(self._numbers), work, future))
        if self._idle.acquire(blocking=False):
            threading.Thread(target=self._work, name=self._name, daemon=True).start()
        return future

    def _work(self) -> None:
        while True:
            _, _, work, future = self._queue.get()
            try:
                future.set_result(work())
            except BaseException as error:  # noqa: BLE001  # whoever waits is told
                future.set_exception(error)
