"""Spans in torch's own traces, as ranges of `record_function`.

A range that begins while one profiler records and ends while a later one does writes into
memory that the first has freed: torch has no guard, and the process dies at some time. So
ranges that are still open end where a profiler begins, as long as none records.
"""

from __future__ import annotations

import functools
import sys
from typing import Any, Final

from memboard.collector.core.patches import Patches

_START: Final = "_run_on_profiler_start"
"""torch's function that each of its profilers calls before it records."""


class TorchRanges:
    """Of one recording. Safe from any thread."""

    def __init__(self) -> None:
        self._open: dict[int, Any] = {}
        self._patches = Patches()
        self._profiler: Any = None
        """torch's module; None where ranges could not be ended in time."""

    def watch(self) -> None:
        """From now on know of each profiler that begins, where torch has been imported."""
        profiler = sys.modules.get("torch.autograd.profiler")
        before = getattr(profiler, _START, None)
        if before is None:
            return

        @functools.wraps(before)
        def start(*args: Any, **kwargs: Any) -> Any:
            self._end_all()
            return before(*args, **kwargs)

        self._patches.attribute(profiler, _START, start)
        self._profiler = profiler

    def unwatch(self) -> None:
        """Begin no more ranges, and leave torch as it was."""
        self._profiler = None
        self._end_all()
        self._patches.remove()

    def begin(self, name: str) -> Any:
        """A range that `end` takes, while a profiler records; None where none could end."""
        if self._profiler is None:
            return None
        function = self._profiler.record_function(name)
        function.__enter__()
        self._open[id(function)] = function
        return function

    def end(self, function: Any) -> None:
        """End it, unless a profiler that began since has."""
        if self._open.pop(id(function), None) is not None:
            function.__exit__(None, None, None)

    def _end_all(self) -> None:
        for function in tuple(self._open.values()):
            self.end(function)
