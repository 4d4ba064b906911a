"""The models and optimizers that a recorder is told of, and what is said of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from memboard.collector.core.guard import guarded
from memboard.collector.core.model_parts import listed
from memboard.collector.core.plain import weakly

if TYPE_CHECKING:
    from collections.abc import Sequence


_MAX_MODELS: Final = 256
_MAX_OPTIMIZERS: Final = 10_000
"""Of one call; some trainings have an optimizer for each parameter."""
_MAX_NOTES: Final = 64
"""Of each kind and call: a user's notes are bounded, and marks are some, too."""


class AttachedObjects:
    """Every model and optimizer so far; none is kept alive, but for several models."""

    def __init__(self) -> None:
        self._models: list[Any] = []
        self._optimizers: list[Any] = []
        """Functions that return one, or None where it is gone."""
        self._together: Any = None

    def add(self, model: Any, optimizer: Any) -> list[tuple[str, dict[str, Any]]]:
        """Also these: one each, or several in a list. Returns notes: kind and data.

        A model that wraps an earlier one takes its place.
        """
        notes: list[tuple[str, dict[str, Any]]] = []
        models = _each(model, _MAX_MODELS)
        optimizers = _each(optimizer, _MAX_OPTIMIZERS)
        notes += [("model", describe_model(model)) for model in models[:_MAX_NOTES]]
        notes += [
            ("optimizer", {"type": type(optimizer).__name__})
            for optimizer in optimizers[:_MAX_NOTES]
        ]
        for new_model in models:
            self._add_model(new_model)
        ids = set(map(id, self.optimizers))
        for new_optimizer in optimizers:
            if id(new_optimizer) not in ids:
                ids.add(id(new_optimizer))
                self._optimizers.append(weakly(new_optimizer))
        return notes

    @property
    def model(self) -> Any:
        """The model; several are the children 0, 1, ... of one that holds them."""
        models = self._living(self._models)
        if len(models) < 2:
            self._together = None
            return models[0] if models else None
        if self._together is None or list(self._together) != models:
            from torch import nn

            self._together = nn.ModuleList(models)
        return self._together

    @property
    def models(self) -> tuple[Any, ...]:
        """All of them, each by itself."""
        return tuple(self._living(self._models))

    @property
    def optimizers(self) -> tuple[Any, ...]:
        """All of them, in the order they came."""
        return tuple(self._living(self._optimizers))

    def _add_model(self, model: Any) -> None:
        if not callable(getattr(model, "named_modules", None)):
            return
        inside = set(map(id, listed(model, "modules")))
        kept = []
        for other in self._living(self._models):
            if any(module is model for module in listed(other, "modules")):
                return
            if id(other) not in inside:
                kept.append(weakly(other))
        self._models = [*kept, weakly(model)]

    @staticmethod
    def _living(references: list[Any]) -> list[Any]:
        return [living for ref in references if (living := ref()) is not None]


def _each(value: Any, limit: int) -> Sequence[Any]:
    if value is None:
        return ()
    return value[:limit] if type(value) in (list, tuple) else (value,)


@guarded(lambda *_: None, instead=lambda model: {"type": type(model).__name__})
def describe_model(model: Any) -> dict[str, Any]:
    """What a note says about a module: its class and its numbers of parameters.

    Of sharded parameters the whole is counted; nothing waits for the device. A lazy
    module does not know its sizes yet.
    """
    model = getattr(model, "_orig_mod", model)  # behind torch.compile
    data: dict[str, Any] = {"type": type(model).__name__}
    if callable(getattr(model, "parameters", None)):
        parameters = list(listed(model, "parameters"))
        data["num_params"] = sum(p.numel() for p in parameters)
        data["num_trainable_params"] = sum(
            p.numel() for p in parameters if p.requires_grad
        )
    return data
