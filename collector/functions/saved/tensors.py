"""Seeing what autograd saves for backward: bytes by module and dtype.

Counted is the storage of each saved tensor, once, for the first module that saved it,
and without the storages of parameters, which are there anyway: also of those that FSDP
has just gathered. What a backward saves while it recomputes a forward is not counted: it
is used and freed at once. Beside it stands MemProfiler's number: the bytes of every saved
tensor that is no parameter itself, so that views of parameters, what is saved twice and
what is recomputed count.

Nothing here keeps a tensor or a storage alive.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from collector.functions.saved.log import SavedLog, packing
from collector.functions.saved.stack import Place

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

    from collector.functions.hooks.module_watch import ModuleWatch
    from collector.functions.saved.log import Pack, Tally

    Functions = tuple[Callable[[Any], Any], Callable[[Any], Any]]


class SavedTensors:
    """Counts on one thread, for all calls under way there."""

    def __init__(
        self,
        watch: ModuleWatch,
        functions: Functions | None,
        failed: Callable[[str, BaseException], None],
    ) -> None:
        """`functions`: the user's own pack and unpack.

        `failed` is told what failed: counting, or the user's pack function.
        """
        self._watch = watch
        self._functions = functions
        self._failed = failed
        self.log: SavedLog | None = None
        """What was saved, since the window began."""
        self._tallies: tuple[Tally, ...] = ()
        self._place: Place | None = None
        self._pack: Pack | None = None

    def start(self) -> Tally:
        """Count for a call from now on.

        Raises:
            Unavailable: this thread's saved tensors cannot be seen.
        """
        log = self.log
        if log is None:
            log = self.log = SavedLog(self._watch)
            self._pack = packing(log, partial(self._failed, "counting"))
        tally = log.start()
        if not self._tallies:
            try:
                self._enter()
            except BaseException:
                log.stop(tally)
                raise
        self._tallies += (tally,)
        return tally

    def _enter(self) -> None:
        if self._place is not None:
            if self._place.is_on_top():
                return
            self._leave()  # others are above it
        pack: Any = self._pack if self._functions is None else self._pack_theirs
        place = Place(pack, _same if self._functions is None else _unpack)
        place.enter()
        self._place = place

    def stop(self, tally: Tally, *, stays: bool = False) -> None:
        """Count for it no more.

        The last one takes the hooks off the stack, unless the next call begins at once
        (`stays`): they pass everything through meanwhile. So they do on another thread's
        stack, which cannot be reached, until its next call.
        """
        self._tallies = tuple(known for known in self._tallies if known is not tally)
        if self.log is not None:
            self.log.stop(tally)
        if not self._tallies and not stays:
            self._leave()

    def _leave(self) -> None:
        if self._place is not None and self._place.leave():
            self._place = None

    def forget(self) -> None:
        """The window is over: know no parameters any more, and leave the stack."""
        if not self._tallies:
            self._leave()
        if self._place is None:
            self.log = self._pack = None

    def is_idle(self) -> bool:
        """Whether no call is under way here."""
        return not self._tallies

    def npp_compat_bytes(self, tally: Tally) -> int:
        """MemProfiler's number so far in a call."""
        log = self.log
        return 0 if log is None else log.npp_compat_bytes - tally.npp_before_bytes

    def _pack_theirs(self, tensor: torch.Tensor) -> Any:
        """Count, and keep what the user's own function makes of it."""
        pack, functions = self._pack, self._functions
        kept = tensor.detach() if pack is None else pack(tensor)
        if functions is not None and self._tallies:
            try:
                packed = functions[0](tensor)
            except Exception as error:  # noqa: BLE001  # the tensor is still whole
                self._functions = None
                self._failed("pack", error)
            else:
                if packed is not tensor:
                    return _Packed(packed, functions[1])
        return kept


def _same(kept: torch.Tensor) -> torch.Tensor:
    return kept


def _unpack(kept: Any) -> Any:
    return kept.unpacked() if type(kept) is _Packed else kept


class _Packed:
    """What the user's own function made of a tensor, and how to undo it."""

    __slots__ = ("_unpack", "_value")

    def __init__(self, value: Any, unpack: Callable[[Any], Any]) -> None:
        self._value = value
        self._unpack = unpack

    def unpacked(self) -> Any:
        return self._unpack(self._value)
