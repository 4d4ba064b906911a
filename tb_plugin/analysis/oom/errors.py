"""All out-of-memory errors that one history tells of, each with its state and holders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

from memboard.collector.format.memory import CATEGORIES
from memboard.tb_plugin.analysis.allocator.lifetimes import ALLOC, OOM
from memboard.tb_plugin.analysis.allocator.live import held_rows
from memboard.tb_plugin.analysis.arrays import sums
from memboard.tb_plugin.analysis.categories.frames import NATIVE, frame_label, kind_of
from memboard.tb_plugin.analysis.categories.phases import PHASES, asked_in
from memboard.tb_plugin.analysis.oom.case import Case
from memboard.tb_plugin.analysis.oom.holders import holders
from memboard.tb_plugin.analysis.oom.holdings import holdings, makes_model, trains
from memboard.tb_plugin.analysis.oom.replayed_case import facts_at, setup_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from memboard.tb_plugin.analysis.allocator.replay import Replay
    from memboard.tb_plugin.analysis.arrays import Ints
    from memboard.tb_plugin.analysis.categories.attribution import Attribution
    from memboard.tb_plugin.analysis.oom.holders import Holder
    from memboard.tb_plugin.analysis.snapshots.snapshot import Stacks
    from memboard.tb_plugin.analysis.snapshots.steps import Steps


MAX_ERRORS: Final = 8
"""Of one device: the first and the last ones. A program that tries smaller batches until
one fits makes many, and they are alike."""

MAX_STACK: Final = 40


@dataclass(frozen=True, slots=True)
class OomError:
    device: int
    event: int
    case: Case
    step: int | None
    phase: str
    """`forward`, `backward`, `optimizer`, as stacks tell; empty: they do not."""
    time_us: int | None
    num_later: int = 0
    """Allocations that followed, as far as the history goes."""


class Device(Protocol):
    """A device of a history, replayed."""

    @property
    def replay(self) -> Replay:
        """Its events and what follows from them."""

    @property
    def steps(self) -> Steps:
        """Which step each event belongs to."""

    @property
    def attribution(self) -> Attribution: ...


@dataclass(frozen=True, slots=True)
class HistoryErrors:
    """What a history says of memory running out."""

    errors: tuple[OomError, ...]
    """In order of time where it is known, else by device and event."""
    num_errors: int
    peak_active_bytes: Mapping[int, int]


def errors_of(devices: Iterable[Device]) -> HistoryErrors:
    """Every error of a snapshot's devices, judged by the state at its own event."""
    errors: list[OomError] = []
    num_errors, peaks = 0, {}
    for device in devices:
        replay = device.replay
        peaks[replay.device.device] = replay.active.peak[0]
        events = replay.device.events.of_action(OOM)
        num_errors += len(events)
        errors += [state_at(device, event) for event in _ends(events).tolist()]
    errors.sort(key=lambda error: (error.time_us or 0, error.device, error.event))
    return HistoryErrors(
        errors=tuple(errors),
        num_errors=num_errors,
        peak_active_bytes=peaks,
    )


def _ends(events: Ints) -> Ints:
    half = MAX_ERRORS // 2
    if len(events) <= MAX_ERRORS:
        return events
    return np.concatenate([events[:half], events[-half:]])


def state_at(device: Device, event: int) -> OomError:
    """What is known of the moment of an event."""
    replay = device.replay
    events, lives = replay.device.events, replay.lives
    category = device.attribution.category
    step = device.steps.step
    rows = held_rows(lives, event)
    stack = int(events.stack[event])
    phases = replay.phases
    facts = facts_at(replay, event, step)

    def held(level: int | None, *, with_pending: bool = False) -> list[Holder]:
        return holders(
            lives,
            replay.stacks,
            event,
            category,
            with_pending=with_pending,
            of_bytes=level,
        )

    return OomError(
        device=replay.device.device,
        event=event,
        case=Case(
            facts=facts,
            device=replay.device.device,
            replayed=True,
            setup=setup_of(replay),
            holders=tuple(held(facts.held_bytes)),
            active=tuple(held(facts.active_bytes, with_pending=True)),
            live_bytes=facts.held_bytes,
            rounding_bytes=replay.rounding_bytes(event, with_pending=False),
            by_category=_by_category(category[rows], lives.size[rows]),
            stack=_frames(replay.stacks, stack),
            asked_at=replay.stacks.label(stack),
            asked_in=asked_in(int(replay.stacks.marks[stack]) if stack >= 0 else 0),
            holdings=holdings(replay, event, step),
            trains=trains(replay, event),
            makes_model=makes_model(replay, event),
        ),
        step=int(step[event]) if step[event] >= 0 else None,
        phase=PHASES[int(phases.kind[int(phases.of_event[event])])],
        time_us=None if events.time_us is None else int(events.time_us[event]),
        num_later=int(np.count_nonzero(events.action[event:] == ALLOC)),
    )


def _by_category(category: Ints, size: Ints) -> dict[str, int]:
    sums_by_category = sums(category, size, len(CATEGORIES)).tolist()
    return {
        category: num_bytes
        for category, num_bytes in zip(CATEGORIES, sums_by_category, strict=True)
        if num_bytes
    }


def _frames(stacks: Stacks, stack: int) -> tuple[str, ...]:
    """A stack's frames in short: Python's where it has any."""
    rows = stacks.of(stack).tolist()
    python = [row for row in rows if kind_of(stacks.filename[row]) != NATIVE]
    return tuple(
        frame_label(stacks.name[row], stacks.filename[row], int(stacks.line[row]))
        for row in (python or rows)[:MAX_STACK]
    )
