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
import time
from threading import get_ident
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from collector.format.records import Capture
from collector.profiling.backward import watch_backward
from collector.profiling.forward_log import (
    FOLD_AT,
    NPP,
    ROOT,
    RSS,
    Columns,
    Entry,
    Found,
    RootValues,
)
from collector.profiling.later import LaterTables
from collector.profiling.user_hooks import Attributes, UserHooks, number_of
from collector.sources.contract import SourceInfo, Unavailable
from collector.sources.rss import open_sizes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from collector.config_sections import HooksConfig
    from collector.format.records import CaptureTable, FloatArray
    from collector.profiling.contract import Call, Sink
    from collector.profiling.module_watch import ModuleWatch
    from collector.profiling.saved_log import SavedLog

INFO: Final = SourceInfo(
    name="hooks", cost="10 us per module and forward in collected calls, nothing else"
)

_VALUE_BYTES: Final = 12
"""Of the tables, by module and attribute, names included, about."""


class _Hooked:
    """A call under way, and what the built-in hooks have found in it."""

    def __init__(self, call: Call, watch: ModuleWatch, log: SavedLog | None) -> None:
        found = Found(get_ident(), None if log is None else log.npp_compat_bytes)
        self.call = call
        self.paths = watch.paths
        self.types = watch.types
        self.entries: list[Entry] = []
        self.columns = Columns(len(watch.paths), found)
        self.root = RootValues(found)

    def add_outer(self, entry: Entry) -> None:
        """Take note of an entry of the root, or of one that nothing is around."""
        self.root.add(entry)
        if len(self.entries) >= FOLD_AT:  # a call that lasts long
            self.fold()

    def fold(self) -> None:
        """Add up what is kept."""
        entries, self.entries = self.entries, []
        self.columns.add(entries)


