"""Python's garbage collector: how often it ran and what it collected, at every step.

Memory that only the collector frees is held by reference cycles. What its counters say
between two steps shows whether a fall of memory was its doing.
"""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Final

from memboard.collector.core.source import Unavailable
from memboard.collector.format.columns import GARBAGE
from memboard.collector.sources.source import Reader, Source

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.collector.config import RecordConfig
    from memboard.collector.sources.device.accelerator import Device


def _open(_config: RecordConfig, _device: Device) -> Reader:
    try:
        _sample()
    except (AttributeError, TypeError, ValueError, KeyError):
        raise Unavailable(
            "this Python does not count what its garbage collector does",
            "Record with CPython.",
        ) from None
    return Reader(_sample)


def _sample() -> Sequence[int]:
    young, old, full = gc.get_stats()
    return (
        young["collections"] + old["collections"],
        full["collections"],
        young["collected"] + old["collected"] + full["collected"],
    )


GARBAGE_SOURCE: Final = Source(
    name="garbage",
    cost="2 us per step",
    columns=lambda _: GARBAGE,
    open=_open,
    setting="process",
)
