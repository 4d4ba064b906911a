"""Limits of a recording that a busy machine would reach, lifted for tests.

What hangs (a disk, a source, another thread) holds an ending program up no longer than
these, which are seconds or less. Tests of what is written at an end run beside others, on a
machine that may be slower than that: a fixture of `collector/conftest.py` lifts them, as does
`programs.py` for what it runs. A test of such a limit sets it itself.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

LIFTED: Final = (
    ("memboard.collector.engine", "CLOSE_SECONDS", 300.0),
    ("memboard.collector.engine", "SAMPLER_SECONDS", 15.0),
    ("memboard.collector.writing.writer", "STALLED_SECONDS", 60.0),
    ("memboard.collector.functions.windows", "CLOSE_SECONDS", 60.0),
    ("memboard.collector.torch_profiler.saving", "PLACE_SECONDS", 60.0),
    ("memboard.collector.oom.report", "REPORT_SECONDS", 60.0),
    ("memboard.collector.oom.exit_hooks", "SIGNAL_SECONDS", 60.0),
)
"""Module, constant and the seconds that stand in its place."""


def lift(set_attribute: Callable[[Any, str, float], None]) -> None:
    """Lift them all, with `setattr` or a `MonkeyPatch`'s."""
    for module, name, seconds in LIFTED:
        place = import_module(module)
        assert hasattr(place, name), f"{module} has no {name}"
        set_attribute(place, name, seconds)
