"""Simulated out-of-memory errors whose cause is known: snapshots with a label.

Seven causes, each planted so that it takes more than anything else that is unusual:

- `really_full`: a training that simply needs more than the device has;
- `fragmented`: enough is free in the request's pool and stream, in no one piece;
- `growth`: memory kept from every step (a leak) filled the device;
- `single_giant`: one request far beyond all before it, on a device with room to spare;
- `imbalance`: this rank holds much more than its peers, which have room;
- `non_torch`: memory outside torch takes what the training had before;
- `fitting_block_free`: a free block would have fitted, of another stream or pool.

A case may have a second, smaller trouble (`also`), and always has noise. What a case
was meant to be is checked against the state of the allocator at the error; a draw that
came out ambiguous is drawn again. Everything follows from the seed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tests.simulate.allocator.allocator import SimulatedOutOfMemoryError
from tests.simulate.allocator.stats import ACTIVE, ALLOCATED, LARGE, RESERVED
from tests.simulate.snapshots.form import Form
from tests.simulate.snapshots.label import (
    OOM_CAUSES,
    OomCause,
    OomLabel,
    is_clear,
)
from tests.simulate.snapshots.stories import STORIES, Plan, Story

if TYPE_CHECKING:
    from pathlib import Path

    from tests.simulate.snapshots.form import TorchVersion
    from tests.simulate.snapshots.rank import SimulatedRank

_SMALL_CAUSES: Final[tuple[OomCause, ...]] = ("growth", "non_torch", "fragmented")
_MAX_DRAWS: Final = 200


@dataclass(frozen=True, slots=True)
class OomCase:
    """Snapshots of all ranks of a job, one of which ran out of memory."""

    label: OomLabel
    ranks: tuple[SimulatedRank, ...]
    form: Form

    def snapshot(self, rank: int | None = None) -> dict[str, Any]:
        """The snapshot of a rank; None: of the one that ran out of memory."""
        return self.ranks[self.label.rank if rank is None else rank].snapshot(self.form)

    def write(self, directory: Path) -> list[Path]:
        """Write `rank<N>.pickle` of every rank; returns the paths in order of rank."""
        paths = [directory / f"rank{rank}.pickle" for rank in range(len(self.ranks))]
        for path, rank in zip(paths, self.ranks, strict=True):
            rank.write(path, self.form)
        return paths


def second_causes(cause: OomCause) -> tuple[OomCause, ...]:
    """What may be planted beside a cause, smaller."""
    # A device full of live blocks has no room for holes.
    barred = (cause, "fragmented") if cause == "really_full" else (cause,)
    return tuple(one for one in _SMALL_CAUSES if one not in barred)


def oom_case(
    cause: OomCause,
    seed: int,
    *,
    also: OomCause | None = None,
    torch: TorchVersion | None = None,
) -> OomCase:
    """A case of `cause`; `also`: one of `second_causes`; `torch`: None draws one."""
    assert also is None or also in second_causes(cause), f"{also} beside {cause}"
    random = np.random.default_rng([seed, OOM_CAUSES.index(cause)])
    plan = Plan.draw(cause, also, random)
    versions: tuple[TorchVersion, ...] = ("2.1", "2.6", "2.11", "2.13")
    drawn = versions[int(random.integers(0, 4))]
    form = Form(torch or drawn)
    unwound = bool(random.random() < 0.3)
    for draw in range(_MAX_DRAWS):
        random = np.random.default_rng([seed, OOM_CAUSES.index(cause), draw])
        story = Story(plan, random)
        label = _fail(story, unwound=unwound)
        if label is not None:
            if unwound:
                story.victim.unwind()
            return OomCase(label, tuple(story.ranks), form)
    raise ValueError(f"no unambiguous case of {cause!r} with seed {seed} and {also!r}")


def _fail(story: Story, *, unwound: bool) -> OomLabel | None:
    """Let the story happen; None where it came out ambiguous."""
    plan = story.plan
    try:
        STORIES[plan.cause](story)
    except SimulatedOutOfMemoryError as error:
        if story.victim.allocator.num_ooms != 1:
            return None
        label = _label(story, error, unwound=unwound)
        if is_clear(label) and (plan.also is None or plan.also in story.planted):
            return label
    return None


def _label(
    story: Story, error: SimulatedOutOfMemoryError, *, unwound: bool
) -> OomLabel:
    victim = story.victim
    stats, device = victim.allocator.stats, victim.device
    same = other = (0, 0)
    for arena in victim.allocator.arenas():
        if arena.pool != LARGE or not arena.free:
            continue
        free = (sum(entry[0] for entry in arena.free), arena.free[-1][0])
        if arena is error.arena:
            same = free
        else:
            other = (other[0] + free[0], max(other[1], free[1]))
    peaks = [
        rank.allocator.stats.get_peak(ACTIVE)
        for rank in story.ranks
        if rank is not victim
    ]
    planted = dict(story.planted)
    if story.plan.cause == "imbalance":
        planted["imbalance"] = stats.get_peak(ACTIVE) - int(np.median(peaks))
    return OomLabel(
        cause=story.plan.cause,
        also=() if story.plan.also is None else (story.plan.also,),
        rank=story.plan.victim,
        num_steps=victim.training.num_steps,
        requested_bytes=error.requested_bytes,
        site=victim.training.site,
        device_total_bytes=device.total_bytes,
        device_free_bytes=error.free_bytes,
        non_torch_bytes=device.non_torch_bytes,
        context_bytes=story.machine.context_bytes,
        reserved_bytes=stats.get(RESERVED),
        allocated_bytes=stats.get(ALLOCATED),
        active_bytes=stats.get(ACTIVE),
        same_free_bytes=same[0],
        same_largest_bytes=same[1],
        other_largest_bytes=other[1],
        largest_earlier_bytes=victim.training.largest_bytes,
        peers_peak_bytes=tuple(peaks),
        planted_bytes=planted,
        holders=victim.live_bytes_by_site(),
        unwound=unwound,
    )
