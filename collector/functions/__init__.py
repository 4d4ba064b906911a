"""What is collected around calls of chosen functions, on a schedule.

- `contract`: what a kind of collecting is, and who takes what it finds;
- `functions`: the decorator `collector.profiled`;
- `windows`: the calls under way, their numbers, and which of them are collected;
- `kinds`: the kinds in their order, each for its functions, and one that fails;
- `snaps` (with `device_stats`), `hooks` (with `user_hooks` and `backward`) and
  `activations` (with `saved_tensors` and `saved_stack`): kinds;
- `module_watch`: the forwards of modules, for those kinds that want to know.

`open_windows` puts them together for a recording.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collector.config import RecordConfig
    from collector.core.warn_once import Troubles
    from collector.functions.contract import Sink
    from collector.functions.windows import Windows
    from collector.sources.device.accelerator import Device
    from collector.steps.cycles import Cycles
    from collector.steps.progress import Progress


def open_windows(
    config: RecordConfig,
    sink: Sink,
    device: Device,
    progress: Progress,
    troubles: Troubles,
    cycles: Cycles | None = None,
) -> Windows:
    """Everything that is collected around calls, as the settings say.

    Raises:
        ConfigError: the schedule cannot be; see `collector.config.schedule.schedule_of`.
    """
    from collector.config.schedule import schedule_of
    from collector.functions.kinds import make_slots
    from collector.functions.sinks import Gate
    from collector.functions.windows import Windows

    gate = Gate(sink)
    return Windows(
        schedule=schedule_of(config.schedule),
        unit=config.schedule.unit,
        slots=make_slots(config, gate, device, troubles),
        gate=gate,
        progress=progress,
        troubles=troubles,
        cycles=cycles,
        per_epoch=config.schedule.per_epoch,
    )
