"""The log of tensors that autograd saves, and its sums by module and dtype.

While training runs a saved tensor is one entry: the module, a weak reference to the
storage, sizes. Which entries are of one storage, and which of a parameter's, is found
when a call ends: Python makes one weak reference per object, so for as long as entries
hold them, equal references mean the same storage, also after it has gone.

Entries lie end to end in one list, as values of which each has its place: no object is
made for an entry, and a column of all of them is a slice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import torch

from memboard.collector.modules.tensors import plain_tensors

if TYPE_CHECKING:
    import weakref
    from collections.abc import Iterable, Sequence

    StorageRef = weakref.ref[torch.UntypedStorage]

_Tensor: Final = torch.Tensor
_Parameter: Final = torch.nn.Parameter
_strided: Final = torch.strided
_Function: Final = torch.autograd.function.BackwardCFunction
_c: Final[Any] = torch._C  # noqa: SLF001
_node: Final = _c._current_autograd_node  # noqa: SLF001

RECOMPUTED: Final = -1
"""Stands for a storage's bytes where a backward saved it for itself."""

Entry: TypeAlias = "tuple[int, torch.dtype, int, StorageRef | None, int]"
"""A tensor that was saved: module, dtype, its bytes, its storage and the storage's bytes.

No storage: it has none of its own. Bytes below zero: a further storage of the entry
before it. The storage's bytes may be `RECOMPUTED`."""

WIDTH: Final = 5
"""Values of an entry in a list of them."""


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


class Tally:
    """What is saved in one call."""

    def __init__(
        self, first: int, npp_compat_bytes: int, parameters: dict[int, StorageRef]
    ) -> None:
        """`first`: where its entries begin; `npp_compat_bytes`: what was there before.

        `parameters`: references to parameters' storages, by identity.
        """
        self.first = first
        self.npp_before_bytes = npp_compat_bytes
        self._parameters = parameters
        self._rows: dict[tuple[int, torch.dtype], Row] = {}
        self._seen: dict[int, StorageRef] = {}
        self._rest: list[Any] = []

    def end(self, entries: list[Any]) -> None:
        """The call has ended with these; what they come to is left for later."""
        self._rest = entries

    @property
    def num_waiting(self) -> int:
        """Entries that were not added up yet."""
        return len(self._rest) // WIDTH

    def saved_bytes(self) -> int:
        """What the call saved, once it has ended; on the same thread as `rows`."""
        return sum(row.num_bytes for row in self.rows().values())

    def rows(self) -> dict[tuple[int, torch.dtype], Row]:
        """By module and dtype; to be asked on one thread, once the call has ended."""
        rest, self._rest = self._rest, []
        self.add(rest)
        return self._rows

    def add(self, entries: list[Any]) -> None:
        seen, rows, parameters = self._seen, self._rows, self._parameters
        for module, dtype, num_bytes, storage, storage_bytes in entries_of(entries):
            row = rows.get((module, dtype))
            if row is None:
                row = rows[module, dtype] = Row()
            is_first = num_bytes >= 0
            if is_first:
                row.npp_compat_bytes += num_bytes
            identity = id(storage)
            if storage is None or identity in parameters:
                continue
            if storage_bytes == RECOMPUTED:
                continue
            if is_first:
                row.num_tensors += 1
                row.tensor_bytes += num_bytes
            if identity not in seen:
                seen[identity] = storage
                row.num_bytes += storage_bytes

    def seen(self) -> tuple[tuple[int, StorageRef], ...]:
        """Storages of entries that were added up, by identity of the reference."""
        return tuple(self._seen.items())

    def forget_dead(self) -> None:
        """Let go of references to storages that are gone: they come no more."""
        self._seen = {
            identity: reference
            for identity, reference in self._seen.items()
            if reference() is not None
        }


def entries_of(values: Sequence[Any]) -> Iterable[Entry]:
    """The entries of a list where they lie end to end."""
    value_iterator = iter(values)
    return zip(
        value_iterator,
        value_iterator,
        value_iterator,
        value_iterator,
        value_iterator,
        strict=True,
    )


def is_parameter(tensor: Any) -> bool:
    """Whether it is a parameter; asked of the type first, as torch's own test is slow."""
    kind = type(tensor)
    if kind is _Tensor or tensor is None:
        return False
    return kind is _Parameter or isinstance(tensor, _Parameter)


def is_recomputed() -> bool:
    """Whether what is saved in a backward is that backward's own, and freed with it.

    So it is below a Function of Python's, as reentrant checkpointing is: it runs a forward
    and its backward at once. Nodes of torch's own save only what a further derivative
    needs (`create_graph`).
    """
    return isinstance(_node(), _Function)


def storages_of(tensor: torch.Tensor) -> Iterable[torch.UntypedStorage]:
    """The storages that hold its bytes: of a DTensor those of the local shard."""
    kind = type(tensor)
    try:
        if (kind is _Tensor or kind is _Parameter) and tensor.layout is _strided:
            return (tensor.untyped_storage(),)
        return tuple(part.untyped_storage() for part in plain_tensors(tensor))
    except (NotImplementedError, RuntimeError):
        return ()  # a lazy or functional tensor has none of its own


def bytes_of(tensor: torch.Tensor) -> int:
    """What its elements take; of a sparse tensor what is stored of them."""
    if tensor.layout is _strided:
        return tensor.nbytes
    return sum(part.nbytes for part in plain_tensors(tensor))
