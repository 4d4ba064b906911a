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
    from collector.errors import ConfigError, MemBoardError
    from collector.loop.spans import span
    from collector.profiling.functions import profiled
    from collector.recorder import Recorder
    from collector.start import active, record

__all__ = [
    "ConfigError",
    "MemBoardError",
    "RecordConfig",
    "Recorder",
    "SourceConfig",
    "active",
    "profiled",
    "record",
    "span",
]

_HOMES: Final = {
    "ConfigError": "collector.errors",
    "MemBoardError": "collector.errors",
    "RecordConfig": "collector.config",
    "Recorder": "collector.recorder",
    "SourceConfig": "collector.config",
    "active": "collector.start",
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
