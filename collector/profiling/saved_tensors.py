"""Counting what autograd saves for backward: bytes by module and dtype.

Counted is the storage of each saved tensor, once, for the first module that saved it,
and without the storages of parameters, which are there anyway: also of those that FSDP
has just gathered. Beside it stands MemProfiler's number: the bytes of every saved tensor
that is no parameter itself, so that views of parameters and what is saved twice count.

Nothing here keeps a tensor or a storage alive.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Final

import torch

from collector.profiling.saved_stack import Place
from collector.tracker.tensors import plain_tensors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from collector.profiling.module_watch import ModuleWatch

    Functions = tuple[Callable[[Any], Any], Callable[[Any], Any]]

_Parameter: Final = torch.nn.Parameter


class Storages:
    """A set of living storages; it does not keep them alive."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[int, weakref.ref[torch.UntypedStorage]] = {}

    def __contains__(self, storage: torch.UntypedStorage) -> bool:
        # torch keeps a storage's Python object for as long as the storage lives.
        known = self._known.get(id(storage))
        return known is not None and known() is storage

    def add(self, storage: torch.UntypedStorage) -> None:
        """Remember it."""
        self._known[id(storage)] = weakref.ref(storage)


class Row:
    """What one module has saved of one dtype."""

    __slots__ = ("npp_compat_bytes", "num_bytes", "num_tensors", "tensor_bytes")

    def __init__(self) -> None:
        self.num_tensors = 0
        """Saved tensors that are neither parameters nor views of one."""
        self.tensor_bytes = 0
        """Their bytes, each as often as it was saved."""
        self.num_bytes = 0
        """Their storages' bytes, each once."""
        self.npp_compat_bytes = 0
        """MemProfiler's number."""


class Tally:
    """What is saved in one call."""

    def __init__(self) -> None:
        self.rows: dict[tuple[int, torch.dtype], Row] = {}
        self.npp_compat_bytes = 0
        """So far, over all modules."""
        self._seen = Storages()

    def row(self, module: int, dtype: torch.dtype) -> Row:
        """The row of a module and dtype."""
        row = self.rows.get((module, dtype))
        if row is None:
            row = self.rows[module, dtype] = Row()
        return row

    def first_seen(self, storages: Iterable[torch.UntypedStorage]) -> int:
        """Bytes of those storages that were not saved before."""
        num_bytes = 0
        for storage in storages:
            if storage not in self._seen:
                self._seen.add(storage)
                num_bytes += storage.nbytes()
        return num_bytes


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
        self.tallies: tuple[Tally, ...] = ()
        self._watch = watch
        self._functions = functions
        self._failed = failed
        self._parameters = Storages()
        self._others = Storages()
        """Those that were looked at and are no parameters'."""
        self._counting = True
        self._place: Place | None = None

    def start(self, tally: Tally) -> None:
        """Count for a call from now on.

        Raises:
            Unavailable: this thread's saved tensors cannot be seen.
        """
        if self._place is None:
            self._counting = True
            self._remember_parameters()
            place = Place(self._pack, self._unpack)
            place.enter()
            self._place = place
        self.tallies += (tally,)

    def stop(self, tally: Tally) -> None:
        """Count for it no more; the last one takes the hooks off the stack.

        From another thread they cannot be: they pass everything through, until the
        thread's next call ends.
        """
        self.tallies = tuple(known for known in self.tallies if known is not tally)
        if not self.tallies and self._place is not None and self._place.leave():
            self._place = None
            self._parameters, self._others = Storages(), Storages()

    def _remember_parameters(self) -> None:
        self._parameters, self._others = parameters, _ = Storages(), Storages()
        for _, module in self._watch.modules():
            _add_parameters(module, parameters)

    def _pack(self, tensor: torch.Tensor) -> Any:
        tallies = self.tallies
        if tallies and self._counting:
            try:
                self._count(tensor, tallies)
            except Exception as error:  # noqa: BLE001  # the border to training
                self._counting = False
                self._failed("counting", error)
        if self._functions is not None and tallies:
            try:
                packed = self._functions[0](tensor)
            except Exception as error:  # noqa: BLE001  # the tensor is still whole
                self._functions = None
                self._failed("pack", error)
            else:
                if packed is not tensor:
                    return _Packed(packed, self._functions[1])
        # An output that its own node holds as it is would never be freed.
        return tensor if tensor.grad_fn is None else tensor.detach()

    def _unpack(self, packed: Any) -> Any:
        return packed.unpacked() if type(packed) is _Packed else packed

    def _count(self, tensor: torch.Tensor, tallies: tuple[Tally, ...]) -> None:
        module = self._watch.innermost()
        is_parameter = isinstance(tensor, _Parameter)
        storages = self._of_no_parameter(tensor, module, known=is_parameter)
        if is_parameter:
            return
        num_bytes = tensor.nbytes
        for tally in tallies:
            row = tally.row(module, tensor.dtype)
            row.npp_compat_bytes += num_bytes
            tally.npp_compat_bytes += num_bytes
            if storages:
                row.num_tensors += 1
                row.tensor_bytes += num_bytes
                row.num_bytes += tally.first_seen(storages)

    def _of_no_parameter(
        self, tensor: torch.Tensor, module: int, *, known: bool
    ) -> list[torch.UntypedStorage]:
        """The tensor's storages but for those of parameters; `known`: it is one."""
        base = tensor._base  # noqa: SLF001  # a view's, where it is one
        known = known or isinstance(base, _Parameter)
        found = []
        for storage in _storages(tensor):
            if storage in self._parameters:
                continue
            if known or (
                storage not in self._others and self._gathered(storage, module)
            ):
                self._parameters.add(storage)
            else:
                self._others.add(storage)
                found.append(storage)
        return found

    def _gathered(self, storage: torch.UntypedStorage, module: int) -> bool:
        """Whether the running module has it as a parameter: FSDP gathers them late."""
        running = self._watch.module(module)
        if running is None or not running._parameters:  # noqa: SLF001  # no copies
            return False
        own = Storages()
        _add_parameters(running, own)
        return storage in own


class _Packed:
    """What the user's own function made of a tensor, and how to undo it."""

    __slots__ = ("_unpack", "_value")

    def __init__(self, value: Any, unpack: Callable[[Any], Any]) -> None:
        self._value = value
        self._unpack = unpack

    def unpacked(self) -> Any:
        return self._unpack(self._value)


def _add_parameters(module: Any, storages: Storages) -> None:
    for parameter in module._parameters.values():  # noqa: SLF001  # without copies
        if parameter is not None:
            for storage in _storages(parameter):
                storages.add(storage)


def _storages(tensor: torch.Tensor) -> Iterable[torch.UntypedStorage]:
    try:
        if type(tensor) is torch.Tensor or type(tensor) is _Parameter:
            return (tensor.untyped_storage(),)
        return tuple(part.untyped_storage() for part in plain_tensors(tensor))
    except (NotImplementedError, RuntimeError):
        return ()  # a sparse, lazy or functional tensor has none of its own
