"""Bytes that autograd saves in each collected call: captures and table `activations`.

The capture has them by module and dtype; the table has one row per call for the
Timeline, of the outermost call where several are under way.
"""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from collector.config_code import resolve
from collector.format.columns import AXES, Column
from collector.format.records import Capture
from collector.profiling.later import LaterTables
from collector.profiling.module_watch import OUTSIDE
from collector.profiling.saved_tensors import SavedTensors
from collector.profiling.user_hooks import switch_off
from collector.sources.contract import SourceInfo

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from collector.config_sections import ActivationsConfig
    from collector.format.records import CaptureTable, IntArray
    from collector.profiling.contract import Call, Sink
    from collector.profiling.module_watch import ModuleWatch
    from collector.profiling.saved_log import SavedLog, Tally

INFO: Final = SourceInfo(
    name="activations", cost="4 us per saved tensor in collected calls, nothing else"
)

TABLE: Final = "activations"

_ROW_BYTES: Final = 200
"""Of the tables, with the names that belong to it, about."""

FUNCTIONS_KEY: Final = "activations.functions"

_COLUMNS: Final = (
    *AXES,
    Column(name="iteration", unit="index", group="progress"),
    Column(name="saved_bytes", unit="bytes", group="device", headline=True),
    Column(name="npp_compat_bytes", unit="bytes", group="device", headline=True),
)


class _Counted:
    """A call that is being counted, and where."""

    def __init__(self, call: Call, saved: SavedTensors) -> None:
        self.call = call
        self.saved = saved
        self.tally = saved.start()

    def npp_compat_bytes(self) -> int:
        """MemProfiler's number so far."""
        return self.saved.npp_compat_bytes(self.tally)


class ActivationsKind:
    """See the module."""

    info = INFO

    def __init__(
        self, config: ActivationsConfig, sink: Sink, watch: ModuleWatch
    ) -> None:
        """Raise ConfigError where a dotted name does not import."""
        self._sink = sink
        self._watch = watch
        functions = [resolve(code, FUNCTIONS_KEY) for code in config.functions]
        self._functions = (functions[0], functions[1]) if functions else None
        self._calls: list[_Counted] = []
        self._own = threading.local()
        """Each thread has a stack of saved-tensor hooks of its own."""
        self._error: BaseException | None = None

    def begin(self, call: Call) -> None:
        """Count this thread's saved tensors from now on."""
        self._raise_failure()
        self._watch.hold(self)
        saved: SavedTensors | None = getattr(self._own, "saved", None)
        if saved is None:
            saved = SavedTensors(self._watch, self._functions, self._failed)
            self._own.saved = saved
        try:
            counted = _Counted(call, saved)
        except BaseException:
            if not self._calls:
                self._watch.leave(self)
            raise
        self._calls.append(counted)

    def end(self, call: Call, error: BaseException | None) -> None:
        """Keep what was counted."""
        for counted in self._calls:
            if counted.call == call:
                self._calls.remove(counted)
                saved_bytes = counted.saved.stop(counted.tally)
                self._raise_failure()
                self._keep(counted, saved_bytes, error)
                return

    def attach(self, model: Any, optimizers: Sequence[Any]) -> None:  # noqa: ARG002
        """Watch this model's modules."""
        self._watch.attach(model)

    def release(self) -> None:
        """Leave this thread's stack and the modules; others leave when they next end."""
        for counted in self._calls.copy():
            self._calls.remove(counted)
            counted.saved.stop(counted.tally)
        saved: SavedTensors | None = getattr(self._own, "saved", None)
        if saved is not None:
            saved.forget()
        self._watch.leave(self)

    def close(self) -> None:
        """Release; nothing else is held."""
        self.release()

    def saved_log(self) -> SavedLog | None:
        """The log of this thread, while a call is counted here."""
        saved: SavedTensors | None = getattr(self._own, "saved", None)
        return None if saved is None or saved.is_idle() else saved.log

    # Behind these.

    def _failed(self, what: str, error: BaseException) -> None:
        if what == "counting":
            self._error = error
        elif self._functions is not None:
            pack = self._functions[0]
            self._functions = None
            switch_off(self._sink, FUNCTIONS_KEY, pack, error)

    def _raise_failure(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _keep(
        self, counted: _Counted, saved_bytes: int, error: BaseException | None
    ) -> None:
        call, paths = counted.call, self._watch.paths
        now = time.time_ns()
        npp_compat_bytes = counted.npp_compat_bytes()
        meta = {
            "bytes": saved_bytes,
            "npp_compat_bytes": npp_compat_bytes,
            "incomplete": error is not None,
            "not_seen": self._watch.not_seen,
        }
        capture = Capture(
            kind="activations",
            time_ns=now,
            step=call.step,
            phase=call.phase,
            function=call.function,
            iteration=call.iteration,
            meta=meta,
            tables=LaterTables(
                partial(_tables, counted.tally, paths, self._watch.types),
                _ROW_BYTES * (len(paths) + 1),
            ),
        )
        self._sink.put_capture(capture)
        if counted.saved.is_idle():  # no other call is around this one
            row = (now, call.step, call.iteration, saved_bytes, npp_compat_bytes)
            self._sink.put_row(TABLE, call.phase, _COLUMNS, row)


def _tables(
    tally: Tally, paths: Sequence[str], types: Sequence[str]
) -> Mapping[str, CaptureTable]:
    rows = tally.rows()
    used = sorted({module for module, _ in rows if module != OUTSIDE})
    place = {module: index for index, module in enumerate(used)}
    place[OUTSIDE] = OUTSIDE

    def numbers(values: Iterable[int]) -> IntArray:
        return np.array(list(values), dtype=np.int64)

    found = rows.values()
    return {
        "modules": {
            "path": tuple(paths[module] for module in used),
            "type": tuple(types[module] for module in used),
        },
        "saved": {
            "module": numbers(place[module] for module, _ in rows),
            "dtype": tuple(str(dtype).removeprefix("torch.") for _, dtype in rows),
            "num_tensors": numbers(row.num_tensors for row in found),
            "bytes": numbers(row.num_bytes for row in found),
            "tensor_bytes": numbers(row.tensor_bytes for row in found),
            "npp_compat_bytes": numbers(row.npp_compat_bytes for row in found),
        },
    }
