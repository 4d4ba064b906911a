"""Round trips through small files in the run's directory.

Each rank but 0 has a file with its question, and rank 0 writes the answer into a file
beside it. Both are written in place with one call and never renamed: shared file systems
check a file again when it is opened, but keep for seconds what they know of names. Rank
0 looks once a second, and a thousand times a second for a moment after a question, so
that all but the first of a rank's questions are answered fast. The answer repeats the
question's number: what an earlier start of the job left behind answers nothing. It does
so at its end again: who reads while it is written may get the end of the one before.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import time
from typing import TYPE_CHECKING, Any, Final

from collector.clock.exchange import Card, RoundTrip

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable
    from pathlib import Path

    from collector.clock.process_clock import ProcessClock

_ASK: Final = ".ask"
_ANSWER: Final = ".answer"
_FILE_BYTES: Final = 512
"""Of every file, filled up with spaces: a reader never meets the end of an older text."""

_POLL_SECONDS: Final = 0.001
_SLOW_POLL_SECONDS: Final = 0.02
_POLL_SHARE: Final = 50
"""The longer an answer has been awaited, the less often one looks: it may never come. The
next question must still come while it is awaited eagerly."""
_LOOK_SECONDS: Final = 1.0
_LOOK_SHARE: Final = 50
"""Looking takes at most a fiftieth of the time, however many ranks ask. Of two looks the
quicker counts: a machine that hung for a second is not looked away from for a minute."""
_EAGER_SECONDS: Final = 0.1
"""How long after an answer the next question is awaited eagerly."""
_ANSWER_SECONDS: Final = 5.0
_FIRST_ANSWER_SECONDS: Final = 15.0
"""Rank 0 may still be starting."""


class Asker:
    """A rank that asks."""

    def __init__(
        self, folder: Path, rank: int, clock: ProcessClock, stop: threading.Event
    ) -> None:
        """`folder` need not exist yet; `stop` ends every wait."""
        self._question = folder / f"rank{rank:07d}{_ASK}"
        self._answer = folder / f"rank{rank:07d}{_ANSWER}"
        self._clock = clock
        self._stop = stop
        self._patience = _FIRST_ANSWER_SECONDS
        self.reference: Card | None = None
        """Whose clock answered last."""

    def ask(self, num_trips: int) -> list[RoundTrip]:
        """Make round trips, at most so many; none where nobody answers.

        Raises:
            OSError: the directory cannot be written.
        """
        self._question.parent.mkdir(parents=True, exist_ok=True)
        trips: list[RoundTrip] = []
        while len(trips) < num_trips:
            trip = self._trip(self._patience)
            if trip is None:
                break
            trips.append(trip)
            self._patience = _ANSWER_SECONDS
        return trips

    def remove(self) -> None:
        """Take the files away, and the directory where they were the last."""
        for path in (self._question, self._answer):
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
        _remove_if_empty(self._question.parent)

    def _trip(self, seconds: float) -> RoundTrip | None:
        number = secrets.randbits(53)
        began = time.monotonic()
        sent = self._clock.now_ns()
        _write(self._question, {"number": number})
        while (waited := time.monotonic() - began) < seconds:
            found = _read(self._answer)
            back = self._clock.now_ns()
            if (
                found is not None
                and found.get("number") == found.get("again") == number
            ):
                with contextlib.suppress(KeyError, TypeError, ValueError):
                    self.reference = Card(str(found["host"]), int(found["to_wall_ns"]))
                    return RoundTrip(
                        sent, int(found["got_ns"]), int(found["answered_ns"]), back
                    )
            pause = min(waited / _POLL_SHARE, _SLOW_POLL_SECONDS)
            if self._stop.wait(max(_POLL_SECONDS, pause)):
                return None
        return None


class Answerer:
    """Rank 0: answers what it finds."""

    def __init__(
        self, folder: Path, card: Callable[[], Card], clock: ProcessClock
    ) -> None:
        self._folder = folder
        self._card = card
        self._clock = clock
        self._answered: dict[str, int] = {}
        """The last question's number by name of file."""

    def serve(self, stop: threading.Event) -> None:
        """Answer until told to stop.

        Raises:
            OSError: the directory cannot be written.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        last = 0.0
        while not stop.is_set():
            began = time.monotonic()
            eager = [name for name in self._names() if self._answer(name)]
            cost = time.monotonic() - began
            self._serve_eagerly(eager, stop)
            stop.wait(max(_LOOK_SECONDS, _LOOK_SHARE * min(last, cost)))
            last = cost
        _remove_if_empty(self._folder)

    def _serve_eagerly(self, names: list[str], stop: threading.Event) -> None:
        """Those who have just asked will ask again at once."""
        until = dict.fromkeys(names, time.monotonic() + _EAGER_SECONDS)
        while until and not stop.wait(_POLL_SECONDS):
            now = time.monotonic()
            for name in list(until):
                if self._answer(name):
                    until[name] = now + _EAGER_SECONDS
                elif now > until[name]:
                    del until[name]

    def _names(self) -> list[str]:
        with os.scandir(self._folder) as entries:
            return [entry.name for entry in entries if entry.name.endswith(_ASK)]

    def _answer(self, name: str) -> bool:
        """Whether there was a new question."""
        question = _read(self._folder / name)
        got = self._clock.now_ns()
        number = None if question is None else question.get("number")
        if not isinstance(number, int) or self._answered.get(name) == number:
            return False
        self._answered[name] = number
        card = self._card()
        answer = {
            "number": number,
            "host": card.host,
            "to_wall_ns": card.to_wall_ns,
            "got_ns": got,
            "answered_ns": self._clock.now_ns(),
            "again": number,
        }
        _write(self._folder / (name.removesuffix(_ASK) + _ANSWER), answer)
        return True


def _remove_if_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):  # others are still asking
        folder.rmdir()


def _write(path: Path, content: dict[str, Any]) -> None:
    data = json.dumps(content).encode().ljust(_FILE_BYTES)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, data)
    finally:
        os.close(descriptor)


def _read(path: Path) -> dict[str, Any] | None:
    """What a file holds; None where it is not there or half written."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        found = json.loads(os.read(descriptor, _FILE_BYTES))
    except (OSError, ValueError, RecursionError):
        return None
    finally:
        os.close(descriptor)
    return found if isinstance(found, dict) else None
