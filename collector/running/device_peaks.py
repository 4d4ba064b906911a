"""The highest that torch's allocator reached on each device, whoever resets its peaks."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from memboard.collector.format.prediction import DeviceFigures

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_RESETS: Final = ("_cuda_resetPeakMemoryStats", "_accelerator_resetPeakStats")
_STATS: Final = ("allocated_bytes", "active_bytes", "reserved_bytes")


class DevicePeaks:
    """Of this process. Before each reset of the peaks it keeps what they were."""

    def __init__(self) -> None:
        self._kept: dict[int, list[int]] = {}
        self._stats: Callable[[int], Mapping[str, Any]] | None = None

    def install(self) -> None:
        """Look from now on; torch has just been imported, and nobody has wrapped it."""
        c: Any = sys.modules["torch"]._C  # noqa: SLF001
        self._stats = getattr(c, "_cuda_memoryStats", None)
        for function in _RESETS:
            reset = getattr(c, function, None)
            if self._stats is not None and reset is not None:
                setattr(c, function, self._before(reset))

    def figures(self) -> list[DeviceFigures]:
        """Of every device that was used."""
        torch: Any = sys.modules.get("torch")
        if torch is None or self._stats is None or not torch.cuda.is_initialized():
            return []
        figures = []
        for index in range(torch.cuda.device_count()):
            stats = self._stats(index)
            allocated, active, reserved = self._keep(index, stats)
            if reserved or stats["num_ooms"]:
                figures.append(
                    DeviceFigures(
                        index=index,
                        allocated_peak=allocated,
                        active_peak=active,
                        reserved_peak=reserved,
                        num_alloc_retries=stats["num_alloc_retries"],
                        num_ooms=stats["num_ooms"],
                    )
                )
        return figures

    def _before(self, reset: Callable[..., Any]) -> Callable[..., Any]:
        def kept(index: int, *rest: Any) -> Any:
            if self._stats is not None:
                self._keep(index, self._stats(index))
            return reset(index, *rest)

        return kept

    def _keep(self, index: int, stats: Mapping[str, Any]) -> list[int]:
        peaks = [stats[statistic]["all"]["peak"] for statistic in _STATS]
        before = self._kept.get(index, peaks)
        high = self._kept[index] = list(map(max, before, peaks))
        return high
