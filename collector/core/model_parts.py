"""Modules, parameters and buffers as a model lists them, as far as a list is believed.

A class of the user's own may list them without an end, and one that answers to every name
does: the training thread waits while they are read.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from memboard.collector.core.plain import described
from memboard.collector.core.warn_once import WarnOnce

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_PARTS: Final = 200_000
"""Read of one list: the largest models have some 100,000 modules."""

_warn_once: Final = WarnOnce()


def listed(model: Any, method: str, **arguments: Any) -> Iterator[Any]:
    """What a method of a model yields, as `modules` or `named_parameters`; of more a beginning.

    That something was left out is said once for each class. Raises what the method does.
    """
    parts = iter(getattr(model, method)(**arguments))
    yield from islice(parts, MAX_PARTS)
    for _ in parts:
        _warn_once(
            f"{described(model)}.{method}",
            "%s of %s lists more than %d entries; the rest is left out. If it has no end,"
            " attach the torch.nn.Module that the model consists of.",
            method,
            described(model),
            MAX_PARTS,
        )
        return


def named_modules(model: Any) -> list[tuple[str, Any]]:
    """Every module with its path, each once, as torch's own `named_modules` lists them."""
    module_by_id: dict[int, tuple[str, Any]] = {}
    for path, module in listed(model, "named_modules"):
        module_by_id.setdefault(id(module), (path, module))
    return list(module_by_id.values())
