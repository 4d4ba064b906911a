"""How busy the host's processors are, in percent of all of them together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from collector.format.columns import CPU
from collector.sources.contract import FunctionSource, SourceInfo

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from collector.config import RecordConfig
    from collector.sources.device.accelerator import Device

INFO: Final = SourceInfo(name="cpu", cost="0.03 ms per sample")


def open_source(config: RecordConfig, _device: Device) -> FunctionSource:
    """Open the host's processor times."""
    import psutil

    return FunctionSource(
        info=INFO,
        columns=CPU,
        interval_seconds=config.cpu,
        sample=Shares(psutil.cpu_times),
    )


class Shares:
    """Shares of the time since the previous call; None at the first one.

    `psutil.cpu_percent` would do it with state that older releases share with the
    user's own calls.
    """

    def __init__(self, cpu_times: Callable[[], Any]) -> None:
        """`cpu_times` returns psutil's named tuple of seconds."""
        self._cpu_times = cpu_times
        self._before: Any = None

    def __call__(self) -> Sequence[float | None]:
        """Total, user, system and waiting for input and output; percent."""
        before, now = self._before, self._cpu_times()
        self._before = now
        if before is None:
            return (None,) * len(CPU)
        spent = {
            name: max(0.0, new - old)
            for name, old, new in zip(now._fields, before, now, strict=True)
            # Linux counts a guest's time in user and nice already.
            if not name.startswith("guest")
        }
        whole = sum(spent.values())
        if whole <= 0:
            return (None,) * len(CPU)
        waiting = spent.get("iowait")
        user = spent["user"] + spent.get("nice", 0.0)
        system = sum(spent.get(n, 0.0) for n in ("system", "irq", "softirq"))
        busy = whole - spent["idle"] - (waiting or 0.0)
        share = 100.0 / whole
        return (
            busy * share,
            user * share,
            system * share,
            None if waiting is None else waiting * share,
        )
