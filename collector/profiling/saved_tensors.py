"""Seeing what autograd saves for backward: bytes by module and dtype.

Counted is the storage of each saved tensor, once, for the first module that saved it,
and without the storages of parameters, which are there anyway: also of those that FSDP
has just gathered. Beside it stands MemProfiler's number: the bytes of every saved tensor
that is no parameter itself, so that views of parameters and what is saved twice count.

Nothing here keeps a tensor or a storage alive.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from collector.profiling.saved_log import SavedLog
from collector.profiling.saved_stack import Place

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

    from collector.profiling.module_watch import ModuleWatch
    from collector.profiling.saved_log import Tally

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
        self._note: Callable[[torch.Tensor], None] | None = None
        """Where saved tensors are noted; None while nothing is counted."""
        self._place: Place | None = None

    def start(self) -> Tally:
        """Count for a call from now on.

        Raises:
            Unavailable: this thread's saved tensors cannot be seen.
        """
        if self._place is None:
            place = Place(self._pack, self._unpack)
            place.enter()
            self._place = place
        log = self.log
        if log is None:
            log = self.log = SavedLog(self._watch)
        tally = log.start()
        self._tallies += (tally,)
        self._note = log.note
        return tally

    def stop(self, tally: Tally) -> int:
        """Count for it no more; returns the bytes it saved.

        The last one takes the hooks off the stack. From another thread they cannot be:
        they pass everything through, until the thread's next call ends.
        """
        self._tallies = tuple(known for known in self._tallies if known is not tally)
        saved_bytes = 0 if self.log is None else self.log.stop(tally)
        if not self._tallies:
            self._note = None
            if self._place is not None and self._place.leave():
                self._place = None
        return saved_bytes

    def forget(self) -> None:
        """Know no parameters any more: the window is over."""
        if not self._tallies:
            self.log = None

    def is_idle(self) -> bool:
        """Whether no call is under way here."""
        return not self._tallies

    def npp_compat_bytes(self, tally: Tally) -> int:
        """MemProfiler's number so far in a call."""
        log = self.log
        return 0 if log is None else log.npp_compat_bytes - tally.npp_before_bytes

    def _pack(self, tensor: torch.Tensor) -> Any:
        note = self._note
        if note is not None:
            try:
                note(tensor)
            except Exception as error:  # noqa: BLE001  # the border to training
                self._note = None
                self._failed("counting", error)
            if self._functions is not None:
                try:
                    packed = self._functions[0](tensor)
                except Exception as error:  # noqa: BLE001  # the tensor is still whole
                    self._functions = None
                    self._failed("pack", error)
                else:
                    if packed is not tensor:
                        return _Packed(packed, self._functions[1])
        # An output that its own node holds as it is would never be freed. To ask for
        # the node would make an object of Python's for it.
        return tensor if tensor.is_leaf else tensor.detach()

    def _unpack(self, packed: Any) -> Any:
        return packed.unpacked() if type(packed) is _Packed else packed


class _Packed:
    """What the user's own function made of a tensor, and how to undo it."""

    __slots__ = ("_unpack", "_value")

    def __init__(self, value: Any, unpack: Callable[[Any], Any]) -> None:
        self._value = value
        self._unpack = unpack

    def unpacked(self) -> Any:
        return self._unpack(self._value)
