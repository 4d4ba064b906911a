"""MemBoard's collector: records memory, host and timing data inside PyTorch training.

    import memboard as mb
    with mb.record("runs/exp1", model=model, optimizer=optimizer) as rec:
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
    from memboard.collector.config.layers import load
    from memboard.collector.config.options import (
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
    from memboard.collector.config.schedule import Action, Schedule
    from memboard.collector.config.sections import (
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
    from memboard.collector.config.settings import RecordConfig
    from memboard.collector.errors import ConfigError, MemBoardError, SpanError
    from memboard.collector.functions.functions import profiled
    from memboard.collector.recorder import Recorder
    from memboard.collector.start import active, record
    from memboard.collector.steps.spans.calls import instant, log, span

if __name__ == "collector":
    # In a checkout's root, its folder: no module is loaded under a second name.
    __path__ = []

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
    "Action": "memboard.collector.config.schedule",
    "ActivationsConfig": "memboard.collector.config.sections",
    "ActivationsOptions": "memboard.collector.config.options",
    "ConfigError": "memboard.collector.errors",
    "FlopsConfig": "memboard.collector.config.sections",
    "FlopsOptions": "memboard.collector.config.options",
    "FunctionsConfig": "memboard.collector.config.sections",
    "FunctionsOptions": "memboard.collector.config.options",
    "HistoryConfig": "memboard.collector.config.sections",
    "HistoryOptions": "memboard.collector.config.options",
    "HooksConfig": "memboard.collector.config.sections",
    "HooksOptions": "memboard.collector.config.options",
    "MemBoardError": "memboard.collector.errors",
    "ModulesConfig": "memboard.collector.config.sections",
    "ModulesOptions": "memboard.collector.config.options",
    "OomConfig": "memboard.collector.config.sections",
    "OomOptions": "memboard.collector.config.options",
    "RecordConfig": "memboard.collector.config.settings",
    "RecordOptions": "memboard.collector.config.options",
    "Recorder": "memboard.collector.recorder",
    "RemoteConfig": "memboard.collector.config.sections",
    "RemoteOptions": "memboard.collector.config.options",
    "Schedule": "memboard.collector.config.schedule",
    "ScheduleConfig": "memboard.collector.config.sections",
    "ScheduleOptions": "memboard.collector.config.options",
    "SpanError": "memboard.collector.errors",
    "SpansConfig": "memboard.collector.config.sections",
    "SpansOptions": "memboard.collector.config.options",
    "TorchProfilerConfig": "memboard.collector.config.sections",
    "TorchProfilerOptions": "memboard.collector.config.options",
    "active": "memboard.collector.start",
    "instant": "memboard.collector.steps.spans.calls",
    "load": "memboard.collector.config.layers",
    "log": "memboard.collector.steps.spans.calls",
    "profiled": "memboard.collector.functions.functions",
    "record": "memboard.collector.start",
    "span": "memboard.collector.steps.spans.calls",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
