"""Figures of every module around its forwards in collected calls: captures `hooks`.

Built in: resident memory before and after each module's forward and the difference
(`rss_pre_forward`, `rss_post_forward`, `rss_diff`), and where activations are counted,
MemProfiler's count of saved bytes (`npp_pre_forward`, `npp_post_forward`, `npp_diff`).
A difference of memory adds up over a module's forwards in one call. The user's own hooks
set attributes on modules; those named in `save_attrs` are kept beside the others.

Modules that did not run have no values, and absence is not zero. Where the root itself
did not run (a trainer calls what is inside it), the root's built-in values are those of
the outermost modules that did: the first one's before, the last one's after.

While training runs, each side of a forward is one entry of a `ForwardLog`.
"""

from __future__ import annotations

import math
from contextlib import ExitStack
from functools import partial
from threading import RLock
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from memboard.collector.clock.process_clock import now_ns
from memboard.collector.core.calls import LaterTables
from memboard.collector.core.source import SourceInfo, Unavailable
from memboard.collector.format.memory import NPP_ATTRS, RSS_ATTRS
from memboard.collector.format.records import Capture
from memboard.collector.functions.forward_log import (
    ROOT,
    ForwardColumns,
    ForwardLog,
    ForwardValues,
    root_values,
)
from memboard.collector.functions.user_hooks import (
    Attributes,
    ResetHooks,
    UserHooks,
    number_of,
)
from memboard.collector.sources.host.rss import BOUNDARY

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from memboard.collector.config.sections import HooksConfig
    from memboard.collector.core.calls import Call, Results, Sink
    from memboard.collector.format.records import CaptureTable, FloatArray
    from memboard.collector.functions.forward_log import Entry
    from memboard.collector.functions.module_watch import ModuleWatch
    from memboard.collector.sources.host.rss import PsutilSource, StatmSource

INFO: Final = SourceInfo(
    name="hooks", cost="10 us per module and forward in collected calls, nothing else"
)

_VALUE_BYTES: Final = 12
"""Of the tables, by module and attribute, names included, about."""

_ENTRY_BYTES: Final = 30
"""Of each value in the log, until it was added up."""


