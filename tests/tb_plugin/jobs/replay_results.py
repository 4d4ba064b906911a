"""Results of a replay, to be compared to the last bit."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from memboard.tb_plugin.jobs.open_history import OpenHistory

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.snapshots.snapshot import Snapshot


def fresh(snapshot: Snapshot) -> OpenHistory:
    """As the reader prepares it: what is first looked at is coloured."""
    history = OpenHistory(snapshot, key=())
    if history.devices:
        _ = history.device(None).categories
    return history


def assert_same(one: Any, other: Any) -> None:
    """Of everything within: equal to the last bit and of the same type."""
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        assert one.tobytes() == other.tobytes()
    elif is_dataclass(one):
        assert type(one) is type(other)
        for field in fields(one):
            assert_same(getattr(one, field.name), getattr(other, field.name))
    elif isinstance(one, msgspec.Struct):
        assert type(one) is type(other)
        for name in one.__struct_fields__:
            assert_same(getattr(one, name), getattr(other, name))
    elif isinstance(one, tuple | list):
        assert len(one) == len(other)
        for mine, its in zip(one, other, strict=True):
            assert_same(mine, its)
    else:
        assert one == other


def results(history: OpenHistory) -> list[Any]:
    default = history.device(None).number if history.devices else None
    return [
        (
            number,
            device.lives,
            device.replay.rests,
            device.active,
            device.allocated,
            device.reserved,
            device.replay.reserved,
            device.marks,
            dict(device.oddities),
            device.attribution if number == default else None,
        )
        for number, device in history.devices.items()
    ]
