"""Bytes that autograd saves in each collected call: captures and table `activations`.

The capture has them by module and dtype; the table has one row per call for the
Timeline, of the outermost call where several are under way.

Counted is the storage of each saved tensor, once, for the first module that saved it,
and without the storages of parameters, which are there anyway: also of those that FSDP
has just gathered. What a backward saves while it recomputes a forward is not counted: it
is used and freed at once. Beside it stands MemProfiler's number: the bytes of every saved
tensor that is no parameter itself, so that views of parameters, what is saved twice and
what is recomputed count.
"""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from memboard.collector.clock.process_clock import now_ns
from memboard.collector.config.values import resolve
from memboard.collector.core.calls import WHOLE_STEP, LaterTables
from memboard.collector.core.source import SourceInfo
from memboard.collector.format.columns import AXES, Column
from memboard.collector.format.memory import CATEGORIES
from memboard.collector.format.records import Capture
from memboard.collector.functions.forward_log import OUTSIDE
from memboard.collector.functions.saved_tensors import SavedTensors
from memboard.collector.functions.user_hooks import switch_off
from memboard.collector.hooks.saved_tensors import forget_ended

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from memboard.collector.config.sections import ActivationsConfig
    from memboard.collector.core.calls import Call, Results, Sink
    from memboard.collector.format.records import CaptureTable, IntArray
    from memboard.collector.functions.module_watch import ModuleWatch
    from memboard.collector.functions.saved_log import Tally

INFO: Final = SourceInfo(
    name="activations", cost="4 us per saved tensor in collected calls, nothing else"
)

TABLE: Final = "activations"

_ACTIVATION: Final = CATEGORIES.index("activation")

_ROW_BYTES: Final = 200
"""Of the tables, with the names that belong to it, about."""

_ENTRY_BYTES: Final = 300
"""Of a saved tensor, until it was added up."""

FUNCTIONS_KEY: Final = "activations.functions"

_COLUMNS: Final = (
    *AXES,
    Column(name="iteration", unit="index", group="progress"),
    Column(name="saved_bytes", unit="bytes", group="device", headline=True),
    Column(name="npp_compat_bytes", unit="bytes", group="device", headline=True),
)


class _OpenCall(msgspec.Struct, frozen=True, eq=False):
    """A call that is being counted, and where."""

    call: Call
    saved: SavedTensors
    tally: Tally


