"""What was saved, as it happened, and what that comes to.

While training runs a saved tensor is one entry: the module, a weak reference to the
storage, sizes. Which entries are of one storage, and which of a parameter's, is found
when a call ends: Python makes one weak reference per object, so for as long as entries
hold them, equal references mean the same storage, also after it has gone.

Entries lie end to end in one list, as values of which each has its place: no object is
made for an entry, and a column of all of them is a slice.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import torch

from collector.functions.hooks.module_watch import OUTSIDE
from collector.modules.ledger import graph_task
from collector.modules.tensors import plain_tensors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from collector.functions.hooks.module_watch import ModuleWatch

    StorageRef = weakref.ref[torch.UntypedStorage]
    Pack = Callable[[torch.Tensor], torch.Tensor]

_Tensor: Final = torch.Tensor
_Parameter: Final = torch.nn.Parameter
_strided: Final = torch.strided
_reference: Final = weakref.ref
_Function: Final = torch.autograd.function.BackwardCFunction
_c: Final[Any] = torch._C  # noqa: SLF001
_node: Final = _c._current_autograd_node  # noqa: SLF001

_NO_GRAPH_TASK: Final = -1
RECOMPUTED: Final = -1
"""Stands for a storage's bytes where a backward saved it for itself."""

FOLD_AT: Final = 20_000
"""Entries that are kept before they are added up: some megabytes."""

Entry: TypeAlias = "tuple[int, torch.dtype, int, StorageRef | None, int]"
"""A tensor that was saved: module, dtype, its bytes, its storage and the storage's bytes.

No storage: it has none of its own. Bytes below zero: a further storage of the entry
before it. The storage's bytes may be `RECOMPUTED`."""

_WIDTH: Final = 5
"""Values of an entry in a list of them."""

_FULL: Final = FOLD_AT * _WIDTH


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
        self._rest: list[Any] = []

    def end(self, entries: list[Any]) -> None:
        """The call has ended with these; what they come to is left for later."""
        self._rest = entries

    @property
    def num_waiting(self) -> int:
        """Entries that were not added up yet."""
        return len(self._rest) // _WIDTH

    def saved_bytes(self) -> int:
        """What the call saved, once it has ended; on the same thread as `rows`."""
        return sum(row.num_bytes for row in self.rows().values())

    def rows(self) -> dict[tuple[int, torch.dtype], Row]:
        """By module and dtype; to be asked on one thread, once the call has ended."""
        rest, self._rest = self._rest, []
        self.add(rest)
        return self._rows

    def add(self, entries: list[Any]) -> None:
        """Add entries up."""
        seen, rows, parameters = self._seen, self._rows, self._parameters
        for module, dtype, num_bytes, storage, storage_bytes in _entries(entries):
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


def _entries(values: Sequence[Any]) -> Iterable[Entry]:
    one = iter(values)
    return zip(one, one, one, one, one, strict=True)


