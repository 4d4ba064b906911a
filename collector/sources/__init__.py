"""Everything that is measured at each step or on a timer, in the order it is shown."""

from typing import Final

from memboard.collector.sources.device.allocator import DEVICE
from memboard.collector.sources.device.driver import FREE, PINNED_SOURCE
from memboard.collector.sources.device.sensors import SENSORS
from memboard.collector.sources.host import machine, process
from memboard.collector.sources.host.garbage import GARBAGE_SOURCE
from memboard.collector.sources.host.rss import RSS_SOURCE
from memboard.collector.sources.host.workers import WORKERS_SOURCE

STEP: Final = (GARBAGE_SOURCE, DEVICE, RSS_SOURCE)
"""Sampled by `rec.step()`. The collector first: the statistics of the device are so many
dicts that it often runs there, and then both it and the fall are in the next step."""

TIMED: Final = (
    FREE,
    SENSORS,
    PINNED_SOURCE,
    *process.SOURCES,
    WORKERS_SOURCE,
    *machine.SOURCES,
)
"""Sampled on the recorder's own thread."""
