"""Threads on which stores are asked, so that nobody who waits for a page waits for them."""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import Future
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

_IDLE_SECONDS: Final = 10.0

_T = TypeVar("_T")


class Workers:
    """A few threads that end when there is nothing to do, and with the process.

    Those of `concurrent.futures` are waited for when the interpreter ends, and a store
    that does not answer would hold it up.
    """

    def __init__(self, name: str, most: int) -> None:
        self._name = name
        self._most = most
        self._changed = threading.Condition()
        self._queue: deque[Callable[[], None]] = deque()
        self._num_threads = 0
        self._num_idle = 0

    def do(self, work: Callable[[], _T], *, is_urgent: bool = False) -> Future[_T]:
        """Have something done; its result, or what it raised, is in the future.

        What is urgent is done before what is not.
        """
        future: Future[_T] = Future()

        def run() -> None:
            try:
                future.set_result(work())
            except BaseException as error:  # noqa: BLE001  # whoever waits is told
                future.set_exception(error)

        with self._changed:
            if is_urgent:
                self._queue.appendleft(run)
            else:
                self._queue.append(run)
            if self._num_idle >= len(self._queue):
                self._changed.notify()
            elif self._num_threads < self._most:
                self._num_threads += 1
                threading.Thread(
                    target=self._work, name=self._name, daemon=True
                ).start()
        return future

    def _work(self) -> None:
        while True:
            with self._changed:
                if not self._queue:
                    self._num_idle += 1
                    self._changed.wait_for(lambda: self._queue, _IDLE_SECONDS)
                    self._num_idle -= 1
                if not self._queue:
                    self._num_threads -= 1
                    return
                work = self._queue.popleft()
            work()
