"""The kind `modules`: windows of a tracked session, and their captures."""

from __future__ import annotations

import time
import weakref
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch

from memboard.collector.clock.process_clock import now_ns
from memboard.collector.core.compiling import compiles_anything, is_compiled
from memboard.collector.core.model_parts import listed
from memboard.collector.core.plain import weakly
from memboard.collector.core.source import SourceInfo, Unavailable
from memboard.collector.core.warn_once import warn
from memboard.collector.errors import ConfigError
from memboard.collector.format.records import Capture
from memboard.collector.modules.log import (
    BOUNDARY_WIDTH,
    EVENT_WIDTH,
    boundary_columns,
    event_columns,
)
from memboard.collector.modules.session import Session, rounding_bytes
from memboard.collector.modules.tensors import tensors_in
from memboard.collector.modules.tree import find_root

if TYPE_CHECKING:
    from array import array
    from collections.abc import Callable, Iterator, Sequence

    from torch import nn

    from memboard.collector.config.sections import ModulesConfig
    from memboard.collector.core.calls import Call, Sink
    from memboard.collector.format.records import IntArray

INFO: Final = SourceInfo(
    name="modules", cost="about 6 us per operator, in collected calls only"
)

ESTIMATE: Final = "eager estimate"
"""Note of a capture about a step that may be compiled, in whole or in part."""


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """A tracked call under way: where it began in the session's log."""

    call: Call
    start_ns: int
    alive: array[int]
    """Event rows of what was alive when it began."""
    first_event: int
    first_boundary: int


class ModulesKind:
    """Tracks the attached model through collected calls."""

    info = INFO

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

    def attach(self, model: Any, optimizers: Sequence[Any]) -> None:
        """Track this model from the next window on; neither is kept alive.

        Raises:
            Unavailable: there is no module at the path that `modules.root` names.
        """
        self._model = None if model is None else weakly(model)
        self._optimizers = [weakly(optimizer) for optimizer in optimizers]
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
        self._windows.append(
            Window(
                call=call,
                first_event=session.log.num_events,
                first_boundary=session.log.num_boundaries,
                alive=session.ledger.alive(),
                start_ns=time.perf_counter_ns(),
            )
        )

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
            "Give it to mb.record(optimizer=...), or call rec.attach(optimizer=...)."
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
                "Give it to mb.record(model=...), or call rec.attach(model).",
            )
        root = self._root(model)
        compiled = any(map(is_compiled, listed(model, "modules")))
        inputs = None
        if self._given is not None:
            inputs = [tensor for ref in self._given if (tensor := ref()) is not None]
            self._given = None
        optimizers = [o for ref in self._optimizers if (o := ref()) is not None]
        session = Session(root, optimizers, inputs)
        with ExitStack() as undo:
            undo.callback(session.stop)
            session.start()
            undo.pop_all()
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


def make_capture(
    session: Session, window: Window, *, estimate: str, error: BaseException | None
) -> Capture:
    """What happened in a window that ends now, `error` being what ended it."""
    call, log = window.call, session.log
    events = log.events[window.first_event * EVENT_WIDTH :]
    boundaries = log.boundaries[window.first_boundary * BOUNDARY_WIDTH :]
    num_alive = len(window.alive) // EVENT_WIDTH
    reasons = session.reasons()
    if error is not None:
        reasons.append(f"the call ended with {type(error).__name__}")
    incomplete = error is not None or session.failure is not None or log.num_dropped > 0
    device_types = [device.type for device in session.ledger.devices]
    device_type = next((kind for kind in device_types if kind != "cpu"), "cpu")
    return Capture(
        kind="modules",
        time_ns=now_ns(),
        step=call.step,
        phase=call.phase,
        function=call.function,
        iteration=call.iteration,
        meta={
            "backend": "fsdp2" if session.sharding.units else "plain",
            "world": world(session),
            "root": session.tree.root_name,
            "devices": [str(device) for device in session.ledger.devices],
            "device_type": device_type,
            "estimate": estimate,
            "incomplete": incomplete,
            "inputs": session.inputs,
            "optimizers": session.optimizers.num_optimizers,
            "torch": str(torch.__version__),
            "rounding_bytes": rounding_bytes(device_type),
            "num_events_dropped": log.num_dropped,
            "reasons": reasons,
        },
        tables={
            "modules": module_columns(session),
            "events": event_columns(window.alive, events, window.start_ns),
            "boundaries": boundary_columns(
                boundaries, window.start_ns, num_alive - window.first_event
            ),
        },
    )


def module_columns(session: Session) -> dict[str, Any]:
    """The `modules` table: the tree, and the bytes of each module's own parameters."""
    tree = session.tree
    sharded = {index for unit in session.sharding.units for index in unit.modules}
    params, buffers = session.own_bytes
    return {
        "fqn": tuple(tree.fqn(index) for index in range(len(tree))),
        "path": tuple(tree.paths),
        "type": tuple(type(module).__name__ for module in tree.modules),
        "parent": _integers(tree.parents),
        "is_fsdp": _integers([int(index in sharded) for index in range(len(tree))]),
        "param_bytes": _integers(params),
        "buffer_bytes": _integers(buffers),
    }


def world(session: Session) -> str:
    """How many ranks share the model, and how, in words.

    `shard 4`, `replicate 2 x shard 4`, or the number of ranks.
    """
    for unit in session.sharding.units:
        for group in unit.groups:
            info = getattr(group, "mesh_info", None)
            parts = [
                f"{word} {size}"
                for word in ("replicate", "shard")
                if (size := getattr(info, f"{word}_mesh_size", None)) is not None
            ]
            if parts:
                return " x ".join(parts)
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return str(torch.distributed.get_world_size())
    return "1"


def _integers(values: Sequence[int]) -> IntArray:
    return np.array(values, dtype=np.int64)
