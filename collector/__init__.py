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
    from collector.config.options import (
        ActivationsOptions,
        FlopsOptions,
        FunctionsOptions,
        HistoryOptions,
        HooksOptions,
        ModulesOptions,
        OomOptions,
        RecordOptions,
        RemoteOptions,
        ScheduleOptions,
        SpansOptions,
        TorchProfilerOptions,
    )
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
    from collector.config.settings import RecordConfig
    from collector.errors import ConfigError, MemBoardError, SpanError
    from collector.functions.functions import profiled
    from collector.recorder import Recorder
    from collector.start import active, record
    from collector.steps.spans.calls import instant, log, span

__all__ = [
    "Action",
    "ActivationsConfig",
    "ActivationsOptions",
    "ConfigError",
    "FlopsConfig",
    "FlopsOptions",
    "FunctionsConfig",
    "FunctionsOptions",
    "HistoryConfig",
    "HistoryOptions",
    "HooksConfig",
    "HooksOptions",
    "MemBoardError",
    "ModulesConfig",
    "ModulesOptions",
    "OomConfig",
    "OomOptions",
    "RecordConfig",
    "RecordOptions",
    "Recorder",
    "RemoteConfig",
    "RemoteOptions",
    "Schedule",
    "ScheduleConfig",
    "ScheduleOptions",
    "SpanError",
    "SpansConfig",
    "SpansOptions",
    "TorchProfilerConfig",
    "TorchProfilerOptions",
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
    "ActivationsOptions": "collector.config.options",
    "ConfigError": "collector.errors",
    "FlopsConfig": "collector.config.sections",
    "FlopsOptions": "collector.config.options",
    "FunctionsConfig": "collector.config.sections",
    "FunctionsOptions": "collector.config.options",
    "HistoryConfig": "collector.config.sections",
    "HistoryOptions": "collector.config.options",
    "HooksConfig": "collector.config.sections",
    "HooksOptions": "collector.config.options",
    "MemBoardError": "collector.errors",
    "ModulesConfig": "collector.config.sections",
    "ModulesOptions": "collector.config.options",
    "OomConfig": "collector.config.sections",
    "OomOptions": "collector.config.options",
    "RecordConfig": "collector.config.settings",
    "RecordOptions": "collector.config.options",
    "Recorder": "collector.recorder",
    "RemoteConfig": "collector.config.sections",
    "RemoteOptions": "collector.config.options",
    "Schedule": "collector.config.schedule",
    "ScheduleConfig": "collector.config.sections",
    "ScheduleOptions": "collector.config.options",
    "SpanError": "collector.errors",
    "SpansConfig": "collector.config.sections",
    "SpansOptions": "collector.config.options",
    "TorchProfilerConfig": "collector.config.sections",
    "TorchProfilerOptions": "collector.config.options",
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
