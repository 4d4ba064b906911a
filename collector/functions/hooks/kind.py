"""What hooks say of every module through each collected call: captures `hooks`.

Built in: resident memory before and after each module's forward and the difference
(`rss_pre_forward`, `rss_post_forward`, `rss_diff`), and where activations are counted,
MemProfiler's count of saved bytes (`npp_pre_forward`, `npp_post_forward`, `npp_diff`).
A difference of memory adds up over a module's forwards in one call. The user's own hooks
set attributes on modules; those named in `save_attrs` are kept beside the others.

Modules that did not run have no values, and absence is not zero. Where the root itself
did not run (a trainer calls what is inside it), the root's built-in values are those of
the outermost modules that did: the first one's before, the last one's after.
"""

from __future__ import annotations

import math
from functools import partial
from threading import RLock
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from collector.clock.process_clock import now_ns
from collector.format.records import Capture
from collector.functions.hooks.forward_log import (
    NPP,
    ROOT,
    RSS,
    Columns,
    ForwardLog,
    Found,
    RootValues,
    root_value,
)
from collector.functions.later import LaterNumber, LaterTables
from collector.functions.user_hooks import Attributes, UserHooks, number_of
from collector.sources.contract import SourceInfo, Unavailable
from collector.sources.host.rss import open_sizes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from collector.config.sections import HooksConfig
    from collector.format.records import CaptureTable, FloatArray
    from collector.functions.contract import Call, Sink
    from collector.functions.hooks.forward_log import Entry
    from collector.functions.hooks.module_watch import ModuleWatch

INFO: Final = SourceInfo(
    name="hooks", cost="10 us per module and forward in collected calls, nothing else"
)

_VALUE_BYTES: Final = 12
"""Of the tables, by module and attribute, names included, about."""

_ENTRY_BYTES: Final = 30
"""Of each value in the log, until it was added up."""


class _Hooked:
    """A call under way, and what the built-in hooks have found in it.

    Of the log's entries those from `first` on are its own, of the outer ones those from
    `first_outer` on.
    """

    __slots__ = (
        "_columns",
        "_found",
        "_root",
        "call",
        "first",
        "first_outer",
        "paths",
        "types",
    )

    def __init__(
        self, call: Call, watch: ModuleWatch, log: ForwardLog, saved_bytes: int | None
    ) -> None:
        self.call = call
        self.paths = watch.paths
        self.types = watch.types
        self._found = Found(watch.running.here, saved_bytes)
        self.first = len(log.entries)
        self.first_outer = len(log.outer)
        self._columns: Columns | None = None
        self._root: RootValues | None = None

    def root(self, outer: list[Entry]) -> Callable[[str], float | None] | None:
        """What gives the root's values so far, by name; None where nothing ran."""
        own = outer[self.first_outer :]
        if self._root is None:
            return partial(root_value, self._found, own) if own else None
        self._root.add(own)
        self.first_outer += len(own)
        return self._root.value

    def fold(self, entries: list[Any], outer: list[Entry]) -> None:
        """Add these up; then they leave the log."""
        self._root = self._root or RootValues(self._found)
        self.root(outer)
        self.columns(entries[self.first :])
        self.first = self.first_outer = 0

    def columns(self, entries: list[Any]) -> Columns:
        """All of them, with these, which were not added up yet."""
        if self._columns is None:
            self._columns = Columns(len(self.paths), self._found)
        self._columns.add(entries)
        return self._columns