class SavedLog:
    """The entries of one thread, for all calls under way there."""

    def __init__(self, watch: ModuleWatch) -> None:
        """Of the thread that makes it."""
        self.here = watch.running.here
        self.entries: list[Any] = []
        """End to end; another list for each call that no other is around."""
        self.is_plain = False
        """Whether a plain tensor's entry is all there is to note of it."""
        self._watch = watch
        self._tallies: tuple[Tally, ...] = ()
        self._parameters: dict[int, StorageRef] = {}
        self.known: set[int] = set()
        """Identities of parameters that were seen."""
        self._lists: dict[int, list[int]] = {}
        """By module: the identities of its parameters, when they were last looked at."""
        self._paths: tuple[str, ...] | None = None
        """Of the modules that were looked at last."""
        self._gathers = False
        """Whether modules may get other parameters while they run."""

    @property
    def npp_compat_bytes(self) -> int:
        """MemProfiler's number on this thread so far."""
        return self.here.saved_bytes

    def start(self) -> Tally:
        """A call begins."""
        if self._paths is not self._watch.paths:
            self._paths = self._watch.paths
            self._look_at_all()
        if not self._tallies:
            self.entries = []
        tally = Tally(len(self.entries), self.here.saved_bytes, self._parameters)
        self._tallies += (tally,)
        self.is_plain = not self._gathers
        return tally

    def stop(self, tally: Tally) -> None:
        """It has ended."""
        self._tallies = tuple(known for known in self._tallies if known is not tally)
        if self._tallies:
            tally.end(self.entries[tally.first :])
        else:
            entries = self.entries
            self.switch_off()
            tally.end(entries[tally.first :] if tally.first else entries)

    def switch_off(self) -> None:
        """Note nothing any more; until a call begins."""
        self.is_plain = False
        self._tallies = ()
        self.entries = []

    def living(self) -> Iterator[tuple[torch.UntypedStorage, int]]:
        """Saved storages that are alive and no parameter's, with the module that saved.

        Of what was saved long ago in a large call the module is not known any more.
        """
        entries = tuple(self.entries)
        found: dict[int, tuple[StorageRef | None, int]] = {
            id(ref): (ref, module) for module, _, _, ref, _ in _entries(entries)
        }
        for tally in self._tallies:
            for identity, ref in tally.seen():
                found.setdefault(identity, (ref, OUTSIDE))
        for identity, (held, module) in found.items():
            storage = None if held is None else held()
            if storage is not None and identity not in self._parameters:
                yield storage, module

    def note(self, tensor: torch.Tensor) -> None:
        """A tensor is being saved, of whatever class."""
        if not self._tallies:
            return
        kind = type(tensor)
        if kind is _Parameter:
            if id(tensor) not in self.known:
                self.known.add(id(tensor))
                self._are_parameters(map(_reference, storages_of(tensor)))
                self._look_at_all()  # where one is new, others may be
            return
        module = self.here.stack[-1]
        if module != OUTSIDE and (self._gathers or kind is not _Tensor):
            self._look_at(module, self._watch.module(module))
        again = graph_task() != _NO_GRAPH_TASK and is_recomputed()
        found = [
            (_reference(s), RECOMPUTED if again else s.nbytes())
            for s in storages_of(tensor)
        ]
        known = is_parameter(tensor)
        if known or is_parameter(tensor._base):  # noqa: SLF001
            self._are_parameters(reference for reference, _ in found)
        if known:
            return
        num_bytes, dtype = bytes_of(tensor), tensor.dtype
        self.here.saved_bytes += num_bytes
        first = found[0] if found else (None, 0)
        self.entries += (module, dtype, num_bytes, *first)
        for further in found[1:]:
            self.entries += (module, dtype, -1, *further)
        if len(self.entries) >= _FULL:
            self.fold()

    def note_base(self, base: Any, storage: StorageRef) -> None:
        """What lies in `storage` is a view of `base`."""
        if is_parameter(base):
            self._parameters[id(storage)] = storage
            if id(base) not in self.known:
                self.known.add(id(base))
                self._look_at_all()

    def fold(self) -> None:
        """Add up what is kept."""
        for tally in self._tallies:
            tally.add(self.entries[tally.first :])
            tally.first = 0
            tally.forget_dead()
        self.entries.clear()

    def _look_at_all(self) -> None:
        for index, module in self._watch.modules():
            self._look_at(index, module)

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
            self.known.update(identities)
            for parameter in parameters.values():
                if parameter is not None:
                    self._are_parameters(map(_reference, storages_of(parameter)))
                    if type(parameter) is not _Parameter:
                        # FSDP2's shards; gathered ones take their place for a while.
                        self._gathers = True
                        self.is_plain = False


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


def packing(log: SavedLog, failed: Callable[[BaseException], None]) -> Pack:
    """A pack function for the log's thread: notes a tensor and returns what to keep.

    `failed` is told what went wrong; then nothing is noted any more. It is called for
    each saved tensor, so the usual case is written out and looks up as little as it can.
    """
    here, known, stack = log.here, log.known, log.here.stack

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        kind = type(tensor)
        if kind is _Parameter and id(tensor) in known:
            return tensor
        try:
            if kind is _Tensor and log.is_plain:
                storage = tensor.untyped_storage()
                reference = _reference(storage)
                num_bytes = tensor.nbytes
                here.saved_bytes += num_bytes
                entries = log.entries
                again = graph_task() != _NO_GRAPH_TASK and is_recomputed()
                entries += (
                    stack[-1],
                    tensor.dtype,
                    num_bytes,
                    reference,
                    RECOMPUTED if again else storage.nbytes(),
                )
                base = tensor._base  # noqa: SLF001
                if base is not None and type(base) is not _Tensor:
                    log.note_base(base, reference)
                if len(entries) >= _FULL:
                    log.fold()
            else:
                log.note(tensor)
        except Exception as error:  # noqa: BLE001  # the border to training
            _note_odd(log, tensor, error, failed)
        # An output that its own node holds as it is would never be freed. To ask for
        # the node would make an object of Python's for it.
        return tensor if tensor.is_leaf else tensor.detach()

    return pack


def _note_odd(
    log: SavedLog,
    tensor: torch.Tensor,
    error: Exception,
    failed: Callable[[BaseException], None],
) -> None:
    """Note a tensor of the plain class without a storage, or give up."""
    failure: BaseException | None = error
    if tensor.layout is not _strided:
        try:
            log.note(tensor)
            failure = None
        except Exception as second:  # noqa: BLE001  # the border to training
            failure = second
    if failure is not None:
        log.switch_off()
        failed(failure)
