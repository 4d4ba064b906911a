"""Counts the samples and tokens of a batch by looking at shapes alone.

Nothing is read from the device: a tensor's shape is known on the host.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any, Final, NamedTuple

from memboard.collector.core.plain import forgiving

TOKEN_KEYS: Final = ("input_ids", "tokens", "token_ids")
"""Under these names a batch's entry is a tensor of tokens."""

_MAX_DEPTH: Final = 4
_MAX_ENTRIES: Final = 64


class Sizes(NamedTuple):
    """Of one batch on this rank; None where it does not show."""

    samples: int | None
    tokens: int | None


def sizes_of(batch: Any) -> Sizes:
    """Samples: the first dimension of the first tensor. Tokens: all of `input_ids`."""
    shape = tokens = None
    with forgiving:  # a batch is whatever the user makes of it
        tokens = _token_shape(batch)
        shape = _first_shape(batch, _MAX_DEPTH)
    samples = shape[0] if shape else None
    if tokens is None:
        return Sizes(samples, None)
    number = 1
    for length in tokens:
        number *= length
    return Sizes(samples, number)


def _token_shape(batch: Any) -> tuple[int, ...] | None:
    if not isinstance(batch, Mapping):
        if not isinstance(batch, (list, tuple)) or not batch:
            return None
        batch = batch[0]
    if isinstance(batch, Mapping):
        for key in TOKEN_KEYS:
            if key in batch:
                return _shape(batch[key])
    return None


def _first_shape(value: Any, depth: int) -> tuple[int, ...] | None:
    """The shape of the first tensor that has dimensions, in the order of the batch."""
    shape = _shape(value)
    if shape:
        return shape
    if depth == 0:
        return None
    if isinstance(value, Mapping):
        value = list(islice(value.values(), _MAX_ENTRIES))
    if isinstance(value, (list, tuple)):
        for entry in value[:_MAX_ENTRIES]:
            shape = _first_shape(entry, depth - 1)
            if shape:
                return shape
    return None


def _shape(value: Any) -> tuple[int, ...] | None:
    shape = getattr(value, "shape", None)
    if not isinstance(shape, tuple):  # torch.Size is one
        return None
    lengths = tuple(shape)
    return lengths if all(type(length) is int for length in lengths) else None
