"""Jobs do what takes long on threads of their own, once; results stay while there is room.

A request never waits longer than it wants to: the work goes on without it, and the next
request finds it further, done or failed. No lock of a run is held meanwhile.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Final, Generic, Literal, TypeAlias, TypeVar

from memboard.tb_plugin.cache import Cache
from memboard.tb_plugin.contract.errors import (
    NotReadyError,
    RequestError,
    UnreadableError,
)
from memboard.tb_plugin.jobs.problems import Openable, problem_of

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from memboard.tb_plugin.api.base import Problem


MAX_UNDER_WAY: Final = 64
"""Jobs at a time; most of them wait for a worker or for `Jobs.turn`."""
_AT_ONCE: Final = 2
"""Jobs that compute in this process at a time: each takes a core."""
_STILL_USED: Final = 4
"""Of those used last, so many may grow without being used again."""
_MAX_FAILED: Final = 256
RETRY_S: Final = 30.0
"""Time before a failed job may run again, when it is requested."""

State: TypeAlias = Literal["opening", "ready", "failed"]


Found = TypeVar("Found", bound=Openable)
Result = TypeVar("Result")
Made = TypeVar("Made")
Note: TypeAlias = "Callable[[Sequence[Problem]], object]"
"""Takes all that is known to be wrong with what was opened."""


class Job(Generic[Found, Result]):
    """Something on its way, or there, or failed."""

    def __init__(
        self,
        openable: Found,
        wishes: frozenset[int] = frozenset(),
        failed_before: Problem | None = None,
        note: Note | None = None,
    ) -> None:
        self.found = openable
        self._note = note
        self.wishes = wishes
        """Every time that a person wanted another try, so far."""
        self.failed_before = failed_before
        """Why it failed when it was tried last."""
        self.progress = 0.0
        self.doing = "waiting for other files"
        self.result: Result | None = None
        self.problem: Problem | None = None
        """Why there is no result, or not all that was to be made of it."""
        self.is_lasting = False
        """Whether another try would fail as well."""
        self.ended_at = 0.0
        self._ended = threading.Event()

    @property
    def state(self) -> State:
        if not self._ended.is_set():
            return "opening"
        return "failed" if self.result is None else "ready"

    @property
    def failure(self) -> Problem | None:
        """Why it failed, also while it is tried once more."""
        return self.problem if self._ended.is_set() else self.failed_before

    def wait(self, seconds: float) -> bool:
        """Wait for the end, at most so long; whether it came."""
        return self._ended.wait(seconds)

    def why_not(self, noun: str, where: str) -> RequestError:
        """Why there is no picture of the `noun`: it cannot be opened, or not yet."""
        if self.problem is None:
            return NotReadyError(
                f"The {noun} is still being opened.", where, "Try again in a moment."
            )
        where = ", ".join(filter(None, (self.problem.path, self.problem.where)))
        return UnreadableError(self.problem.what, where, self.problem.remedy)

    def note(self, progress: float, doing: str) -> None:
        """How far it is, from 0 to 1, and what is being done."""
        self.progress, self.doing = max(self.progress, min(progress, 1.0)), doing

    def end(self, result: Result | None, problem: Problem | None = None) -> None:
        self.result, self.problem = result, problem
        self.progress, self.doing = 1.0, ""
        self.ended_at = time.monotonic()
        self._ended.set()

    def derived(self, make: Callable[[Result], Made]) -> Made | None:
        """What is made of the result; None, and `problem`, where that is not possible.

        An answer about many files makes its parts so: one that fails costs its own row.
        """
        if self.result is None or self.problem is not None:
            return None
        try:
            return make(self.result)
        except Exception as error:  # noqa: BLE001  # of others nothing is lost
            self.problem = problem_of(self.found, error)
            self.note_problems((self.problem,))
            return None

    def note_problems(self, problems: Sequence[Problem]) -> None:
        """All that is known to be wrong with it."""
        if self._note is not None:
            self._note(problems)

    def may_be_tried_again(self, *, is_wished: bool) -> bool:
        """Whether it failed, and long enough ago, or a person wants it."""
        if self.state != "failed":
            return False
        is_due = not self.is_lasting and time.monotonic() - self.ended_at > RETRY_S
        return is_wished or is_due


class Jobs(Generic[Found, Result]):
    """Jobs by what they open. Safe for threads."""

    max_retained: int = 1 << 30
    """Results at a time, however small: each may keep a file open."""

    def __init__(
        self, num_bytes: Callable[[Result], int], cache: Cache | None = None
    ) -> None:
        """`num_bytes`: how much a result holds in memory."""
        self.turn: Final = threading.Semaphore(_AT_ONCE)
        """Held while this process computes."""
        self.num_ended = 0
        """How many were opened so far, or could not be."""
        self._num_bytes = num_bytes
        self._lock = threading.Lock()
        self._pending: OrderedDict[Hashable, Job[Found, Result]] = OrderedDict()
        """By content: under way, or failed; those used last come last."""
        self._cache = Cache() if cache is None else cache
        """By content: those that have a result, as long as there is room."""
        self._cache.show(1)
        self._asked: dict[Hashable, Hashable] = {}
        """By name: the content that was last begun."""
        self._ready: dict[Hashable, Hashable] = {}
        """By name: the content that was last there."""
        self._used: dict[Hashable, None] = {}
        """What may have grown since it was measured, in the order of use."""

    def begin(
        self,
        key: Hashable,
        subject: Hashable,
        openable: Found,
        work: Callable[[Job[Found, Result]], Result],
        *,
        again: int | None = None,
        after: Callable[[Result], None] | None = None,
        note: Note | None = None,
    ) -> Job[Found, Result]:
        """The job of some content, begun unless it is known; does not wait.

        What failed is tried again after a while, unless the content is at fault; at once
        where a person says so.

        Args:
            key: the content.
            subject: what has this content now.
            openable: what is opened.
            work: makes the result.
            again: one wish of a person for another try: it counts once, however often it
                is repeated.
            after: done when the result is there, while nobody waits.
            note: takes what is wrong with it, before it is there.

        Raises:
            NotReadyError: too many are under way.
        """
        with self._lock:
            job = self._job(key)
            wishes = frozenset() if job is None else job.wishes
            is_wished = again is not None and again not in wishes
            if job is None or job.may_be_tried_again(is_wished=is_wished):
                self._ensure_room(openable)
                wishes |= set() if again is None else {again}
                before = None if job is None else job.problem
                job = self._pending[key] = Job(openable, wishes, before, note)
                threading.Thread(
                    target=self._work,
                    args=(key, subject, job, work, after),
                    name="memboard-job",
                    daemon=True,
                ).start()
            self._asked[subject] = key
            if job.state == "ready":
                self._ready[subject] = key
            self._use(key)
            return job

    def known(self, key: Hashable) -> Job[Found, Result] | None:
        """The job of some content, which is no use of it; None: there is none."""
        with self._lock:
            return self._job(key)

    def show(self, num: int) -> None:
        """So many results are shown together: those used last stay, whatever they take."""
        self._cache.show(max(1, num))

    def current(self, subject: Hashable) -> Job[Found, Result] | None:
        """The job of what had a name last, if it is done; counts as use of it."""
        return self._done(self._asked, subject)

    def latest(self, subject: Hashable) -> Job[Found, Result] | None:
        """The same, or an older one while that is not done."""
        return self._done(self._ready, subject)

    def tidy(self) -> None:
        """Measure what was used again, and let go of what there is too much of."""
        with self._lock:
            used = list(self._used)
            self._used = dict.fromkeys(used[-_STILL_USED:])
        # To measure all of many small ones each time would take longer than to open them.
        for key in used:
            job = self._cache.peek(key)
            if job is not None:
                self._cache.resize(key, self._num_bytes(job.result))
        done = list(self._cache)
        for key in done[: max(0, len(done) - self.max_retained)]:
            self._cache.remove(key)
        with self._lock:
            failed = [
                key for key, job in self._pending.items() if job.state == "failed"
            ]
            for key in failed[: max(0, len(failed) - _MAX_FAILED)]:
                del self._pending[key]
            for names in (self._asked, self._ready):
                for subject in [
                    subject for subject, key in names.items() if self._job(key) is None
                ]:
                    del names[subject]

    def _job(self, key: Hashable) -> Job[Found, Result] | None:
        """The job of some content, pending or done; hold the lock."""
        job: Job[Found, Result] | None = self._pending.get(key) or self._cache.peek(key)
        return job

    def _use(self, key: Hashable) -> Job[Found, Result] | None:
        """The job of some content, which is used now; hold the lock."""
        job: Job[Found, Result] | None = self._pending.get(key)
        if job is not None:
            self._pending.move_to_end(key)
            return job
        job = self._cache.get(key)
        if job is not None:
            self._used.pop(key, None)
            self._used[key] = None
        return job

    def _ensure_room(self, openable: Found) -> None:
        under_way = sum(job.state == "opening" for job in self._pending.values())
        if under_way >= MAX_UNDER_WAY:
            raise NotReadyError(
                f"{under_way} other files are being opened.",
                openable.path_text,
                "Try again in a moment.",
            )

    def _done(
        self, names: dict[Hashable, Hashable], subject: Hashable
    ) -> Job[Found, Result] | None:
        with self._lock:
            key = names.get(subject)
            job = None if key is None else self._use(key)
            return None if job is None or job.result is None else job

    def _work(
        self,
        key: Hashable,
        subject: Hashable,
        job: Job[Found, Result],
        work: Callable[[Job[Found, Result]], Result],
        after: Callable[[Result], None] | None,
    ) -> None:
        # Thread: one job
        result: Result | None = None
        problem: Problem | None = None
        num_bytes = 0
        try:
            made = work(job)
            num_bytes = self._num_bytes(made)
            result = made
        except Exception as error:  # noqa: BLE001  # the one guard of the thread
            job.is_lasting = getattr(error, "is_lasting", False)
            problem = problem_of(job.found, error)
        job.note_problems(
            self._problems_of(job, result) if problem is None else (problem,)
        )
        with self._lock:
            self.num_ended += 1
            job.end(result, problem)
            if result is not None:
                self._ready[subject] = key
                self._cache.put(key, job, num_bytes)
                self._used[key] = None
                self._pending.pop(key, None)
        if after is not None:
            job.derived(after)
        self.tidy()

    def _problems_of(
        self, job: Job[Found, Result], result: Result | None
    ) -> Sequence[Problem]:
        if result is None:
            return ()
        try:
            return self.problems_of(job.found, result)
        except Exception as error:  # noqa: BLE001  # the result can be shown
            return (problem_of(job.found, error),)

    def problems_of(self, openable: Found, result: Result) -> Sequence[Problem]:
        """What is wrong with what was opened, and is shown all the same."""
        del openable, result
        return ()
