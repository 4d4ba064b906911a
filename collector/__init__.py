"""MemBoard's collector: records memory, host and timing data inside PyTorch training.

    import collector
    with collector.record("runs/exp1", model=model, optimizer=optimizer) as rec:
        for batch in loader:
            ...
            rec.step()

Names are loaded when first used (PEP 562), so importing this costs next to nothing and
loads neither torch nor tensorboard nor numpy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collector.config import RecordConfig, SourceConfig
    from collector.errors import ConfigError, MemBoardError, SpanError
    from collector.loop.spans import counter, instant, span
    from collector.profiling.functions import profiled
    from collector.recorder import Recorder
    from collector.schedule import Action, Schedule
    from collector.start import active, record

__all__ = [
    "Action",
    "ConfigError",
    "MemBoardError",
    "RecordConfig",
    "Recorder",
    "Schedule",
    "SourceConfig",
    "SpanError",
    "active",
    "counter",
    "instant",
    "profiled",
    "record",
    "span",
]

_HOMES: Final = {
    "Action": "collector.schedule",
    "ConfigError": "collector.errors",
    "MemBoardError": "collector.errors",
    "RecordConfig": "collector.config",
    "Recorder": "collector.recorder",
    "Schedule": "collector.schedule",
    "SourceConfig": "collector.config",
    "SpanError": "collector.errors",
    "active": "collector.start",
    "counter": "collector.loop.spans",
    "instant": "collector.loop.spans",
    "profiled": "collector.profiling.functions",
    "record": "collector.start",
    "span": "collector.loop.spans",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'collector' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
