"""An operator's arguments as torch's profiler wrote them, and what a call computes of them."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

Shape: TypeAlias = tuple[int, ...]
FormulaKind: TypeAlias = Literal["matmul", "attention", "convolution"]

MAX_SIZE: Final = 1 << 40
"""Of a dimension: what is larger is no tensor's."""
_MAX_DIMENSIONS: Final = 8


class ElementType(NamedTuple):
    """A data type, as peaks of devices are listed by it."""

    name: str
    num_bytes: int
    num_packed: int = 1
    """Numbers in one element of a tensor."""


_FP8: Final = ElementType("fp8", 1)
_INT8: Final = ElementType("int8", 1)
ELEMENT_TYPES: Final = {
    "double": ElementType("fp64", 8),
    "float": ElementType("fp32", 4),
    "c10::Half": ElementType("fp16", 2),
    "c10::BFloat16": ElementType("bf16", 2),
    "c10::Float8_e4m3fn": _FP8,
    "c10::Float8_e5m2": _FP8,
    "c10::Float8_e4m3fnuz": _FP8,
    "c10::Float8_e5m2fnuz": _FP8,
    "c10::Float4_e2m1fn_x2": ElementType("fp4", 1, num_packed=2),
    "signed char": _INT8,
    "unsigned char": _INT8,
}
"""By the name of the C++ type, as the profiler writes it."""


class Arguments(NamedTuple):
    """Arguments of a call by their place; empty where nothing was written."""

    shapes: tuple[Shape | None, ...]
    """Of a tensor its sizes, `()` of a number; None for a list of tensors."""
    types: tuple[str, ...]
    values: tuple[str, ...]
    """Numbers, flags and lists of numbers as text; empty for tensors."""

    def shape(self, place: int) -> Shape | None:
        return self.shapes[place] if place < len(self.shapes) else None

    def element(self, place: int) -> ElementType | None:
        """Of a tensor; None: an unknown type, or no tensor."""
        if place >= len(self.types):
            return None
        return ELEMENT_TYPES.get(self.types[place])

    def num_bytes(self, place: int) -> int:
        """Of a tensor; 0 for an argument that is none."""
        shape, element = self.shape(place), self.element(place)
        if shape is None or element is None or not shape:
            return 0
        return math.prod(shape) * element.num_bytes

    def value(self, place: int) -> Any:
        """A number, a flag or a list; None: it is not written."""
        text = self.values[place] if place < len(self.values) else ""
        with suppress(ValueError, RecursionError):
            return json.loads(text.replace("True", "true").replace("False", "false"))
        return None


class OperatorWork(NamedTuple):
    """What one call computes and moves.

    A multiplication and an addition are two FLOP, as in `torch.utils.flop_counter` and in
    TraceLens. Bytes count each input once and each output once: the least that has to be
    moved, which caches and tiles exceed.
    """

    kind: FormulaKind
    flop: int
    moved_bytes: int
    element: str
    """Name of the inputs' data type: see `ElementType`."""
    sizes: str  # `M=3, N=640, K=2880`
    num_rows: int = 0
    """M of a matrix multiplication; 0 of others."""


Formula: TypeAlias = "Callable[[Arguments], OperatorWork | None]"
"""None: the arguments do not say enough."""


def read_arguments(dims: str, types: str, values: str) -> Arguments | None:
    """`Input Dims`, `Input type` and `Concrete Inputs`; None: no shapes are readable."""
    shapes = [_shape(sizes) for sizes in _list(dims)]
    if not shapes:
        return None
    return Arguments(tuple(shapes), _texts(types), _texts(values))


def _list(text: str) -> list[Any]:
    with suppress(ValueError, RecursionError):
        items = json.loads(text)
        return items if isinstance(items, list) else []
    return []


def _texts(text: str) -> tuple[str, ...]:
    return tuple(item if isinstance(item, str) else "" for item in _list(text))


def _shape(sizes: Any) -> Shape | None:
    if not isinstance(sizes, list) or len(sizes) > _MAX_DIMENSIONS:
        return None
    if not all(type(size) is int and 0 <= size <= MAX_SIZE for size in sizes):
        return None
    return tuple(sizes)
