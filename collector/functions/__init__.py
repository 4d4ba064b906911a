"""Collects memory around calls of chosen functions, on a schedule.

The calls and which of them are collected are in `windows`, each kind of collecting in a
module of its own (`snaps`, `hooks_kind`, `activations`), and their order in `kinds`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memboard.collector.config import RecordConfig
    from memboard.collector.core.warn_once import WarnOnce
    from memboard.collector.engine import Engine
    from memboard.collector.functions.windows import Windows
    from memboard.collector.steps.progress import Progress


def open_windows(
    config: RecordConfig, engine: Engine, progress: Progress, warn_once: WarnOnce
) -> Windows:
    """Everything that is collected around calls, as the settings say.

    Raises:
        ConfigError: the schedule cannot be.
    """
    from memboard.collector.config.schedule import schedule_of
    from memboard.collector.core.calls import Gate
    from memboard.collector.functions.kinds import make_slots
    from memboard.collector.functions.windows import Windows
    from memboard.collector.steps.positions import Positions

    gate = Gate(engine)
    positions = Positions(
        schedule_of(config.schedule),
        progress,
        warn_once,
        unit=config.schedule.unit,
        per_epoch=config.schedule.per_epoch,
    )
    automatic = engine.timing.automatic
    return Windows(
        positions=positions,
        slots=make_slots(config, gate, engine.device, engine.sizes, warn_once),
        gate=gate,
        progress=progress,
        cycles=engine.cycles,
        inputs=None if automatic is None else automatic.inputs.storages,
    )
