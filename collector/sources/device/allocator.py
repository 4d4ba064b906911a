"""torch's allocator on this rank's device, at every step: current and peak bytes.

The statistics are taken as the nested dict that torch's C code builds, without the
flattening and sorting that `torch.cuda.memory_stats` adds (75 us). They are the host's
own accounting: nothing waits for the device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from memboard.collector.format.columns import DEVICE_COUNTERS, device_byte_columns
from memboard.collector.sources.device.peak_wrapping import open_ledger, release_ledger
from memboard.collector.sources.device.peaks import KEYS, picked
from memboard.collector.sources.source import Reader, Source

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.collector.config import RecordConfig
    from memboard.collector.format.columns import Column
    from memboard.collector.sources.device.accelerator import Device

_RESERVED: Final = 2
"""Index of the total reserved bytes in `peaks.KEYS`."""


def _columns(config: RecordConfig) -> tuple[Column, ...]:
    if config.device_peaks == "run":
        return (*device_byte_columns("cumulative_peak"), *DEVICE_COUNTERS)
    return (*device_byte_columns("peak"), *DEVICE_COUNTERS)


def _open(config: RecordConfig, device: Device) -> Reader:
    if device.absent is not None:
        raise device.absent
    used = DeviceSource(device, resets=config.device_peaks == "step")
    return Reader(used.sample, used.close)


DEVICE: Final = Source(
    name="device", cost="20 us per step", columns=_columns, open=_open, setting="device"
)


class DeviceSource:
    """Samples nothing (None) until training uses the device."""

    def __init__(self, device: Device, *, resets: bool) -> None:
        """`resets`: peaks are per step; else cumulative, and nothing is wrapped."""
        self._nothing = (None,) * (2 * len(KEYS) + len(DEVICE_COUNTERS))
        self._device = device
        self._resets = resets
        self._open_ledger()

    def sample(self) -> Sequence[int | float | None]:
        """Close the step's peak scope and begin the next one's."""
        reading = self._ledger.cut(self._scope)
        if reading is None:
            return self._nothing
        stats = reading.stats
        current = picked(stats, "current")
        if not current[_RESERVED] and self._device.settle():
            self.close()
            self._open_ledger()
        values: list[int | None] = []
        for now, peak in zip(current, reading.peaks, strict=True):
            values += (now, peak)
        values += (stats.get("num_alloc_retries"), stats.get("num_ooms"))
        return values

    def close(self) -> None:
        """Give the peak counters back to the user; twice is harmless."""
        if self._device.ledger is None:
            return
        self._device.ledger = None
        try:
            self._ledger.close(self._scope)
        finally:  # a driver that does not answer must not leave torch wrapped
            release_ledger(self._ledger)

    def _open_ledger(self) -> None:
        self._ledger = open_ledger(self._device, resets=self._resets)
        self._scope = self._ledger.open()
        self._device.ledger = self._ledger
