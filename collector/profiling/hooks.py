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
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from collector.format.records import Capture
from collector.profiling.backward import watch_backward
from collector.profiling.user_hooks import Attributes, UserHooks, number_of
from collector.sources.contract import SourceInfo
from collector.sources.rss import open_sizes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from collector.config_sections import HooksConfig
    from collector.profiling.contract import Call, Sink
    from collector.profiling.module_watch import ModuleWatch

    SavedBytes = Callable[[Call], int | None]

INFO: Final = SourceInfo(
    name="hooks", cost="10 us per module and forward in collected calls, nothing else"
)

RSS: Final = ("rss_pre_forward", "rss_post_forward", "rss_diff")
NPP: Final = ("npp_pre_forward", "npp_post_forward", "npp_diff")

_ROOT: Final = 0


class _Values:
    """What the built-in hooks have found in one call: a column per attribute."""

    def __init__(self, call: Call, names: Sequence[str], num_modules: int) -> None:
        self.call = call
        self.columns = {name: [math.nan] * num_modules for name in names}
        self.outermost = dict.fromkeys(names, math.nan)
        """Over the modules that no other one was around."""

    def before(self, index: int, names: Sequence[str], now: float, depth: int) -> None:
        """A module begins; `names`: before, after, difference."""
        self.columns[names[0]][index] = now
        if depth == 1 and math.isnan(self.outermost[names[0]]):
            self.outermost[names[0]] = now

    def after(self, index: int, names: Sequence[str], now: float, depth: int) -> None:
        """It has ended."""
        columns = self.columns
        change = now - columns[names[0]][index]
        columns[names[1]][index] = now
        known = columns[names[2]][index]
        adds_up = names is RSS and not math.isnan(known)
        columns[names[2]][index] = known + change if adds_up else change
        if depth == 1:
            self.outermost[names[1]] = now
            self.outermost[names[2]] = now - self.outermost[names[0]]

    def of_root(self, name: str) -> float | None:
        """The root's value, or the outermost modules'."""
        column = self.columns[name]
        value = column[_ROOT] if column else math.nan
        value = self.outermost[name] if math.isnan(value) else value
        return None if math.isnan(value) else value


