"""The kind `modules`: opens windows, and hands in their captures."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from collector.core.warn_once import warn
from collector.errors import ConfigError
from collector.modules.capture import make_capture, open_window
from collector.modules.info import INFO
from collector.modules.root import find_root
from collector.modules.session import Session
from collector.modules.tensors import tensors_in
from collector.modules.watching.compiled import is_compiled
from collector.sources.contract import SourceInfo, Unavailable
from collector.steps.compiled import compiles_anything

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from torch import nn

    from collector.config.sections import ModulesConfig
    from collector.functions.contract import Call, Sink
    from collector.modules.capture import Window

ESTIMATE = "eager estimate"
"""What a capture says of a step that may be compiled, in whole or in part."""


class ModulesKind:
    """Tracks the attached model through collected calls. See `contract.Kind`."""

    def __init__(self, config: ModulesConfig, sink: Sink) -> None:
        self._config = config
        self._sink = sink
        self._model: Callable[[], Any] | None = None
        self._optimizers: list[Callable[[], Any]] = []
        self._given: list[weakref.ref[Any]] | None = None
        """The next window's inputs, not kept alive by us."""
        self._session: Session | None = None
        self._windows: list[Window] = []
        self._estimate = ""
        self._is_optimizer_settled = False
        """Whether a window saw an optimizer, or it was said that none did."""

    @property
    def info(self) -> SourceInfo:
        """Its name and cost."""
        return INFO

    def attach(self, model: Any, optimizers: Sequence[Any]) -> None:
        """Track this model from the next window on; neither is kept alive.

        Raises:
            Unavailable: there is no module at the path that `modules.root` names.
        """
        self._model = None if model is None else _weakly(model)
        self._optimizers = [_weakly(optimizer) for optimizer in optimizers]
        if model is not None:
            self._root(model)

    def track_inputs(self, inputs: Any) -> None:
        """Count these tensors as the next window's inputs, or the open one's.

        Without it, inputs are what the root's forward is given.
        """
        if self._session is None:
            self._given = [weakref.ref(tensor) for tensor in tensors_in(inputs)]
        else:
            self._session.take_inputs(inputs)

    def begin(self, call: Call) -> None:
        """Open a window.

        Raises:
            Unavailable: there is no model, or it is compiled and not to be estimated.
        """
        session = self._session
        if session is None:
            session = self._start()
        self._windows.append(open_window(session, call))

    def end(self, call: Call, error: BaseException | None) -> None:
        """Close a window and hand in what it saw, also of a call that failed."""
        session = self._session
        window = next((w for w in self._windows if w.call is call), None)
        if session is None or window is None:
            return
        self._windows.remove(window)
        failure = session.failure
        try:
            capture = make_capture(
                session, window, estimate=self._estimate, error=error
            )
            if session.optimizers.num_optimizers:
                self._is_optimizer_settled = True
            elif error is None and not self._is_optimizer_settled:
                self._is_optimizer_settled = True
                self._tell_no_optimizer()
        finally:
            if not self._windows or failure is not None:
                self.release()
        self._sink.put_capture(capture)
        if failure is not None:
            raise failure

    def _tell_no_optimizer(self) -> None:
        reason = (
            "no optimizer was attached and none stepped, so optimizer states are missing"
            " from memory by category"
        )
        remedy = (
            "Give it to collector.record(optimizer=...), or call"
            " rec.attach(optimizer=...)."
        )
        info = SourceInfo(name="modules.optimizer", cost="")
        self._sink.note_kind(info, "absent", reason, remedy)
        warn("modules is on, and %s. %s", reason, remedy)

    def known_storages(self) -> Iterator[tuple[Any, int, str]]:
        """What the open window tracks, with category and owner: see `Windows`."""
        session = self._session
        if session is not None:
            for storage, category, owner in session.ledger.living():
                yield storage, category, session.tree.paths[owner] if owner >= 0 else ""

    def release(self) -> None:
        """Take everything off model, optimizers and torch; open windows are lost."""
        session, self._session = self._session, None
        self._windows.clear()
        if session is not None:
            session.stop()

    def close(self) -> None:
        """As `release`, and forget the model."""
        self.release()
        self._model, self._given = None, None
        self._optimizers.clear()

    def _start(self) -> Session:
        model = None if self._model is None else self._model()
        if model is None:
            raise Unavailable(
                "no model is known",
                "Give it to collector.record(model=...), or call rec.attach(model).",
            )
        root = self._root(model)
        compiled = is_compiled(model)
        given = None
        if self._given is not None:
            given = [tensor for ref in self._given if (tensor := ref()) is not None]
            self._given = None
        optimizers = [o for ref in self._optimizers if (o := ref()) is not None]
        session = Session(root, optimizers, given)
        try:
            session.start()
        except BaseException:
            session.stop()
            raise
        # Also where a compiled wrapper or function beside the model is what is called.
        self._estimate = ESTIMATE if compiled or compiles_anything() else ""
        self._session = session
        return session

    def _root(self, model: Any) -> nn.Module:
        try:
            return find_root(model, self._config.root)
        except ConfigError as error:
            reason, _, remedy = str(error).partition(". ")
            raise Unavailable(reason, remedy) from None


def _weakly(value: Any) -> Callable[[], Any]:
    """A function that returns it, or None where it is gone."""
    try:
        return weakref.ref(value)
    except TypeError:  # its class has slots and allows none
        return lambda: value