class HooksKind:
    """See the module."""

    info = INFO

    def __init__(
        self,
        config: HooksConfig,
        sink: Sink,
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
        self._sizes = open_sizes()
        self._saved_bytes = saved_bytes or (lambda: None)
        self._log: ForwardLog | None = None
        """While calls are under way."""
        # Reentrant: a hook of the user's may call a profiled function.
        self._lock = RLock()
        self._own_names = (*RSS, *(() if saved_bytes is None else NPP))
        self._saved_attrs = tuple(
            name for name in config.save_attrs if name not in self._own_names
        )
        self._calls: tuple[_Hooked, ...] = ()
        self._error: BaseException | None = None
        try:
            self._pre_forward = self._user("pre_forward", config.pre_forward)
            self._post_forward = self._user("post_forward", config.post_forward)
            self._reset = self._user("reset", config.reset)
        except BaseException:
            self.close()
            raise

    def _user(self, name: str, codes: Any) -> UserHooks:
        return UserHooks(f"hooks.{name}", codes, self._attributes, self._sink)

    # As a kind.

    def begin(self, call: Call) -> None:
        """Watch every module from now on.

        Raises:
            Unavailable: no module can be seen.
        """
        self._raise_failure()
        self._sizes.sizes()  # or the program may have closed its descriptor
        self._watch.hold(self)
        if not self._watch.sees_any:
            if not self._calls:
                self._watch.leave(self)
            raise Unavailable(self._watch.not_seen, self._watch.remedy)
        if self._pre_forward or self._post_forward:
            self._watch.listen(self)
        with self._lock:
            if self._log is None:
                self._log = ForwardLog(self._sizes.reader(), self._fold, self.failed)
                self._watch.log = self._log
            self._calls += (self._hooked(call, self._log),)

    def end(self, call: Call, error: BaseException | None) -> None:
        """Keep what every module has, and reset."""
        self._raise_failure()
        for hooked in self._calls:
            if hooked.call is call:
                self._sink.put_capture(
                    self._capture(hooked, self._taken(hooked), error)
                )
        if self._reset:
            for _, module in self._watch.modules():
                self._reset.run(module)

    def _taken(self, hooked: _Hooked) -> list[Any]:
        """What the log has of a call that ends."""
        with self._lock:
            log = self._log
            self._calls = tuple(known for known in self._calls if known is not hooked)
            if not self._calls:
                self._stop_log()
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

    def attach(self, model: Any, optimizers: Sequence[Any]) -> None:  # noqa: ARG002
        """Watch this model; of another one, calls under way begin anew."""
        self._watch.attach(model)
        paths = self._watch.paths
        with self._lock:
            log = self._log
            if log is not None:
                self._calls = tuple(
                    known if known.paths is paths else self._hooked(known.call, log)
                    for known in self._calls
                )

    def release(self) -> None:
        """Take the hooks off the modules, and what they left on them."""
        with self._lock:
            self._calls = ()
            self._stop_log()
        self._watch.leave(self)
        self._attributes.remove()

    def close(self) -> None:
        """Release, and give back the descriptor."""
        self.release()
        self._sizes.close()

    def root_values(self, call: Call) -> Mapping[str, float | LaterNumber | None]:
        """What the root has now, by attribute; empty where the call is not hooked.

        What the built-in hooks have found is looked at when it is asked for.
        """
        found = [hooked for hooked in self._calls if hooked.call is call]
        if not found:
            return {}
        with self._lock:
            value = found[0].root([] if self._log is None else self._log.outer)
        own: dict[str, float | LaterNumber | None] = dict.fromkeys(self._own_names)
        if value is not None:
            own = {name: LaterNumber(value, name) for name in own}
        if not self._saved_attrs:
            return own
        root = self._watch.module(ROOT) if self._watch.paths else None
        return {**own, **{name: number_of(root, name) for name in self._saved_attrs}}

    def _raise_failure(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error

    # As a listener, where the user has hooks of their own.

    def before_forward(self, index: int, module: Any, args: Any, depth: int) -> None:  # noqa: ARG002
        """See `Listener`."""
        if self._calls and self._pre_forward:
            self._pre_forward.run(module, args)

    def after_forward(
        self,
        index: int,  # noqa: ARG002
        module: Any,
        inputs: Any,
        outputs: Any,
        depth: int,  # noqa: ARG002
    ) -> None:
        """See `Listener`."""
        if self._calls and self._post_forward:
            self._post_forward.run(module, inputs[0], outputs)

    def failed(self, error: BaseException) -> None:
        """See `Listener`: told when the kind is asked next."""
        self._error = error

    def _hooked(self, call: Call, log: ForwardLog) -> _Hooked:
        return _Hooked(call, self._watch, log, self._saved_bytes())

    # What is found.

    def _capture(
        self, hooked: _Hooked, entries: list[Any], error: BaseException | None
    ) -> Capture:
        call, paths, types = hooked.call, hooked.paths, hooked.types
        own_names, left = self._own_names, self._left_on_modules()

        def tables() -> Mapping[str, CaptureTable]:
            columns = hooked.columns(entries)
            own = {name: np.array(columns.column(name)) for name in own_names}
            index = np.arange(len(paths), dtype=np.int64)
            return {
                "modules": {"path": paths, "type": types},
                "values": {"module": index, **own, **left},
            }

        num_columns = 3 + len(own_names) + len(left)
        size_bytes = _VALUE_BYTES * num_columns * len(paths)
        size_bytes += _ENTRY_BYTES * len(entries)
        return Capture(
            kind="hooks",
            time_ns=now_ns(),
            step=call.step,
            phase=call.phase,
            function=call.function,
            iteration=call.iteration,
            meta={"incomplete": error is not None, "not_seen": self._watch.not_seen},
            tables=LaterTables(tables, size_bytes),
        )

    def _left_on_modules(self) -> dict[str, FloatArray]:
        """What the user's hooks have left on each module, by attribute."""
        columns = {}
        for name in self._saved_attrs:
            column = np.full(len(self._watch.paths), math.nan)
            for index, module in self._watch.modules():
                number = number_of(module, name)
                column[index] = math.nan if number is None else number
            columns[name] = column
        return columns
