"""The memory columns of a rank's step table, from what the program needs per step.

A step needs the same room above what is held before it, whatever came earlier: a few steps
of different batches are run on a `Device`, and all others are looked up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from memboard.collector.simulate.device import (
    GIB,
    LARGE,
    MIB,
    POOLS,
    SMALL,
    Device,
    mapped_bytes,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from memboard.collector.simulate.program import Training

    Ints = npt.NDArray[np.int64]

DEVICE_TOTAL_BYTES: Final = 80 * GIB
NON_TORCH_BYTES: Final = 1740 * MIB
"""CUDA context and communication buffers, outside the allocator."""

LIMIT_BYTES: Final = DEVICE_TOTAL_BYTES - NON_TORCH_BYTES

_ACTIVATION_SHARE: Final = 0.52
"""Of the device, for the largest batch."""
_NUM_LEVELS: Final = 16
_SHORTEST: Final = 0.65
"""Batches are padded to their longest sequence: to one of so many lengths, the shortest of
which is this share of the longest."""


class Keeps(NamedTuple):
    """Something that a rank holds beyond what the model needs, for as long as it lives."""

    site: str
    num_bytes: int
    pieces: int = 1
    """Blocks that share these bytes."""
    first_step: int = 0
    every: int = 0
    """So much again at the start of each so many steps; 0: once."""

    def times(self, steps: Ints) -> Ints:
        """How often it was allocated by the time a step runs."""
        since = steps - self.first_step
        return np.where(since < 0, 0, since // self.every + 1 if self.every else 1)

    def blocks(self, step: int) -> list[int]:
        """Bytes of the blocks that are allocated at the start of a step."""
        steps = np.array([step - 1, step])
        before, now = (
            self.times(steps).tolist() if step else (0, *self.times(steps[1:]))
        )
        return [self.num_bytes // self.pieces] * self.pieces * int(now - before)

    def held(self, steps: Ints) -> Ints:
        """Bytes that are held during steps."""
        return self.times(steps) * (self.num_bytes // self.pieces * self.pieces)


@dataclass(frozen=True, slots=True)
class Profile:
    """What a step needs, by the length of its batch."""

    tokens: Ints
    idle: Mapping[str, int]
    """The row of a device between steps, holding the model and its optimizer alone."""
    peaks: Mapping[str, Ints]
    """Of the columns of a device, those that a step raises."""
    rooms: tuple[Ints, Ints]
    """What a step's blocks span in the small and in the large segment."""


def profile_of(training: Training) -> Profile:
    """Run a step of every length."""
    most = int(DEVICE_TOTAL_BYTES * _ACTIVATION_SHARE) / training.bytes_per_token
    shares = np.linspace(_SHORTEST, 1, _NUM_LEVELS)
    tokens = np.maximum((most * shares).astype(np.int64) // 64 * 64, 64)
    rows, rooms = [], []
    for number in tokens.tolist():
        device = Device(1 << 62)
        training.begin(device)
        device.reset_peaks()
        idle = device.row()
        training.step(device, number)
        rows.append(device.row())
        rooms.append((device.room_bytes(1), device.room_bytes(2)))
    small, large = np.array(rooms, np.int64).T
    peaks = {
        f"{stat}{pool}_peak_bytes": np.array(
            [row[f"{stat}{pool}_peak_bytes"] for row in rows], np.int64
        )
        for stat in ("allocated", "requested")
        for pool in POOLS
    }
    return Profile(tokens, idle, peaks, (small, large))


def batch_lengths(random: np.random.Generator, num_steps: int) -> Ints:
    """Rows of the profile: how long each step's batch is."""
    fill = 1 - random.beta(1.2, 3.0, num_steps)
    return np.round(fill * (_NUM_LEVELS - 1)).astype(np.int64)


def reserved(
    profile: Profile, lengths: Ints, keeps: Sequence[Keeps]
) -> tuple[Ints, Ints]:
    """Bytes of both segments at the end of each step: they never shrink."""
    live_bytes = held_by(keeps, len(lengths))
    small, large = profile.rooms
    return (
        mapped_bytes(np.maximum.accumulate(small[lengths]), 1),
        mapped_bytes(np.maximum.accumulate(large[lengths] + live_bytes), 2),
    )


def device_at(
    training: Training,
    profile: Profile,
    lengths: Ints,
    keeps: Sequence[Keeps],
    step: int,
) -> Device:
    """A rank's device at the start of a step, where it gave no pages back before."""
    device = Device(LIMIT_BYTES)
    training.begin(device)
    for earlier in range(step):
        allocate_kept(device, keeps, earlier)
    if step:
        small, large = reserved(profile, lengths[:step], keeps)
        device.map_to(SMALL, int(small[-1]))
        device.map_to(LARGE, int(large[-1]))
    device.reset_peaks()
    return device


def allocate_kept(device: Device, keeps: Sequence[Keeps], step: int) -> None:
    """What a rank allocates at the start of a step, and keeps."""
    for keep in keeps:
        for size in keep.blocks(step):
            device.alloc(size, keep.site, "other")


def held_by(keeps: Sequence[Keeps], num_steps: int) -> Ints:
    """Bytes that all of these hold during each step."""
    steps = np.arange(num_steps)
    return sum((keep.held(steps) for keep in keeps), np.zeros(num_steps, np.int64))


def memory_columns(
    profile: Profile, lengths: Ints, keeps: Sequence[Keeps]
) -> dict[str, Ints]:
    """The columns of `Device.row` after each step, and its counters."""
    num_steps = len(lengths)
    live_bytes = held_by(keeps, num_steps)
    small, large = reserved(profile, lengths, keeps)
    columns: dict[str, Ints] = {}
    for pool, mapped, extra in zip(
        POOLS,
        (small + large, small, large),
        (live_bytes, live_bytes * 0, live_bytes),
        strict=True,
    ):
        for stat in ("allocated", "requested"):
            peak = f"{stat}{pool}_peak_bytes"
            columns[f"{stat}{pool}_bytes"] = profile.idle[f"{stat}{pool}_bytes"] + extra
            columns[peak] = profile.peaks[peak][lengths] + extra
        allocated = columns[f"allocated{pool}_bytes"]
        unused = mapped - allocated
        columns[f"active{pool}_bytes"] = allocated
        columns[f"active{pool}_peak_bytes"] = columns[f"allocated{pool}_peak_bytes"]
        columns[f"reserved{pool}_bytes"] = columns[f"reserved{pool}_peak_bytes"] = (
            mapped
        )
        columns[f"inactive_split{pool}_bytes"] = unused
        columns[f"inactive_split{pool}_peak_bytes"] = np.maximum(
            unused, np.append(0, unused[:-1])
        )
    for counter in ("num_alloc_retries", "num_ooms"):
        columns[counter] = np.zeros(num_steps, np.int64)
    return columns