class HooksKind:
    """Watches every module through collected calls."""

    info = INFO

    def __init__(
        self,
        config: HooksConfig,
        sink: Sink,
        sizes: StatmSource | PsutilSource,
        watch: ModuleWatch,
        saved_bytes: Callable[[], int | None] | None = None,
    ) -> None:
        """`saved_bytes`: MemProfiler's count on this thread, where it is counted now.

        Raises:
            ConfigError: a dotted name does not import.
        """
        self._sink = sink
        self._watch = watch
        self._attributes = Attributes()
        self._sizes = sizes
        self._saved_bytes = saved_bytes or (lambda: None)
        self._log: ForwardLog | None = None
        """While calls are under way."""
        # Reentrant: a hook of the user's may call a profiled function.
        self._lock = RLock()
        self._own_names = (*RSS_ATTRS, *(() if saved_bytes is None else NPP_ATTRS))
        self._saved_attrs = tuple(
            name for name in config.save_attrs if name not in self._own_names
        )
        self._calls: tuple[_HookedCall, ...] = ()
        self._error: BaseException | None = None
        with ExitStack() as undo:
            undo.callback(self.close)
            self._pre_forward, self._post_forward = (
                UserHooks(f"hooks.{name}", codes, self._attributes, sink)
                for name, codes in (
                    ("pre_forward", config.pre_forward),
                    ("post_forward", config.post_forward),
                )
            )
            self._reset = ResetHooks(
                config.reset, self._saved_attrs, self._attributes, sink
            )
            undo.pop_all()
        self._resets = bool(config.reset)
        self._is_first_call = True
        """Of a model that hooks are put on."""

    def begin(self, call: Call) -> None:
        """Watch every module from now on.

        Raises:
            Unavailable: no module can be seen.
        """
        if self._error is not None:
            self._raise_failure()
        if BOUNDARY.sizes is None:  # the program may have closed its descriptor
            self._sizes.sizes()
        self._watch.hold(self)
        if not self._watch.sees_any:
            if not self._calls:
                self._watch.leave(self)
            raise Unavailable(self._watch.not_seen, self._watch.remedy)
        if self._is_first_call:
            self._is_first_call = False
            if self._pre_forward:
                self._watch.before = self._before_forward
            if self._post_forward:
                self._watch.after = self._after_forward
            model = self._watch.module(ROOT)
            if model is not None:
                self._reset.before_first_call(model)
        with self._lock:
            if self._log is None:
                self._log = ForwardLog(self._sizes.reader(), self._fold, self._failed)
                self._watch.log = self._log
            self._calls += (self._hooked(call, self._log),)

    def end(self, call: Call, error: BaseException | None) -> None:
        """Keep what every module has, and reset."""
        if self._error is not None:
            self._raise_failure()
        for hooked in self._calls:
            if hooked.call is call:
                entries = self._taken(hooked)
                left = self._left_on_modules() if self._saved_attrs else {}
                num_columns = 3 + len(self._own_names) + len(left)
                size_bytes = _VALUE_BYTES * num_columns * len(hooked.paths)
                size_bytes += _ENTRY_BYTES * len(entries)
                meta = {
                    "incomplete": error is not None,
                    "not_seen": self._watch.not_seen,
                }
                tables = (hooked, entries, self._own_names, left)
                self._sink.put_later(
                    size_bytes, _write, size_bytes, call, now_ns(), meta, tables
                )
        if self._resets:
            model = self._watch.module(ROOT) if self._watch.paths else None
            if model is not None:
                self._reset.after_call(model, self._watch.modules())

    def attach(self, model: Any, optimizers: Sequence[Any]) -> None:  # noqa: ARG002
        """Watch this model; of another one, calls under way begin anew."""
        paths_before = self._watch.paths
        self._watch.attach(model)
        paths = self._watch.paths
        self._is_first_call |= paths is not paths_before
        with self._lock:
            log = self._log
            if log is not None:
                self._calls = tuple(
                    call if call.paths is paths else self._hooked(call.call, log)
                    for call in self._calls
                )

    def release(self) -> None:
        """Take the hooks off the modules, and what they left on them."""
        with self._lock:
            self._calls = ()
            self._stop_log()
        self._is_first_call = True
        self._watch.before = self._watch.after = None
        self._watch.leave(self)
        self._attributes.remove()

    def close(self) -> None:
        """Release; nothing else is held."""
        self.release()

    def root_values(self, call: Call) -> Callable[[], Mapping[str, float | None]]:
        """What the root has now, by attribute; empty where the call is not hooked.

        What the built-in hooks have found is looked at when that is called.
        """
        for hooked in self._calls:
            if hooked.call is call:
                break
        else:
            return dict
        with self._lock:
            outer = hooked.outer([] if self._log is None else self._log.outer)
        left: dict[str, float | None] = {}
        if self._saved_attrs:
            root = self._watch.module(ROOT) if self._watch.paths else None
            left = {
                attribute: number_of(root, attribute) for attribute in self._saved_attrs
            }
        return partial(root_values, hooked.values, outer, self._own_names, left)

    # The log of forwards.

    def _hooked(self, call: Call, log: ForwardLog) -> _HookedCall:
        return _HookedCall(call, self._watch, log, self._saved_bytes())

    def _taken(self, hooked: _HookedCall) -> list[Any]:
        """What the log has of a call that ends."""
        with self._lock:
            log = self._log
            if self._calls == (hooked,):
                self._calls = ()
                self._stop_log()
            else:
                self._calls = tuple(call for call in self._calls if call is not hooked)
            if log is None:
                return []
            # Nobody else's: no entry is touched once more.
            whole = not hooked.first and not self._calls
            return log.entries if whole else log.entries[hooked.first :]

    def _stop_log(self) -> None:
        if self._watch.log is self._log:
            self._watch.log = None
        self._log = None

    def _fold(self) -> None:
        with self._lock:
            log = self._log
            if log is not None:
                # Other threads go on adding theirs.
                entries, outer = log.entries.copy(), log.outer.copy()
                for hooked in self._calls:
                    hooked.fold(entries, outer)
                del log.entries[: len(entries)], log.outer[: len(outer)]

    def _failed(self, error: BaseException) -> None:
        self._error = error

    def _raise_failure(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error

    # The user's own hooks.

    def _before_forward(self, module: Any, args: Any) -> None:
        if self._calls:
            self._pre_forward.run(module, args)

    def _after_forward(self, module: Any, args: Any, outputs: Any) -> None:
        if self._calls:
            self._post_forward.run(module, args, outputs)

    def _left_on_modules(self) -> dict[str, FloatArray]:
        """What they have left on each module, by attribute."""
        columns = {}
        for attribute in self._saved_attrs:
            column = np.full(len(self._watch.paths), math.nan)
            for index, module in self._watch.modules():
                number = number_of(module, attribute)
                column[index] = math.nan if number is None else number
            columns[attribute] = column
        return columns


class _HookedCall:
    """A call under way, and what the built-in hooks have found in it.

    Of the log's entries those from `first` on are its own, of the outer ones those from
    `_first_outer` on.
    """

    def __init__(
        self, call: Call, watch: ModuleWatch, log: ForwardLog, saved_bytes: int | None
    ) -> None:
        self.call = call
        self.paths = watch.paths
        self.types = watch.types
        self.values = ForwardValues(watch.running.here, saved_bytes)
        self.first = len(log.entries)
        self._first_outer = len(log.outer)
        self._outer: list[Entry] = []
        """Those that left the log."""
        self._columns: ForwardColumns | None = None

    def outer(self, outer: list[Entry]) -> list[Entry]:
        """Its outer entries so far."""
        return self._outer + outer[self._first_outer :]

    def fold(self, entries: list[Any], outer: list[Entry]) -> None:
        """Add these up; then they leave the log."""
        self._outer = self.outer(outer)
        self.columns(entries[self.first :])
        self.first = self._first_outer = 0

    def columns(self, entries: list[Any]) -> ForwardColumns:
        """All of them, with these, which were not added up yet."""
        if self._columns is None:
            self._columns = ForwardColumns(len(self.paths), self.values)
        self._columns.add(entries)
        return self._columns


def _write(
    results: Results,
    size_bytes: int,
    call: Call,
    now: int,
    meta: dict[str, Any],
    findings: tuple[_HookedCall, list[Any], Sequence[str], Mapping[str, FloatArray]],
) -> None:
    """Put the capture of a call that has ended, on the writer's thread."""
    capture = Capture(
        kind="hooks",
        time_ns=now,
        step=call.step,
        phase=call.phase,
        function=call.function,
        iteration=call.iteration,
        meta=meta,
        tables=LaterTables(partial(_tables, *findings), size_bytes),
    )
    results.put_capture(capture)


def _tables(
    hooked: _HookedCall,
    entries: list[Any],
    own_names: Sequence[str],
    left: Mapping[str, FloatArray],
) -> Mapping[str, CaptureTable]:
    columns = hooked.columns(entries)
    own = {attribute: np.array(columns.column(attribute)) for attribute in own_names}
    index = np.arange(len(hooked.paths), dtype=np.int64)
    return {
        "modules": {"path": hooked.paths, "type": hooked.types},
        "values": {"module": index, **own, **left},
    }
