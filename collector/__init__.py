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
    from collector.config.layers import load
    from collector.config.schedule import Action, Schedule
    from collector.config.sections import (
        ActivationsConfig,
        FlopsConfig,
        FunctionsConfig,
        HistoryConfig,
        HooksConfig,
        ModulesConfig,
        OomConfig,
        RemoteConfig,
        ScheduleConfig,
        SpansConfig,
        TorchProfilerConfig,
    )
    from collector.config.settings import RecordConfig, RecordOptions
    from collector.errors import ConfigError, MemBoardError, SpanError
    from collector.functions.functions import profiled
    from collector.recorder import Recorder
    from collector.start import active, record
    from collector.steps.spans.calls import instant, log, span

__all__ = [
    "Action",
    "ActivationsConfig",
    "ConfigError",
    "FlopsConfig",
    "FunctionsConfig",
    "HistoryConfig",
    "HooksConfig",
    "MemBoardError",
    "ModulesConfig",
    "OomConfig",
    "RecordConfig",
    "RecordOptions",
    "Recorder",
    "RemoteConfig",
    "Schedule",
    "ScheduleConfig",
    "SpanError",
    "SpansConfig",
    "TorchProfilerConfig",
    "active",
    "instant",
    "load",
    "log",
    "profiled",
    "record",
    "span",
]

_HOMES: Final = {
    "Action": "collector.config.schedule",
    "ActivationsConfig": "collector.config.sections",
    "ConfigError": "collector.errors",
    "FlopsConfig": "collector.config.sections",
    "FunctionsConfig": "collector.config.sections",
    "HistoryConfig": "collector.config.sections",
    "HooksConfig": "collector.config.sections",
    "MemBoardError": "collector.errors",
    "ModulesConfig": "collector.config.sections",
    "OomConfig": "collector.config.sections",
    "RecordConfig": "collector.config.settings",
    "RecordOptions": "collector.config.settings",
    "Recorder": "collector.recorder",
    "RemoteConfig": "collector.config.sections",
    "Schedule": "collector.config.schedule",
    "ScheduleConfig": "collector.config.sections",
    "SpanError": "collector.errors",
    "SpansConfig": "collector.config.sections",
    "TorchProfilerConfig": "collector.config.sections",
    "active": "collector.start",
    "instant": "collector.steps.spans.calls",
    "load": "collector.config.layers",
    "log": "collector.steps.spans.calls",
    "profiled": "collector.functions.functions",
    "record": "collector.start",
    "span": "collector.steps.spans.calls",
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
