"""Finds the end of each iteration of a training from the steps of its optimizers.

An iteration is over when an optimizer that has stepped in it is about to step again. That
alone would be told late, in the middle of the next one, so the end is foreseen: optimizers
step in the same order in every iteration, and the last of that order ends it. The very
first iteration ends with the first step of any; what other optimizers do in it then counts
to the second.

So a step of one optimizer is an iteration, however many batches it accumulates; a generator
and a discriminator that take turns make one iteration together, as do the hundreds of
optimizers of a backward pass that updates each parameter as its gradient comes. Of two that
step at different rates, the faster one counts.

Only outermost calls count: an optimizer that wraps another one steps it inside its own step.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType
    from typing import TypeAlias

    Frame: TypeAlias = tuple[int, CodeType]
    """The id of a frame, which another one may have later, and the code it runs."""


class Iterations:
    """Follows the steps of all optimizers. May be told on any thread."""

    def __init__(self, ended: Callable[[], None]) -> None:
        """`ended` is called at the end of each iteration; what it raises passes."""
        self._ended = ended
        self._here: list[int] = []
        """Optimizers that have stepped in this iteration, in order."""
        self._seen: set[int] = set()
        self._last: list[int] | None = None
        """Those of the iteration before."""
        self._expected: list[int] = []
        """What the last two had in common from their beginning on."""
        self._is_over = False
        """Whether the end of this iteration was told already."""
        self._nested = threading.local()

    def before_step(self, optimizer: Any, caller: FrameType) -> None:
        """An optimizer is about to step; `caller`: a frame that lives while it does."""
        under_way = self._under_way()
        if under_way:
            frames = _frames_of(caller.f_back)
            under_way[:] = [
                call for call in under_way if call[1] in frames
            ]  # some raised
        is_outermost = not under_way
        under_way.append((id(optimizer), (id(caller), caller.f_code)))
        if is_outermost and id(optimizer) in self._seen:
            was_over = self._is_over
            self._turn()
            if not was_over:
                self._ended()

    def after_step(self, optimizer: Any) -> None:
        under_way = self._under_way()
        for place, (optimizer_id, _frame) in enumerate(under_way):
            if optimizer_id == id(optimizer):
                del under_way[place:]
                break
        if under_way:
            return
        self._here.append(id(optimizer))
        self._seen.add(id(optimizer))
        if not self._is_over and (self._last is None or self._here == self._expected):
            self._is_over = True
            self._ended()

    def _under_way(self) -> list[tuple[int, Frame]]:
        """Steps of this thread that have not ended: the optimizer, and who called it."""
        stack: list[tuple[int, Frame]] = self._nested.__dict__.setdefault("stack", [])
        return stack

    def _turn(self) -> None:
        here, last = self._here, self._last
        self._expected = here if last is None else _common(here, last) or here
        self._last = here
        self._here, self._seen, self._is_over = [], set(), False


def _common(first: list[int], other: list[int]) -> list[int]:
    """What two lists have in common from their beginning on."""
    for place, (left, right) in enumerate(zip(first, other, strict=False)):
        if left != right:
            return first[:place]
    return first[: len(other)]


def _frames_of(frame: FrameType | None) -> set[Frame]:
    frames = set()
    while frame is not None:
        frames.add((id(frame), frame.f_code))
        frame = frame.f_back
    return frames
