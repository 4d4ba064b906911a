"""When a model's forward begins and ends, without a trace on the model.

A plain model gets two hooks. torch.compile traces through them as through nothing, so of a model that is compiled the compiled call is timed from
outside: the wrapper that `torch.compile` returned gets the hooks, and of a model that was
told `model.compile()` the call itself is wrapped.
"""

from __future__ import annotations

import functools
import threading
import weakref
from typing import TYPE_CHECKING, Any, Final

from torch.compiler import is_compiling

from collector.hooks.module_hooks import HooksOn, OwnHook
from collector.steps.compiled import compiles_anything, untraced

if TYPE_CHECKING:
    from collections.abc import Iterable

    from collector.hooks.torch_points import Listener

PART: Final = "forward"

_COMPILED_CALL: Final = "_compiled_call_impl"


class Forwards:
    """Of the models of one recording."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._watched: list[tuple[weakref.ref[Any], list[Any]]] = []
        """Models, and what takes the timing off them again."""

    @property
    def sees_any(self) -> bool:
        """Whether any model is timed."""
        return bool(self._watched)

    def attach(self, models: Iterable[Any]) -> None:
        """Time these from now on, and no others. May raise what odd models raise."""
        models = list(models)
        kept = []
        for reference, handles in self._watched:
            if any(reference() is model for model in models):
                kept.append((reference, handles))
            else:
                _remove(handles)
        self._watched = kept
        for model in models:
            if all(reference() is not model for reference, _ in self._watched):
                handles = self._time(model)
                if handles:
                    self._watched.append((weakref.ref(model), handles))

    def close(self) -> None:
        """Leave all models as they were."""
        watched, self._watched = self._watched, []
        for _, handles in watched:
            _remove(handles)

    def _time(self, model: Any) -> list[Any]:
        compiled = getattr(model, _COMPILED_CALL, None)
        if compiled is not None and type(model).__name__ != "OptimizedModule":
            return [_CompiledCall(model, compiled, self._listener)]
        inside = compiles_anything() and type(model).__name__ != "OptimizedModule"
        if inside or not callable(getattr(model, "register_forward_hook", None)):
            return []  # compiled code may hold it, and would be compiled anew
        begun = _Begun()
        before, after = _Before(self._listener, begun), _After(self._listener, begun)
        return [HooksOn(model, before=before, after=after)]


def _remove(handles: Iterable[Any]) -> None:
    for handle in handles:
        handle.remove()


class _Begun(threading.local):
    """Forwards of one model that have begun and not ended, of each thread by itself."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        """They nest; None for one that is not noted."""


class _Hook(OwnHook):
    __slots__ = ("_begun", "_listener")

    def __init__(self, listener: Listener, begun: _Begun) -> None:
        self._listener = listener
        self._begun = begun


class _Before(_Hook):
    __slots__ = ()

    def __call__(self, *_: Any) -> None:
        if not is_compiling():
            self._begun.stack.append(self._listener.begin(PART))


class _After(_Hook):
    __slots__ = ()

    def __call__(self, *_: Any) -> None:
        if is_compiling():
            return
        stack = self._begun.stack
        begun = stack.pop() if stack else None
        if begun is not None:
            self._listener.end(begun)


class _CompiledCall:
    """Stands before what `model.compile()` made, until `remove`."""

    def __init__(self, model: Any, compiled: Any, listener: Listener) -> None:
        @functools.wraps(compiled, updated=())
        def timed(*args: Any, **kwargs: Any) -> Any:
            begun = listener.begin(PART)
            try:
                return compiled(*args, **kwargs)
            finally:
                if begun is not None:
                    listener.end(begun)

        self._model = weakref.ref(model)
        self._compiled = compiled
        self._timed = untraced(timed)
        setattr(model, _COMPILED_CALL, self._timed)

    def remove(self) -> None:
        """Put the compiled call back, unless somebody else has since."""
        model = self._model()
        if model is not None and getattr(model, _COMPILED_CALL, None) is self._timed:
            setattr(model, _COMPILED_CALL, self._compiled)
