"""The tensors inside what users and torch pass around."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAX_DEPTH: Final = 8
"""Deeper containers are not looked into; a structure that holds itself ends here."""

_MAX_ENTRIES: Final = 100_000
"""Of one value: the training thread waits."""

PLAIN: Final = frozenset({torch.Tensor, torch.nn.Parameter})
"""Tensors of these types hold their own bytes, unless they are sparse."""
_COMPRESSED: Final = {
    torch.sparse_csr: ("crow_indices", "col_indices", "values"),
    torch.sparse_bsr: ("crow_indices", "col_indices", "values"),
    torch.sparse_csc: ("ccol_indices", "row_indices", "values"),
    torch.sparse_bsc: ("ccol_indices", "row_indices", "values"),
    torch.sparse_coo: ("_indices", "_values"),
}


def tensors_in(value: Any, most: int = _MAX_ENTRIES) -> Iterator[torch.Tensor]:
    """Tensors in nested sequences, mappings and dataclasses, in their order.

    Of many numbers in lists, and of what has no end, the first `most` are looked at.
    """
    return _tensors_in(value, 0, iter(range(most)))


def _tensors_in(value: Any, depth: int, left: Iterator[int]) -> Iterator[torch.Tensor]:
    """`left` has an item for each entry that may still be looked at."""
    if isinstance(value, torch.Tensor):
        yield value
        return
    if depth >= _MAX_DEPTH or value is None:
        return
    if isinstance(value, (list, tuple)):
        for item, _ in zip(value, left, strict=False):
            if isinstance(item, torch.Tensor):
                yield item
            elif item is not None:
                yield from _tensors_in(item, depth + 1, left)
    elif isinstance(value, Mapping):
        for item, _ in zip(value.values(), left, strict=False):
            yield from _tensors_in(item, depth + 1, left)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            part = getattr(value, field.name, None)
            yield from _tensors_in(part, depth + 1, left)


def followed(value: Any) -> list[torch.Tensor]:
    """The tensors in a value that autograd has made and will send gradients for."""
    if isinstance(value, torch.Tensor):
        return [value] if value.requires_grad and not value.is_leaf else []
    return [t for t in tensors_in(value) if t.requires_grad and not t.is_leaf]


def plain_tensors(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    """The tensors that hold a tensor's bytes: itself, or what it is made of.

    A DTensor is its local shard, a quantised one its data and scales, a sparse one its
    indices and values.
    """
    if tensor.layout is not torch.strided and tensor.layout in _COMPRESSED:
        for attribute in _COMPRESSED[tensor.layout]:
            yield from plain_tensors(getattr(tensor, attribute)())
        return
    if type(tensor) not in PLAIN:
        flatten = getattr(tensor, "__tensor_flatten__", None)
        if flatten is not None:
            for attribute in flatten()[0]:
                part = getattr(tensor, attribute)
                if isinstance(part, torch.Tensor):
                    yield from plain_tensors(part)
            return
    yield tensor
