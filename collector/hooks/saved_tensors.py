"""One place on a thread's stack of saved-tensor hooks.

torch asks the topmost pair of hooks only, and takes them off by count, not by name. So:

- nothing is put on top of hooks that are there already: they are the training's own
  (offloading, recomputing), and would not be called any more;
- ours are taken away by name, also from below others;
- transforms of torch.func refuse to run where there are hooks: ours step aside for them.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

import torch

from memboard.collector.core.source import Unavailable
from memboard.collector.hooks import torch_calls
from memboard.collector.hooks.torch_calls import SAVED_HOOKS_OFF, SAVED_HOOKS_ON

if TYPE_CHECKING:
    from collections.abc import Callable

_c: Final[Any] = torch._C._autograd  # noqa: SLF001


class Place:
    """One pair of hooks on one thread's stack."""

    def __init__(
        self, pack: Callable[[Any], Any], unpack: Callable[[Any], Any]
    ) -> None:
        self._pair = pack, unpack
        self._thread = threading.current_thread()
        self._aside = False

    def enter(self) -> None:
        """Go on top of this thread's stack.

        Raises:
            Unavailable: there are hooks already, or they are forbidden here.
        """
        if top() is not None:
            raise Unavailable(
                "the training has saved-tensor hooks of its own around the call",
                "Profile a function outside of them.",
            )
        try:
            _c._push_saved_tensors_default_hooks(*self._pair)  # noqa: SLF001
        except RuntimeError as error:
            raise Unavailable(
                f"saved-tensor hooks are forbidden here: {error}"
            ) from None
        torch_calls.listen(self, (SAVED_HOOKS_OFF, SAVED_HOOKS_ON))

    def leave(self) -> bool:
        """Come off the stack; False on another thread, whose stack this is not.

        A thread that has ended took its stack with it.
        """
        if not self.is_here() and not self.has_ended:
            return False
        if self.is_here() and not self._aside:
            self._take_off()
        torch_calls.leave(self)
        forget_ended()
        return True

    def is_on_top(self) -> bool:
        """Whether torch would ask this pair now."""
        pair = None if self._aside else top()  # on this thread, whosever it is
        return pair is not None and pair[0] is self._pair[0]

    def is_here(self) -> bool:
        """Whether this thread's stack is the one."""
        return self._thread is threading.current_thread()

    @property
    def has_ended(self) -> bool:
        """Whether its thread has, and the stack with it."""
        return not self._thread.is_alive()

    # As a listener of calls that refuse to run below hooks, and of their end.

    def begin(self, part: str, _name: str, _args: Any, /) -> Any:
        if not self.is_here():
            return None
        if part == SAVED_HOOKS_OFF and not self._aside:
            self._aside = self._take_off()
        return part

    def end(self, begun: Any, failed: bool, /) -> None:
        """Go back on top, where hooks are allowed."""
        if self._aside and failed == (begun == SAVED_HOOKS_OFF):
            self._aside = False
            _c._push_saved_tensors_default_hooks(*self._pair)  # noqa: SLF001

    def after_fork(self) -> bool:
        """The pair is on the child's stack too."""
        return True

    def _take_off(self) -> bool:
        above = []
        is_own = False
        while not is_own and (pair := top()) is not None:
            _c._pop_saved_tensors_default_hooks()  # noqa: SLF001
            is_own = pair[0] is self._pair[0]
            if not is_own:
                above.append(pair)
        for pair in reversed(above):
            _c._push_saved_tensors_default_hooks(*pair)  # noqa: SLF001
        return is_own


def top() -> tuple[Any, Any] | None:
    """The topmost pair of hooks on this thread."""
    try:
        pair: tuple[Any, Any] | None = _c._top_saved_tensors_default_hooks(False)  # noqa: SLF001
    except AttributeError:
        raise Unavailable(
            f"torch {torch.__version__} does not say which saved-tensor hooks there are",
            "Newer releases do.",
        ) from None
    return pair


def places() -> list[Place]:
    """All that are on some stack, or aside."""
    listeners = torch_calls.listeners(SAVED_HOOKS_OFF)
    return [place for place in listeners if isinstance(place, Place)]


def forget_ended() -> None:
    """Know nothing of threads that have ended."""
    for place in places():
        if place.has_ended:
            torch_calls.leave(place)
