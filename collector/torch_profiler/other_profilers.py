"""Gives way to the program's own torch profilers, of which a process has one at a time.

torch has one profiler per process and does not defend it: one that begins while another
is under way destroys what that one has recorded, and one that was made ready before may
take the whole process down. So no trace of ours begins while the program has a profiler
of its own, and ours ends the moment the program makes one ready. To know that, the two
methods that every profiler of torch's goes through are watched while a source lives.
"""

from __future__ import annotations

import functools
import gc
import sys
import threading
import weakref
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final

from memboard.collector.core.patches import Patches
from memboard.collector.process import fork

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_PREPARE: Final = "_prepare_trace"
_EXIT: Final = "__exit__"


class OtherProfilers:
    """The program's own profilers. Safe from any thread."""

    def __init__(self, before_other: Callable[[], None]) -> None:
        """`before_other` is called before another profiler is made ready; may not raise."""
        from torch.autograd import profiler

        self._owner: Any = profiler.profile
        self._before_other = before_other
        self._ours: int | None = None
        """The thread that just now calls torch for us."""
        self._under_way: weakref.WeakSet[Any] = weakref.WeakSet()
        self._patches = Patches()

    def watch(self) -> None:
        """From now on know of each; also of those that are under way already."""
        for candidate in gc.get_objects():
            if type(candidate) is self._owner and getattr(candidate, "entered", False):
                self._under_way.add(candidate)
        del candidate
        if self.is_busy:
            gc.collect()  # one that was made ready, and that nobody holds, is not under way
        self._wrap(_PREPARE, self._preparing)
        self._wrap(_EXIT, self._exiting)

    def unwatch(self) -> None:
        """Put torch's methods back; one that somebody wrapped since stays, idle."""
        self._patches.remove()

    @contextmanager
    def ourselves(self) -> Iterator[None]:
        """What this thread asks of torch in this block is ours."""
        self._ours = threading.get_ident()
        try:
            yield
        finally:
            self._ours = None

    @property
    def is_busy(self) -> bool:
        """Whether the program has a profiler made ready or running."""
        return any(map(_is_under_way, tuple(self._under_way)))

    def after_fork(self) -> None:
        """This is a forked child: be idle."""
        self._ours = None
        self._under_way = weakref.WeakSet()
        self._before_other = _nothing

    def _wrap(self, name: str, around: Callable[..., Any]) -> None:
        before = getattr(self._owner, name, None)
        if before is None:
            return  # a torch without it is not watched

        @functools.wraps(before)
        def wrapper(profile: Any, *args: Any, **kwargs: Any) -> Any:
            return around(before, profile, *args, **kwargs)

        self._patches.attribute(self._owner, name, wrapper)

    def _preparing(self, before: Callable[..., Any], profile: Any, *args: Any) -> Any:
        if self._ours != threading.get_ident():
            self._before_other()
            self._under_way.add(profile)
        with ExitStack() as undo:
            undo.callback(self._under_way.discard, profile)
            result = before(profile, *args)
            undo.pop_all()
        return result

    def _exiting(self, before: Callable[..., Any], profile: Any, *args: Any) -> Any:
        try:
            return before(profile, *args)
        finally:
            self._under_way.discard(profile)


def runs_here() -> bool:
    """Whether some profiler of torch's records this thread."""
    autograd = sys.modules.get("torch.autograd")
    enabled = getattr(autograd, "_profiler_enabled", None)
    return bool(enabled and enabled())


class Turn:
    """The one source of a process that may use torch's profiler."""

    def __init__(self) -> None:
        self._holder: weakref.WeakValueDictionary[str, Any] = (
            weakref.WeakValueDictionary()
        )
        fork.watch(self)

    def take(self, holder: object) -> bool:
        """Be the one from now on; False where another one is."""
        return self._holder.setdefault("", holder) is holder

    def give_back(self, holder: object) -> None:
        if self._holder.get("") is holder:
            self.after_fork()

    def after_fork(self) -> None:
        """In a forked child the holder is the parent's."""
        self._holder.clear()


turn: Final = Turn()


def _is_under_way(profile: Any) -> bool:
    """Whether this one, which was made ready, may still record.

    One that had begun does not where torch records nothing: another one, which began after
    it, has ended it, and it does not know.
    """
    from torch.autograd import profiler

    if getattr(profile, "kineto_results", None) is not None:
        return False
    had_begun = getattr(profile, "profiling_start_time_ns", 0) > 0
    return not had_begun or getattr(profiler, "_is_profiler_enabled", True)


def _nothing() -> None:
    return None
