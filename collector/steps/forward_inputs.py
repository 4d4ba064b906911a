"""The tensors that the models' last forwards were given, for as long as they are there.

A batch that a program moves to the device in its own loop has a stack that says nothing.
That it is one, the forward says that it is given to. References are weak ones, to storages.
"""

from __future__ import annotations

import weakref
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final

from memboard.collector.core.plain import forgiving
from memboard.collector.format.memory import CATEGORIES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_INPUT: Final = CATEGORIES.index("input")

_MAX_ARGUMENTS: Final = 64
_MAX_ENTRIES: Final = 256
"""Of each argument: a forward waits."""


class ForwardInputs:
    """Of each attached model, by a number."""

    def __init__(self) -> None:
        self._given: dict[int, list[tuple[weakref.ref[Any], str]]] = {}
        """By model: storages and names; replaced as a whole, as any thread reads it."""

    def note(self, model: int, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """A model's forward begins with these. Never raises."""
        # Here and not above: it needs torch.
        from memboard.collector.modules.tensors import plain_tensors, tensors_in

        references: list[tuple[weakref.ref[Any], str]] = []
        named = chain(
            ((f"input {index}", value) for index, value in enumerate(args)),
            kwargs.items(),
        )
        with forgiving:  # inputs are whatever the user makes of them
            for name, value in islice(named, _MAX_ARGUMENTS):
                for tensor in tensors_in(value, _MAX_ENTRIES):
                    if tensor.requires_grad:  # of another model, or to be trained
                        continue
                    references += (
                        (weakref.ref(part.untyped_storage()), name)
                        for part in plain_tensors(tensor)
                    )
        self._given[model] = references

    def keep(self, models: Sequence[int]) -> None:
        self._given = {
            model: references
            for model, references in self._given.items()
            if model in models
        }

    def storages(self) -> Iterator[tuple[Any, int, str]]:
        """Those that are there, each with its category and a name."""
        for references in tuple(self._given.values()):
            for reference, name in references:
                storage = reference()
                if storage is not None:
                    yield storage, _INPUT, name
