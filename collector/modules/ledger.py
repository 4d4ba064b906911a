"""The ledger of living storages: their bytes, and what they are for.

A storage is known by the identity of its Python object, which torch keeps for as long
as the storage lives. A weak reference with one shared callback sees it go; the
reference itself carries what is known of the storage, so that nothing is looked up.
Nothing here holds a tensor, and no reference points back at one.
"""

from __future__ import annotations

import contextlib
import itertools
import weakref
from array import array
from time import perf_counter_ns
from typing import TYPE_CHECKING, Final

import torch

from memboard.collector.modules.log import (
    CATEGORY,
    CATEGORY_MASK,
    DEVICE_SHIFT,
    MAX_DEVICES,
    NUMBER_SHIFT,
    PLACE_MASK,
    EventLog,
    owner_of,
    place,
)
from memboard.collector.modules.tensors import PLAIN, plain_tensors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

graph_task: Final = torch._C._current_graph_task_id  # noqa: SLF001
"""Number of the backward that runs on this thread; -1 outside of any."""


class StorageRef(weakref.ref[torch.UntypedStorage]):
    """A weak reference to a storage, with what is counted for it."""

    __slots__ = ("code", "key", "num_bytes", "rounding", "size")

    key: int
    size: int
    num_bytes: int
    """Bytes that are counted: `size`, rounded as the device's allocator does."""
    rounding: int
    code: int


