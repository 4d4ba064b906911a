"""Maps addresses to the tensors that training is made of, by name.

A snapshot knows addresses and stacks; which block is a parameter, a gradient or a state of
the optimizer, only the objects know. They are walked when a snapshot is taken, at about
a microsecond each: parameters, gradients and buffers of the attached models, what
FSDP2 has gathered or is about to reduce, the optimizers' states, and what those kinds of
collecting know that are at it just then (saved tensors, the tracker's storages). Nothing
is kept alive, nothing waits for the device, and one that cannot be read is left out.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np

from memboard.collector.core.plain import forgiving, weakly

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from memboard.collector.format.records import CaptureTable
    from memboard.collector.history.tensor_walk import Known, Members

TABLE: Final = "tensors"
"""The table's name in a capture of kind `history`."""

MAX_TENSORS: Final = 1_000_000

Part: TypeAlias = Literal["model", "optimizers", "known"]
Parts: TypeAlias = tuple[Part, ...]
PARTS: Final[Parts] = ("model", "optimizers", "known")


class Tensors(NamedTuple):
    """Storages, each once, in the order they were met: columns of equal length."""

    address: list[int]
    num_bytes: list[int]
    category: list[int]
    name: list[str]
    device: list[int]
    """Index; -1 of the host."""
    num_dropped: int  # Those beyond `MAX_TENSORS`

    def table(self) -> CaptureTable:
        """As a capture holds them."""
        return {
            "address": np.array(self.address, np.uint64).view(np.int64),
            "num_bytes": np.array(self.num_bytes, np.int64),
            "category": np.array(self.category, np.int64),
            "name": tuple(self.name),
            "device": np.array(self.device, np.int64),
        }

    def sums(self, device: int | None) -> list[tuple[int, int, int]]:
        """Category, bytes and number of those on one device (None: any)."""
        sums_by_category: dict[int, list[int]] = {}
        for size, category, index in zip(
            self.num_bytes, self.category, self.device, strict=True
        ):
            if device is None or index == device:
                size_and_count = sums_by_category.setdefault(category, [0, 0])
                size_and_count[0] += size
                size_and_count[1] += 1
        return sorted(
            (code, size, many) for code, (size, many) in sums_by_category.items()
        )


class TensorMap:
    """Models and optimizers of one recorder, and what is on the device of them."""

    def __init__(self, device_type: str) -> None:
        """`device_type`: tensors elsewhere are none of the snapshot's."""
        _import_walk()
        self._device_type = device_type
        self._model: Callable[[], Any] | None = None
        self._optimizers: list[Callable[[], Any]] = []
        self.known: Callable[[], Known] | None = None
        """What kinds of collecting know at this moment."""

    def attach(self, model: Any, optimizers: Sequence[Any]) -> None:
        _import_walk()
        is_one = callable(getattr(model, "named_parameters", None))
        self._model = weakly(model) if is_one else None
        self._optimizers = [weakly(optimizer) for optimizer in optimizers]

    def found(self, parts: Parts = PARTS) -> Tensors | None:
        """What there is now; None where nothing was attached. Does not raise.

        `parts`: what is looked at of it. A model's are its parameters, gradients and
        buffers.
        """
        model = None if self._model is None else self._model()
        optimizers = [
            optimizer for ref in self._optimizers if (optimizer := ref()) is not None
        ]
        if model is None and not optimizers and self.known is None:
            return None
        if "torch" not in sys.modules:  # nor is there any tensor
            return None
        walk = _import_walk().Walk(self._device_type)
        # A wrapper of the user's own may refuse to be walked; the rest goes on.
        if "model" in parts:
            with forgiving:
                walk.model(model)
        if "optimizers" in parts:
            with forgiving:
                walk.optimizers(optimizers)
        if "known" in parts and self.known is not None:
            with forgiving:
                walk.known(self.known())
        tensors = Tensors(
            walk.address[:MAX_TENSORS],
            walk.num_bytes[:MAX_TENSORS],
            walk.category[:MAX_TENSORS],
            walk.name[:MAX_TENSORS],
            walk.device[:MAX_TENSORS],
            max(0, len(walk.address) - MAX_TENSORS),
        )
        return tensors if tensors.address or model is not None else None

    def members(self) -> Members | None:
        """The model's, whose gradients are read; None where only a walk finds them."""
        model = None if self._model is None else self._model()
        if model is None:
            return None
        with forgiving:
            members: Members = _import_walk().Members(model, self._device_type)
            return members
        return None


def _import_walk() -> Any:
    """The walk, which needs torch: where that is there, before memory runs out."""
    if "torch" in sys.modules:
        return import_module("memboard.collector.history.tensor_walk")
    return None
