"""Logs the tensors that autograd saves on one thread, for all calls under way there."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Final

import torch

from memboard.collector.core.guard import guarded
from memboard.collector.core.plain import PROGRAM_ENDS
from memboard.collector.functions.forward_log import OUTSIDE
from memboard.collector.functions.saved_log import (
    RECOMPUTED,
    WIDTH,
    Tally,
    bytes_of,
    entries_of,
    is_parameter,
    is_recomputed,
    storages_of,
)
from memboard.collector.hooks.saved_tensors import Place
from memboard.collector.modules.ledger import graph_task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from memboard.collector.functions.module_watch import ModuleWatch
    from memboard.collector.functions.saved_log import StorageRef

    Functions = tuple[Callable[[Any], Any], Callable[[Any], Any]]
    Pack = Callable[[torch.Tensor], torch.Tensor]

_Tensor: Final = torch.Tensor
_Parameter: Final = torch.nn.Parameter
_strided: Final = torch.strided
_reference: Final = weakref.ref

_NO_GRAPH_TASK: Final = -1

_FULL: Final = 20_000 * WIDTH
"""Values that are kept before they are added up: some megabytes."""


def _pack_failed(
    _where: str, error: BaseException, saved: SavedTensors, *_: Any
) -> None:
    saved.pack_failed(error)


class SavedTensors:
    """Notes what is saved on the thread that makes it. Keeps no tensor or storage alive."""

    def __init__(
        self,
        watch: ModuleWatch,
        functions: Functions | None,
        failed: Callable[[str, BaseException], None],
    ) -> None:
        """`functions`: the user's own pack and unpack.

        `failed` is told what failed: counting, or the user's pack function.
        """
        self.here = watch.running.here
        self.entries: list[Any] = []
        """End to end; another list for each call that no other is around."""
        self.is_noting = False
        self.is_plain = False
        """Whether a plain tensor's entry is all there is to note of it."""
        self.known: set[int] = set()
        """Identities of parameters that were seen."""
        self._watch = watch
        self._functions = functions
        self._failed = failed
        self._tallies: tuple[Tally, ...] = ()
        self._parameters: dict[int, StorageRef] = {}
        self._lists: dict[int, list[int]] = {}
        """By module: the identities of its parameters, when they were last looked at."""
        self._paths: tuple[str, ...] | None = None
        """Of the modules that were looked at last."""
        self._gathers = False
        """Whether modules may get other parameters while they run."""
        self._pack = _packing(self)
        self._place: Place | None = None

    def start(self) -> Tally:
        """Count for a call from now on.

        Raises:
            Unavailable: this thread's saved tensors cannot be seen.
        """
        if not self._tallies:
            self._enter()
            self.entries = []
        if self._paths is not self._watch.paths:
            self._paths = self._watch.paths
            self._look_at_all()
        tally = Tally(len(self.entries), self.here.saved_bytes, self._parameters)
        self._tallies += (tally,)
        self.is_noting = True
        self.is_plain = not self._gathers
        return tally

    def stop(self, tally: Tally, *, stays: bool = False) -> None:
        """Count for it no more.

        The last one takes the hooks off the stack, unless the next call begins at once
        (`stays`): they pass everything through meanwhile. So they do on another thread's
        stack, which cannot be reached, until its next call.
        """
        entries = self.entries
        if self._tallies == (tally,):
            self._tallies = ()
            self._switch_off()
        else:
            self._tallies = tuple(
                other for other in self._tallies if other is not tally
            )
        # Nobody else's: no entry is touched once more.
        whole = not tally.first and not self._tallies
        tally.end(entries if whole else entries[tally.first :])
        if not self._tallies and not stays:
            self._leave()

    def release(self) -> None:
        """The window is over: know no parameters any more, and leave the stack."""
        if not self._tallies:
            self._leave()
        if self._place is None:
            self._parameters, self._lists, self._paths = {}, {}, None
            self.known.clear()
            self._gathers = False

    def is_idle(self) -> bool:
        """Whether no call is under way here."""
        return not self._tallies

    def give_up(self, error: BaseException) -> None:
        """Note nothing any more, until a call begins."""
        self._switch_off()
        self._failed("counting", error)

    def pack_failed(self, error: BaseException) -> None:
        """The user's own function raised: it is called no more."""
        self._functions = None
        self._failed("pack", error)

    def living(self) -> Iterator[tuple[torch.UntypedStorage, int]]:
        """Saved storages that are alive and no parameter's, with the module that saved.

        Of what was saved long ago in a large call the module is not known any more.
        """
        entries = tuple(self.entries)
        storages: dict[int, tuple[StorageRef | None, int]] = {
            id(ref): (ref, module) for module, _, _, ref, _ in entries_of(entries)
        }
        for tally in self._tallies:
            for identity, ref in tally.seen():
                storages.setdefault(identity, (ref, OUTSIDE))
        for identity, (storage_ref, module) in storages.items():
            storage = None if storage_ref is None else storage_ref()
            if storage is not None and identity not in self._parameters:
                yield storage, module

    def note(self, tensor: torch.Tensor) -> None:
        """A tensor is being saved, of whatever class."""
        if not self.is_noting:
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
        references = [
            (_reference(s), RECOMPUTED if again else s.nbytes())
            for s in storages_of(tensor)
        ]
        is_own_parameter = is_parameter(tensor)
        if is_own_parameter or is_parameter(tensor._base):  # noqa: SLF001
            self._are_parameters(reference for reference, _ in references)
        if is_own_parameter:
            return
        num_bytes, dtype = bytes_of(tensor), tensor.dtype
        self.here.saved_bytes += num_bytes
        first = references[0] if references else (None, 0)
        self.entries += (module, dtype, num_bytes, *first)
        for further in references[1:]:
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

    def _switch_off(self) -> None:
        self.is_noting = self.is_plain = False
        self.entries = []

    def _enter(self) -> None:
        if self._place is not None:
            if self._place.is_on_top():
                return
            self._leave()  # others are above it
        pack: Any = self._pack if self._functions is None else self._pack_theirs
        place = Place(pack, _same if self._functions is None else _unpack)
        place.enter()
        self._place = place

    def _leave(self) -> None:
        if self._place is not None and self._place.leave():
            self._place = None

    def _pack_theirs(self, tensor: torch.Tensor) -> Any:
        """Count, and keep what the user's own function makes of it."""
        functions, kept = self._functions, self._pack(tensor)
        if functions is not None and self._tallies:
            packed = self._packed(tensor, functions[0])
            if packed is not tensor:
                return _PackedTensor(packed, functions[1])
        return kept

    @guarded(_pack_failed, instead=lambda _, tensor, __: tensor)
    def _packed(self, tensor: torch.Tensor, pack: Callable[[Any], Any]) -> Any:
        return pack(tensor)


