"""What was saved, as it happened, and what that comes to.

While training runs a saved tensor is one entry in a list: the module, a weak reference
to the storage, sizes. Which entries are of one storage, and which of a parameter's, is
found when a call ends: Python makes one weak reference per object, so for as long as
entries hold them, equal references mean the same storage, also after it has gone.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import torch

from collector.profiling.module_watch import OUTSIDE
from collector.tracker.tensors import plain_tensors

if TYPE_CHECKING:
    from collections.abc import Iterable

    from collector.profiling.module_watch import ModuleWatch

    StorageRef = weakref.ref[torch.UntypedStorage]

_Tensor: Final = torch.Tensor
_Parameter: Final = torch.nn.Parameter
_reference: Final = weakref.ref

FOLD_AT: Final = 20_000
"""Entries that are kept before they are added up: some megabytes."""


Entry: TypeAlias = "tuple[int, torch.dtype, int, StorageRef | None, int]"
"""A tensor that was saved: module, dtype, its bytes, its storage and the storage's bytes.

No storage: it is a view of a parameter. Bytes below zero: a further storage of the entry
before it."""


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
        self._rest: list[Entry] = []

    def end(self, entries: list[Entry]) -> int:
        """The call has ended with these; returns the bytes it saved.

        The rows are left for later: see `rows`.
        """
        self._rest = entries
        num_bytes = sum(row.num_bytes for row in self._rows.values())
        storages = {id(storage): size for _, _, _, storage, size in entries}
        storages.pop(id(None), None)
        unknown = storages.keys() - self._parameters.keys() - self._seen.keys()
        return num_bytes + sum(map(storages.__getitem__, unknown))

    def rows(self) -> dict[tuple[int, torch.dtype], Row]:
        """By module and dtype; to be asked on one thread, once the call has ended."""
        rest, self._rest = self._rest, []
        self.add(rest)
        return self._rows

    def add(self, entries: Iterable[Entry]) -> None:
        """Add entries up."""
        seen, rows, parameters = self._seen, self._rows, self._parameters
        for module, dtype, num_bytes, storage, storage_bytes in entries:
            row = rows.get((module, dtype))
            if row is None:
                row = rows[module, dtype] = Row()
            is_first = num_bytes >= 0
            if is_first:
                row.npp_compat_bytes += num_bytes
            identity = id(storage)
            if storage is None or identity in parameters:
                continue
            if is_first:
                row.num_tensors += 1
                row.tensor_bytes += num_bytes
            if identity not in seen:
                seen[identity] = storage
                row.num_bytes += storage_bytes

    def forget_dead(self) -> None:
        """Let go of references to storages that are gone: they come no more."""
        self._seen = {
            identity: reference
            for identity, reference in self._seen.items()
            if reference() is not None
        }


class SavedLog:
    """The entries of one thread, for all calls under way there."""

    def __init__(self, watch: ModuleWatch) -> None:
        self.npp_compat_bytes = 0
        """MemProfiler's number since the log began."""
        self._watch = watch
        self._tallies: tuple[Tally, ...] = ()
        self._entries: list[Entry] = []
        self._parameters: dict[int, StorageRef] = {}
        self._lists: dict[int, list[int]] = {}
        """By module: the identities of its parameters, when they were last looked at."""
        self._all: list[int] = []
        """Those of all modules, when a call began last."""
        self._gathers = False
        """Whether modules may get other parameters while they run."""

    def start(self) -> Tally:
        """A call begins."""
        identities = [
            id(parameter)
            for _, module in self._watch.modules()
            for parameter in module._parameters.values()  # noqa: SLF001
        ]
        if identities != self._all:
            self._all = identities
            for index, module in self._watch.modules():
                self._look_at(index, module)
        first = len(self._entries)
        tally = Tally(first, self.npp_compat_bytes, self._parameters)
        self._tallies += (tally,)
        return tally

    def stop(self, tally: Tally) -> int:
        """It has ended; returns the bytes it saved."""
        num_bytes = tally.end(self._entries[tally.first :])
        self._tallies = tuple(known for known in self._tallies if known is not tally)
        if not self._tallies:
            self._entries = []
        return num_bytes

    def note(self, tensor: torch.Tensor) -> None:
        """A tensor is being saved."""
        kind = type(tensor)
        if kind is not _Tensor:
            if kind is not _Parameter:
                self._note_other(tensor)
                return
            reference = _reference(tensor.untyped_storage())
            self._parameters[id(reference)] = reference
            return
        stack = self._watch.running.stack
        module = stack[-1] if stack else OUTSIDE
        if self._gathers and module != OUTSIDE:
            self._look_at(module, self._watch.module(module))
        num_bytes = tensor.nbytes
        self.npp_compat_bytes += num_bytes
        storage = tensor.untyped_storage()
        reference = _reference(storage)
        entries = self._entries
        entries.append((module, tensor.dtype, num_bytes, reference, storage.nbytes()))
        identity = id(reference)
        parameters = self._parameters
        if identity not in parameters and is_parameter(tensor._base):  # noqa: SLF001
            parameters[identity] = reference
        if len(entries) >= FOLD_AT:
            self._fold()

    def _note_other(self, tensor: torch.Tensor) -> None:
        """A parameter, or a tensor of another class, which may have several storages."""
        found = [(_reference(s), s.nbytes()) for s in storages_of(tensor)]
        known = is_parameter(tensor)
        if known or is_parameter(tensor._base):  # noqa: SLF001
            self._are_parameters(reference for reference, _ in found)
        if known:
            return
        module = self._watch.innermost()
        if module != OUTSIDE:
            self._look_at(module, self._watch.module(module))
        num_bytes, dtype = tensor.nbytes, tensor.dtype
        self.npp_compat_bytes += num_bytes
        first = found[0] if found else (None, 0)
        self._entries.append((module, dtype, num_bytes, *first))
        self._entries += [(module, dtype, -1, *further) for further in found[1:]]

    def _fold(self) -> None:
        for tally in self._tallies:
            tally.add(self._entries[tally.first :])
            tally.first = 0
            tally.forget_dead()
        self._entries = []

    def _are_parameters(self, storages: Iterable[StorageRef]) -> None:
        for reference in storages:
            self._parameters[id(reference)] = reference

    def _look_at(self, index: int, module: Any) -> None:
        """Know a module's parameters, where they are others than before."""
        parameters = () if module is None else module._parameters  # noqa: SLF001
        if not parameters:
            return
        identities = list(map(id, parameters.values()))
        if self._lists.get(index) != identities:
            self._lists[index] = identities
            for parameter in parameters.values():
                if parameter is not None:
                    self._are_parameters(map(_reference, storages_of(parameter)))
                    # FSDP2's shards are; gathered ones take their place for a while.
                    self._gathers = self._gathers or type(parameter) is not _Parameter


def is_parameter(tensor: Any) -> bool:
    """Whether it is a parameter; asked of the type first, as torch's own test is slow."""
    kind = type(tensor)
    if kind is _Tensor or tensor is None:
        return False
    return kind is _Parameter or isinstance(tensor, _Parameter)


def storages_of(tensor: torch.Tensor) -> Iterable[torch.UntypedStorage]:
    """The storages that hold its bytes: of a DTensor those of the local shard."""
    kind = type(tensor)
    try:
        if kind is _Tensor or kind is _Parameter:
            return (tensor.untyped_storage(),)
        return tuple(part.untyped_storage() for part in plain_tensors(tensor))
    except (NotImplementedError, RuntimeError):
        return ()  # a sparse, lazy or functional tensor has none of its own
