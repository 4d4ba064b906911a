"""The place on torch's stack of saved-tensor hooks, kept in good manners.

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

from collector.core.process_lock import ProcessLock
from collector.sources.contract import Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable

_c: Final[Any] = torch._C._autograd  # noqa: SLF001

_DISABLE: Final = "_saved_tensors_hooks_disable"
_ENABLE: Final = "_saved_tensors_hooks_enable"


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
        with _lock.now:
            _places.append(self)
            _wrap()

    def leave(self) -> bool:
        """Come off the stack; False on another thread, whose stack this is not.

        A thread that has ended took its stack with it.
        """
        here = self._thread is threading.current_thread()
        if not here and not self.has_ended:
            return False
        if here and not self._aside:
            self._take_off()
        with _lock.now:
            if self in _places:
                _places.remove(self)
            forget_ended()
        return True

    def is_on_top(self) -> bool:
        """Whether torch would ask this pair now."""
        pair = None if self._aside or not self.is_here() else top()
        return pair is not None and pair[0] is self._pair[0]

    def is_here(self) -> bool:
        """Whether this thread's stack is the one."""
        return self._thread is threading.current_thread()

    @property
    def has_ended(self) -> bool:
        """Whether its thread has, and the stack with it."""
        return not self._thread.is_alive()

    def step_aside(self) -> None:
        """Make room for what refuses to run below hooks."""
        if not self._aside:
            self._aside = self._take_off()

    def come_back(self) -> None:
        """Go back on top."""
        if self._aside:
            self._aside = False
            _c._push_saved_tensors_default_hooks(*self._pair)  # noqa: SLF001

    def _take_off(self) -> bool:
        above = []
        found = False
        while not found and (pair := top()) is not None:
            _c._pop_saved_tensors_default_hooks()  # noqa: SLF001
            found = pair[0] is self._pair[0]
            if not found:
                above.append(pair)
        for pair in reversed(above):
            _c._push_saved_tensors_default_hooks(*pair)  # noqa: SLF001
        return found


def top() -> tuple[Any, Any] | None:
    """The topmost pair of hooks on this thread."""
    try:
        found: tuple[Any, Any] | None = _c._top_saved_tensors_default_hooks(False)  # noqa: SLF001
    except AttributeError:
        raise Unavailable(
            f"torch {torch.__version__} does not say which saved-tensor hooks there are",
            "Newer releases do.",
        ) from None
    return found


_places: Final[list[Place]] = []
"""All that are on some stack, or aside."""

_lock: Final = ProcessLock()


def forget_ended() -> None:
    """Know nothing of threads that have ended; with the last place, leave torch alone."""
    with _lock.now:
        _places[:] = [place for place in _places if not place.has_ended]
        if not _places:
            _unwrap()


_originals: Final[dict[str, Any]] = {}
"""Torch's own functions, while ours stand in their place."""


def _disable_without_ours(*args: Any, **kwargs: Any) -> Any:
    mine = [place for place in _places if place.is_here()]
    for place in mine:
        place.step_aside()
    try:
        return _originals[_DISABLE](*args, **kwargs)
    except BaseException:
        for place in mine:
            place.come_back()
        raise


def _enable_and_ours(*args: Any, **kwargs: Any) -> Any:
    result = _originals[_ENABLE](*args, **kwargs)
    for place in [place for place in _places if place.is_here()]:
        place.come_back()
    return result


_ours: Final = {_DISABLE: _disable_without_ours, _ENABLE: _enable_and_ours}


def _wrap() -> None:
    for name, function in _ours.items():
        # Where somebody has wrapped ours since, it stands in place still.
        if name not in _originals:
            _originals[name] = getattr(_c, name)
            setattr(_c, name, function)


def _unwrap() -> None:
    for name, function in _ours.items():
        if getattr(_c, name) is function:
            setattr(_c, name, _originals.pop(name))