def _packing(saved: SavedTensors) -> Pack:
    """A pack function for a thread: notes a tensor and returns what to keep.

    It is called for each saved tensor, so the usual case is written out and looks up as
    little as it can.
    """
    here, parameters, stack = saved.here, saved.known, saved.here.stack

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        kind = type(tensor)
        if kind is _Parameter and id(tensor) in parameters:
            return tensor
        try:
            if kind is _Tensor and saved.is_plain:
                storage = tensor.untyped_storage()
                reference = _reference(storage)
                num_bytes = tensor.nbytes
                here.saved_bytes += num_bytes
                entries = saved.entries
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
                    saved.note_base(base, reference)
                if len(entries) >= _FULL:
                    saved.fold()
                # An output that its own node holds as it is would never be freed. To ask
                # for the node would make an object of Python's for it; `detach` would be
                # an operator, in profiles too.
                return tensor if tensor.is_leaf else tensor.data
            saved.note(tensor)
        except PROGRAM_ENDS:
            raise
        except BaseException as error:  # noqa: BLE001  # the border to training
            _note_odd(saved, tensor, error)
        return tensor if tensor.is_leaf else tensor.detach()

    return pack


def _give_up(_where: str, error: BaseException, saved: SavedTensors, *_: Any) -> None:
    saved.give_up(error)


@guarded(_give_up)
def _note_odd(saved: SavedTensors, tensor: torch.Tensor, error: BaseException) -> None:
    """Note a tensor of the plain class without a storage, or give up."""
    if tensor.layout is _strided:
        raise error
    saved.note(tensor)


def _same(kept: torch.Tensor) -> torch.Tensor:
    return kept


def _unpack(kept: Any) -> Any:
    return kept.unpack(kept.value) if type(kept) is _PackedTensor else kept


class _PackedTensor:
    """What the user's own function made of a tensor, and how to undo it."""

    __slots__ = ("unpack", "value")

    def __init__(self, value: Any, unpack: Callable[[Any], Any]) -> None:
        self.value = value
        self.unpack = unpack