class Ledger:
    """Living storages by identity; every change becomes an event.

    What an operator returns for the first time gets `forward_place` or, inside
    autograd's backward, `backward_place`: category and owner, as the module stack
    sets them.
    """

    def __init__(self, log: EventLog, rounding: Callable[[str], int]) -> None:
        """`rounding`: by device type, what its allocator rounds bytes up to."""
        self.forward_place = place(CATEGORY["activation"], -1)
        self.backward_place = place(CATEGORY["temp"], -1)
        self.num_unreadable = 0
        """Tensors whose storage torch does not show."""
        self._log = log
        self._append = log.events.extend
        self._live: dict[int, StorageRef] = {}
        self._numbers = itertools.count()
        self._rounding = rounding
        self._by_device: dict[torch.device, tuple[int, int]] = {}
        """What it rounds up to, and its index as it stands in a code."""

    @property
    def devices(self) -> tuple[torch.device, ...]:
        return tuple(self._by_device)[:MAX_DEVICES]

    def see(self, tensor: torch.Tensor) -> None:
        """Note a plain tensor that an operator returned."""
        storage = tensor.untyped_storage()
        ref = self._live.get(id(storage))
        if ref is None:
            self._add(
                storage,
                tensor.device,
                self.forward_place if graph_task() == -1 else self.backward_place,
            )
        elif ref.size != storage.nbytes():
            self._resize(ref, storage.nbytes())

    def see_any(self, tensor: torch.Tensor) -> None:
        """Note any tensor that an operator returned: sparse, or made of others."""
        for part in plain_tensors(tensor):
            try:
                self.see(part)
            except (NotImplementedError, RuntimeError):  # noqa: PERF203
                self.num_unreadable += 1

    def assign(
        self,
        tensor: torch.Tensor,
        category: int,
        owner: int,
        *,
        only: frozenset[int] | None = None,
    ) -> None:
        """Say what a tensor's storages are for, and add those not known.

        `only`: the categories that may be changed; others stay as they are.
        """
        for part in (tensor,) if type(tensor) in PLAIN else plain_tensors(tensor):
            try:
                storage = part.untyped_storage()
            except (NotImplementedError, RuntimeError):
                if type(part) in PLAIN and part.layout is not torch.strided:
                    for inner in plain_tensors(part):
                        self.assign(inner, category, owner, only=only)
                else:
                    self.num_unreadable += 1
                continue
            ref = self._live.get(id(storage))
            if ref is None:
                self._add(storage, part.device, place(category, owner))
            elif only is None or ref.code & CATEGORY_MASK in only:
                self._move(ref, place(category, owner))

    def rename(self, tensor: torch.Tensor, category: int, *, only: int) -> None:
        """Another category of what is known under `only`; its owner stays.

        Of what torch shows no storage of nothing is known: torch.func's wrappers are such.
        """
        for part in plain_tensors(tensor):
            ref = None
            with contextlib.suppress(NotImplementedError, RuntimeError):
                ref = self._live.get(id(part.untyped_storage()))
            if ref is not None and ref.code & CATEGORY_MASK == only:
                self._move(ref, ref.code & PLACE_MASK & ~CATEGORY_MASK | category)

    def storages(self, tensor: torch.Tensor) -> Iterator[tuple[int, int]]:
        """Identity and counted bytes of each of a tensor's storages."""
        for part in plain_tensors(tensor):
            with contextlib.suppress(NotImplementedError, RuntimeError):
                storage = part.untyped_storage()
                rounding = self._rounding(part.device.type)
                yield id(storage), -(-storage.nbytes() // rounding) * rounding

    def resized(self, storage: torch.UntypedStorage) -> None:
        """A storage was given another size; one that is not known stays unknown."""
        ref = self._live.get(id(storage))
        if ref is not None and ref.size != storage.nbytes():
            self._resize(ref, storage.nbytes())

    def alive(self) -> array[int]:
        """Event rows of all that is alive, as if it had come now."""
        now, rows = perf_counter_ns(), array("q")
        for ref in tuple(self._live.values()):
            if ref.num_bytes:
                rows.extend((now, ref.num_bytes, ref.code))
        return rows

    def living(self) -> Iterator[tuple[torch.UntypedStorage, int, int]]:
        """Every storage that is alive, with its category and owner module (-1: none)."""
        for ref in tuple(self._live.values()):
            storage = ref()
            if storage is not None:
                yield storage, ref.code & CATEGORY_MASK, owner_of(ref.code)

    def release(self) -> None:
        """Let go of all references: their end is of no interest any more."""
        self._live.clear()

    def _add(
        self, storage: torch.UntypedStorage, device: torch.device, where: int
    ) -> None:
        log = self._log
        if len(log.events) >= log.max_length:
            log.num_dropped += 1
            return
        rounding_and_bits = self._by_device.get(device)
        if rounding_and_bits is None:
            rounding_and_bits = self._new_device(device)
        ref = StorageRef(storage, self._freed)
        key = ref.key = id(storage)
        size = ref.size = storage.nbytes()
        ref.rounding, device_bits = rounding_and_bits
        num_bytes = ref.num_bytes = -(-size // ref.rounding) * ref.rounding
        code = ref.code = next(self._numbers) << NUMBER_SHIFT | device_bits | where
        # Another thread may have added it since.
        if self._live.setdefault(key, ref) is ref and num_bytes:
            self._append((perf_counter_ns(), num_bytes, code))

    def _new_device(self, device: torch.device) -> tuple[int, int]:
        index = min(len(self._by_device), MAX_DEVICES - 1)
        rounding_and_bits = self._rounding(device.type), index << DEVICE_SHIFT
        self._by_device[device] = rounding_and_bits
        return rounding_and_bits

    def _freed(self, ref: StorageRef) -> None:
        self._live.pop(ref.key, None)
        if ref.num_bytes:
            self._append((perf_counter_ns(), -ref.num_bytes, ref.code))

    def _resize(self, ref: StorageRef, size: int) -> None:
        num_bytes = -(-size // ref.rounding) * ref.rounding
        delta = num_bytes - ref.num_bytes
        ref.size, ref.num_bytes = size, num_bytes
        if delta:
            self._append((perf_counter_ns(), delta, ref.code))

    def _move(self, ref: StorageRef, where: int) -> None:
        old = ref.code
        if old & PLACE_MASK == where:
            return
        new = ref.code = old & ~PLACE_MASK | where
        if ref.num_bytes:
            now = perf_counter_ns()
            # In one row's breath: no reader meets the bytes missing or twice.
            self._append((now, -ref.num_bytes, old, now, ref.num_bytes, new))