class HooksKind:
    """See the module."""

    info = INFO

    def __init__(
        self,
        config: HooksConfig,
        sink: Sink,
        watch: ModuleWatch,
        saved_bytes: SavedBytes | None = None,
    ) -> None:
        """`saved_bytes`: MemProfiler's count so far in a call, where it is counted.

        Raises:
            ConfigError: a dotted name does not import.
        """
        self._sink = sink
        self._watch = watch
        self._attributes = Attributes()
        self._sizes = open_sizes() if config.rss else None
        self._saved_bytes = saved_bytes
        self._own_names = (
            *(RSS if config.rss else ()),
            *(() if saved_bytes is None else NPP),
        )
        self._saved_attrs = tuple(
            name for name in config.save_attrs if name not in self._own_names
        )
        self._calls: tuple[_Values, ...] = ()
        self._error: BaseException | None = None
        try:
            self._pre_forward = self._user("pre_forward", config.pre_forward)
            self._post_forward = self._user("post_forward", config.post_forward)
            self._pre_backward = self._user("pre_backward", config.pre_backward)
            self._post_backward = self._user("post_backward", config.post_backward)
            self._reset = self._user("reset", config.reset)
        except BaseException:
            self.close()
            raise

    def _user(self, name: str, codes: Any) -> UserHooks:
        return UserHooks(f"hooks.{name}", codes, self._attributes, self._sink)

    # As a kind.

    def begin(self, call: Call) -> None:
        """Watch every module from now on."""
        self._raise_failure()
        self._watch.listen(self)
        num_modules = len(self._watch.paths)
        self._calls += (_Values(call, self._own_names, num_modules),)

    def end(self, call: Call, error: BaseException | None) -> None:
        """Keep what every module has, and reset."""
        self._raise_failure()
        for values in self._calls:
            if values.call == call:
                self._calls = tuple(v for v in self._calls if v is not values)
                if self._watch.paths:
                    self._sink.put_capture(self._capture(values, error))
        if self._reset:
            for _, module in self._watch.modules():
                self._reset.run(module)

    def attach(self, model: Any, optimizers: Sequence[Any]) -> None:  # noqa: ARG002
        """Watch this model; values of calls under way begin anew."""
        self._watch.attach(model)
        for values in self._calls:
            num_modules = len(self._watch.paths)
            values.columns = {name: [math.nan] * num_modules for name in values.columns}

    def release(self) -> None:
        """Take the hooks off the modules, and what they left on them."""
        self._calls = ()
        self._watch.leave(self)
        self._attributes.remove()

    def close(self) -> None:
        """Release, and give back the descriptor."""
        self.release()
        if self._sizes is not None:
            self._sizes.close()

    def root_values(self, call: Call) -> Mapping[str, float | None]:
        """What the root has now, by attribute; empty where the call is not hooked."""
        found = [values for values in self._calls if values.call == call]
        if not found:
            return {}
        root = self._watch.module(_ROOT) if self._watch.paths else None
        own = {name: found[0].of_root(name) for name in self._own_names}
        return {**own, **{name: number_of(root, name) for name in self._saved_attrs}}

    def _raise_failure(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error

    # As a listener.

    def before_forward(self, index: int, module: Any, inputs: Any, depth: int) -> None:
        """See `Listener`."""
        calls = self._calls
        if not calls:
            return
        if self._pre_forward:
            self._pre_forward.run(module, inputs[0])
        resident = None if self._sizes is None else self._sizes.sizes()[0]
        for values in calls:
            if resident is not None:
                values.before(index, RSS, resident, depth)
            saved = self._saved(values.call)
            if saved is not None:
                values.before(index, NPP, saved, depth)

    def after_forward(
        self, index: int, module: Any, inputs: Any, outputs: Any, depth: int
    ) -> None:
        """See `Listener`."""
        calls = self._calls
        if not calls:
            return
        resident = None if self._sizes is None else self._sizes.sizes()[0]
        for values in calls:
            if resident is not None:
                values.after(index, RSS, resident, depth)
            saved = self._saved(values.call)
            if saved is not None:
                values.after(index, NPP, saved, depth)
        if self._post_forward:
            self._post_forward.run(module, inputs[0], outputs)
        if self._pre_backward or self._post_backward:
            watch_backward(module, inputs, outputs, self._before, self._after)

    def failed(self, error: BaseException) -> None:
        """See `Listener`: told when the kind is asked next."""
        self._error = error

    def _saved(self, call: Call) -> int | None:
        return None if self._saved_bytes is None else self._saved_bytes(call)

    def _before(self, module: Any, grad_outputs: Any) -> None:
        if self._calls:
            self._pre_backward.run(module, grad_outputs)

    def _after(self, module: Any, grad_inputs: Any, grad_outputs: Any) -> None:
        if self._calls:
            self._post_backward.run(module, grad_inputs, grad_outputs)

    # What is found.

    def _capture(self, values: _Values, error: BaseException | None) -> Capture:
        watch = self._watch
        columns = {name: np.array(column) for name, column in values.columns.items()}
        for name in self._saved_attrs:
            column = np.full(len(watch.paths), math.nan)
            for index, module in watch.modules():
                number = number_of(module, name)
                column[index] = math.nan if number is None else number
            columns[name] = column
        numbers = np.arange(len(watch.paths), dtype=np.int64)
        call = values.call
        return Capture(
            kind="hooks",
            time_ns=time.time_ns(),
            step=call.step,
            phase=call.phase,
            function=call.function,
            iteration=call.iteration,
            meta={"incomplete": error is not None, "not_seen": watch.not_seen},
            tables={
                "modules": {"path": watch.paths, "type": watch.types},
                "values": {"module": numbers, **columns},
            },
        )
