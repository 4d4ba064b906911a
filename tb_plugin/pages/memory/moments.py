"""Moments that are asked for, and how people speak of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tb_plugin.api.allocations import AllocationMoment

if TYPE_CHECKING:
    from tb_plugin.jobs.open_history import OpenDevice


def moment_of(device: OpenDevice, asked: int | None, otherwise: int) -> int:
    """The moment that is asked for; one behind the end is the end."""
    moment = otherwise if asked is None else asked
    return max(-1, min(moment, device.num_events - 1))


def moment_words(device: OpenDevice, moment: int) -> AllocationMoment:
    """Where an event lies, as people speak of it."""
    step, phase = device.step(moment)
    return AllocationMoment(
        moment=moment, time_ms=device.time_ms(moment), step=step, phase=phase
    )
