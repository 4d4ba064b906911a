"""Simulated out-of-memory errors as the analysis gets them, and as their labels say."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from memboard.collector.format.snapshots import tables_of
from memboard.tb_plugin.analysis.allocator.lifetimes import OOM
from memboard.tb_plugin.analysis.allocator.replay import Replay
from memboard.tb_plugin.analysis.oom.case import Case
from memboard.tb_plugin.analysis.oom.judge import verdict
from memboard.tb_plugin.analysis.oom.replayed_case import facts_at
from memboard.tb_plugin.analysis.snapshots.steps import steps_of
from memboard.tb_plugin.analysis.snapshots.tables import snapshot_of
from tests.simulate import OOM_CAUSES, oom_case, second_causes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memboard.tb_plugin.analysis.oom.case import OomFacts
    from memboard.tb_plugin.analysis.oom.judge import Verdict
    from tests.simulate import OomCase, OomCause, OomLabel

HELD_BACK: int = 10_000
"""Seeds from here on were never looked at while the rules were made."""


@dataclass(frozen=True)
class Judged:
    """A case, what the analysis made of it, and the truth."""

    label: OomLabel
    facts: OomFacts
    verdict: Verdict


def replayed(case: OomCase, rank: int | None = None) -> Replay:
    """The replay of one rank's snapshot, read as an analysis reads it."""
    snapshot = snapshot_of(tables_of(case.snapshot(rank)))
    return Replay(snapshot, snapshot.devices[0])


def judged(case: OomCase) -> Judged:
    """The verdict on a case.

    The device's size is known, as our recordings have it, and peers are what their own
    snapshots show; nothing else of the label is used.
    """
    label = case.label
    replay = replayed(case)
    event = int(replay.device.events.of_action(OOM)[-1])
    step = steps_of(replay.snapshot, replay.device).step
    facts = facts_at(replay, event, step)
    peers = [
        replayed(case, rank).active.peak[0]
        for rank in range(len(case.ranks))
        if rank != label.rank
    ]
    facts = replace(
        facts,
        peers_peak_bytes=tuple(peers),
        capacity_bytes=label.device_total_bytes,
    )
    return Judged(label, facts, verdict(Case(facts=facts)))


def without_size(facts: OomFacts) -> OomFacts:
    """The same facts as pickles alone tell them."""
    return replace(facts, capacity_bytes=None)


def cases(first_seed: int, per_cause: int) -> Iterator[OomCase]:
    """As many of each cause; every second has a smaller trouble beside it."""
    for cause in OOM_CAUSES:
        for seed in range(first_seed, first_seed + per_cause):
            yield oom_case(cause, seed, also=_beside(cause, seed))


def _beside(cause: OomCause, seed: int) -> OomCause | None:
    if seed % 2 == 0:
        return None
    second = second_causes(cause)
    return second[seed // 2 % len(second)]