class HooksKind:
    """See the module."""

    info = INFO

    def __init__(
        self,
        config: HooksConfig,
        sink: Sink,
        watch: ModuleWatch,
        saved_log: Callable[[], SavedLog | None] | None = None,
    ) -> None:
        """`saved_log`: gives this thread's log of saved tensors, where there is one.

        Raises:
            ConfigError: a dotted name does not import.
        """
        self._sink = sink
        self._watch = watch
        self._attributes = Attributes()
        self._sizes = open_sizes() if config.rss else None
        self._read = None if self._sizes is None else self._sizes.read
        self._saved_log = saved_log or (lambda: None)
        self._logs: dict[int, SavedLog] = {}
        """By thread, of those on which a call has begun."""
        self._own_names = (
            *(RSS if config.rss else ()),
            *(() if saved_log is None else NPP),
        )
        self._saved_attrs = tuple(
            name for name in config.save_attrs if name not in self._own_names
        )
        self._calls: tuple[_Hooked, ...] = ()
        self._error: BaseException | None = None
        try:
            self._pre_forward = self._user("pre_forward", config.pre_forward)
            self._post_forward = self._user("post_forward", config.post_forward)
            self._pre_backward = self._user("pre_backward", config.pre_backward)
            self._post_backward = self._user("post_backward", config.post_backward)
            self._reset = self._user("reset", config.reset)
            self._has_pre_forward = bool(self._pre_forward)
            self._has_others = bool(
                self._post_forward or self._pre_backward or self._post_backward
            )
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
        if self._sizes is not None:
            self._sizes.sizes()  # or the program may have closed its descriptor
        self._watch.listen(self)
        if not self._watch.sees_any:
            if not self._calls:
                self._watch.leave(self)
            raise Unavailable(self._watch.not_seen, self._watch.remedy)
        self._calls += (self._hooked(call),)

    def end(self, call: Call, error: BaseException | None) -> None:
        """Keep what every module has, and reset."""
        self._raise_failure()
        for hooked in self._calls:
            if hooked.call == call:
                self._calls = tuple(
                    known for known in self._calls if known is not hooked
                )
                self._sink.put_capture(self._capture(hooked, error))
        if self._reset:
            for _, module in self._watch.modules():
                self._reset.run(module)

    def attach(self, model: Any, optimizers: Sequence[Any]) -> None:  # noqa: ARG002
        """Watch this model; of another one, calls under way begin anew."""
        self._watch.attach(model)
        self._calls = tuple(
            known if known.paths is self._watch.paths else self._hooked(known.call)
            for known in self._calls
        )

    def release(self) -> None:
        """Take the hooks off the modules, and what they left on them."""
        self._calls = ()
        self._logs = {}
        self._watch.leave(self)
        self._attributes.remove()

    def close(self) -> None:
        """Release, and give back the descriptor."""
        self.release()
        if self._sizes is not None:
            self._sizes.close()

    def root_values(self, call: Call) -> Mapping[str, float | None]:
        """What the root has now, by attribute; empty where the call is not hooked."""
        found = [hooked for hooked in self._calls if hooked.call == call]
        if not found:
            return {}
        root = self._watch.module(ROOT) if self._watch.paths else None
        own = {name: found[0].root.value(name) for name in self._own_names}
        return {**own, **{name: number_of(root, name) for name in self._saved_attrs}}

    def _raise_failure(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error

    # As a listener.

    def before_forward(self, index: int, module: Any, args: Any, depth: int) -> None:
        """See `Listener`."""
        calls = self._calls
        if not calls:
            return
        if self._has_pre_forward:
            self._pre_forward.run(module, args)
        # Written out on both sides: a call of Python's would cost as much again.
        thread = get_ident()
        log = self._logs.get(thread)
        saved = None if log is None else log.npp_compat_bytes
        reading = None if self._read is None else self._read()
        entry = (index, False, depth, thread, reading, saved)
        for hooked in calls:
            hooked.entries.append(entry)
            if depth == 1 or index == ROOT:
                hooked.add_outer(entry)

    def after_forward(
        self, index: int, module: Any, inputs: Any, outputs: Any, depth: int
    ) -> None:
        """See `Listener`."""
        calls = self._calls
        if not calls:
            return
        reading = None if self._read is None else self._read()
        thread = get_ident()
        log = self._logs.get(thread)
        saved = None if log is None else log.npp_compat_bytes
        entry = (index, True, depth, thread, reading, saved)
        for hooked in calls:
            hooked.entries.append(entry)
            if depth == 1 or index == ROOT:
                hooked.add_outer(entry)
        if self._has_others:
            if self._post_forward:
                self._post_forward.run(module, inputs[0], outputs)
            if self._pre_backward or self._post_backward:
                watch_backward(module, inputs, outputs, self._before, self._after)

    def failed(self, error: BaseException) -> None:
        """See `Listener`: told when the kind is asked next."""
        self._error = error

    def _hooked(self, call: Call) -> _Hooked:
        log = self._saved_log()
        if log is not None:
            self._logs[get_ident()] = log
        return _Hooked(call, self._watch, log)

    def _before(self, module: Any, grad_outputs: Any) -> None:
        if self._calls:
            self._pre_backward.run(module, grad_outputs)

    def _after(self, module: Any, grad_inputs: Any, grad_outputs: Any) -> None:
        if self._calls:
            self._post_backward.run(module, grad_inputs, grad_outputs)

    # What is found.

    def _capture(self, hooked: _Hooked, error: BaseException | None) -> Capture:
        call, paths, types = hooked.call, hooked.paths, hooked.types
        own_names, left = self._own_names, self._left_on_modules()

        def tables() -> Mapping[str, CaptureTable]:
            hooked.fold()
            own = {name: np.array(hooked.columns.column(name)) for name in own_names}
            index = np.arange(len(paths), dtype=np.int64)
            return {
                "modules": {"path": paths, "type": types},
                "values": {"module": index, **own, **left},
            }

        num_columns = 3 + len(own_names) + len(left)
        return Capture(
            kind="hooks",
            time_ns=time.time_ns(),
            step=call.step,
            phase=call.phase,
            function=call.function,
            iteration=call.iteration,
            meta={"incomplete": error is not None, "not_seen": self._watch.not_seen},
            tables=LaterTables(tables, _VALUE_BYTES * num_columns * len(paths)),
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