class ActivationsKind:
    """Counts saved tensors through collected calls."""

    info = INFO

    def __init__(
        self, config: ActivationsConfig, sink: Sink, watch: ModuleWatch
    ) -> None:
        """Raise ConfigError where a dotted name does not import."""
        self._sink = sink
        self._watch = watch
        functions = [resolve(code, FUNCTIONS_KEY) for code in config.functions]
        self._functions = (functions[0], functions[1]) if functions else None
        self._calls: list[_OpenCall] = []
        self._own = threading.local()
        """Each thread has a stack of saved-tensor hooks of its own."""
        self._error: BaseException | None = None

    def begin(self, call: Call) -> None:
        """Count this thread's saved tensors from now on."""
        if self._error is not None:
            self._raise_failure()
        self._watch.hold(self)
        saved: SavedTensors | None = getattr(self._own, "saved", None)
        if saved is None:
            saved = SavedTensors(self._watch, self._functions, self._failed)
            self._own.saved = saved
        try:  # no ExitStack: this is begun in every collected step
            self._calls.append(_OpenCall(call, saved, saved.start()))
        finally:
            if not self._calls:
                self._watch.leave(self)

    def end(self, call: Call, error: BaseException | None) -> None:
        for counted in self._calls:
            if counted.call is call:
                self._calls.remove(counted)
                stays = call.function == WHOLE_STEP  # the next one begins at once
                counted.saved.stop(counted.tally, stays=stays)
                if self._error is not None:
                    self._raise_failure()
                self._keep(counted, error)
                return

    def attach(self, model: Any, optimizers: Sequence[Any]) -> None:  # noqa: ARG002
        self._watch.attach(model)

    def release(self) -> None:
        """Leave this thread's stack and the modules; others leave when they next end."""
        for counted in self._calls.copy():
            self._calls.remove(counted)
            counted.saved.stop(counted.tally)
        saved: SavedTensors | None = getattr(self._own, "saved", None)
        if saved is not None:
            saved.release()
        forget_ended()  # a whole step's hooks stay on the stack of a thread that ends
        self._watch.leave(self)

    def close(self) -> None:
        """Release; nothing else is held."""
        self.release()

    def npp_compat_bytes(self) -> int | None:
        """MemProfiler's number on this thread; None where no call is counted here."""
        saved: SavedTensors | None = getattr(self._own, "saved", None)
        is_counted = saved is not None and not saved.is_idle()
        return self._watch.running.here.saved_bytes if is_counted else None

    def known_storages(self) -> Iterator[tuple[Any, int, str]]:
        """Storages that were saved in calls under way, and live: see `Windows`."""
        for saved in {
            id(counted.saved): counted.saved for counted in self._calls
        }.values():
            for storage, module in saved.living():
                path = self._watch.paths[module] if module >= 0 else ""
                yield storage, _ACTIVATION, f"saved by {path}" if path else "saved"

    # Behind these.

    def _failed(self, action: str, error: BaseException) -> None:
        if action == "counting":
            self._error = error
        elif self._functions is not None:
            pack = self._functions[0]
            self._functions = None
            switch_off(self._sink, FUNCTIONS_KEY, pack, error)

    def _raise_failure(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _keep(self, counted: _OpenCall, error: BaseException | None) -> None:
        tally, watch = counted.tally, self._watch
        size_bytes = _ROW_BYTES * (len(watch.paths) + 1)
        size_bytes += _ENTRY_BYTES * tally.num_waiting
        saved = counted.saved
        ended = _EndedCall(
            call=counted.call,
            tally=tally,
            paths=watch.paths,
            types=watch.types,
            size_bytes=size_bytes,
            time_ns=now_ns(),
            npp_compat_bytes=saved.here.saved_bytes - tally.npp_before_bytes,
            incomplete=error is not None,
            not_seen=watch.not_seen,
            is_outermost=saved.is_idle(),
        )
        self._sink.put_later(size_bytes, _write, ended)


class _EndedCall(msgspec.Struct, frozen=True):
    call: Call
    tally: Tally
    paths: Sequence[str]
    types: Sequence[str]
    size_bytes: int
    time_ns: int
    npp_compat_bytes: int
    incomplete: bool
    not_seen: str
    is_outermost: bool
    """No other call is around it on its thread."""


def _write(results: Results, ended: _EndedCall) -> None:
    """Put the capture and the row of a call, on the writer's thread."""
    call, tally = ended.call, ended.tally
    num_bytes = tally.saved_bytes()
    capture = Capture(
        kind="activations",
        time_ns=ended.time_ns,
        step=call.step,
        phase=call.phase,
        function=call.function,
        iteration=call.iteration,
        meta={
            "bytes": num_bytes,
            "npp_compat_bytes": ended.npp_compat_bytes,
            "incomplete": ended.incomplete,
            "not_seen": ended.not_seen,
        },
        tables=LaterTables(
            partial(_tables, tally, ended.paths, ended.types), ended.size_bytes
        ),
    )
    results.put_capture(capture)
    if ended.is_outermost:
        row = (
            ended.time_ns,
            call.step,
            call.iteration,
            num_bytes,
            ended.npp_compat_bytes,
        )
        results.put_row(TABLE, call.phase, _COLUMNS, row)


def _tables(
    tally: Tally, paths: Sequence[str], types: Sequence[str]
) -> Mapping[str, CaptureTable]:
    rows = tally.rows()
    used = sorted({module for module, _ in rows if module != OUTSIDE})
    place = {module: index for index, module in enumerate(used)}
    place[OUTSIDE] = OUTSIDE

    def numbers(values: Iterable[int]) -> IntArray:
        return np.array(list(values), dtype=np.int64)

    module_rows = rows.values()
    return {
        "modules": {
            "path": tuple(paths[module] for module in used),
            "type": tuple(types[module] for module in used),
        },
        "saved": {
            "module": numbers(place[module] for module, _ in rows),
            "dtype": tuple(str(dtype).removeprefix("torch.") for _, dtype in rows),
            "num_tensors": numbers(row.num_tensors for row in module_rows),
            "bytes": numbers(row.num_bytes for row in module_rows),
            "tensor_bytes": numbers(row.tensor_bytes for row in module_rows),
            "npp_compat_bytes": numbers(row.npp_compat_bytes for row in module_rows),
        },
    }
