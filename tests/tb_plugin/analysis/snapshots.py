"""Snapshots to test analyses on: recorded ones, and those of the allocator model."""

from __future__ import annotations

import json
import os
import pickle
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import strategies as st

from memboard.collector.format.snapshots import tables_of
from memboard.tb_plugin.analysis.allocator.lifetimes import Lifetimes
from memboard.tb_plugin.analysis.allocator.replay import Replay
from memboard.tb_plugin.analysis.categories.attribution import OTHER, Attribution
from memboard.tb_plugin.analysis.snapshots.snapshot import STATES, Snapshot, Stacks
from memboard.tb_plugin.analysis.snapshots.tables import snapshot_of
from tests.simulate import Form
from tests.simulate.allocator.allocator import (
    CachingAllocator,
    SimulatedOutOfMemoryError,
)
from tests.simulate.allocator.settings import MIB, AllocatorSettings, parse_settings
from tests.simulate.history.history import History
from tests.simulate.history.sites import Frame, Site, Sites
from tests.simulate.snapshots.events import snapshot
from tests.simulate.snapshots.form import segments_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.tb_plugin.analysis.allocator.live import Holders

REAL = Path(os.environ.get("MEMBOARD_REAL_DATA", "missing"), "snapshots")
EXPECTED: dict[str, Any] = (
    json.loads((REAL / "expected.json").read_text())
    if (REAL / "expected.json").is_file()
    else {}
)
"""By name of a recorded snapshot: its true figures."""

needs_real = pytest.mark.skipif(
    not EXPECTED, reason="MEMBOARD_REAL_DATA does not name the recorded inputs"
)

CAPACITY = 600 * MIB

INCONSISTENT = (
    "Da1sypetals+SnapViewer__assets__memory.pickle",
    "drisspg+transformer_nuggets__test__data__mini_snapshot.pickle",
)
"""Made by hand: their events are not those of their segments."""

_READ: dict[str, Snapshot] = {}


def real(name: str) -> Snapshot:
    """A recorded snapshot; read once."""
    if name not in _READ:
        _READ[name] = snapshot_of(tables_of(pickled(name)))
    return _READ[name]


def pickled(name: str) -> Any:
    """A recorded snapshot as torch dumped it: these files are known to be harmless."""
    return pickle.loads((REAL / name).read_bytes())


def named(part: str) -> str:
    """The recorded snapshot whose name begins so."""
    return next(name for name in EXPECTED if name.startswith(part))


def real_devices() -> list[Any]:
    """(name, place in the figures, figures) of every device with anything on it."""
    return [
        (name, place, figures)
        for name, expected in EXPECTED.items()
        for place, figures in enumerate(expected["devices"])
        if figures["num_events"] or figures["num_segments"]
    ]


SETTINGS = (
    "",
    "expandable_segments:True",
    "max_split_size_mb:24",
    "roundup_power2_divisions:4",
    "roundup_power2_divisions:[1:2,4:8,>:1],max_split_size_mb:32",
)


def apply(
    allocator: CachingAllocator, live: list, operation: tuple[str, int, int]
) -> None:
    """Perform one operation; `live` are the blocks that can be freed."""
    name, number, stream = operation
    if name == "allocate":
        with suppress(SimulatedOutOfMemoryError):
            live.append(allocator.allocate(number, stream))
    elif name == "free" and live:
        allocator.free(live.pop(number % len(live)))
    elif name == "record_stream" and live:
        allocator.record_stream(live[number % len(live)], stream)
    elif name == "synchronize":
        allocator.synchronize(number)
    elif name == "empty_cache":
        allocator.empty_cache()
    elif name == "use_pool":
        allocator.use_pool((0, number) if number else None)


def operations(seed: int, num: int) -> list[tuple[str, int, int]]:
    """Operations as `apply` takes them: long enough to leave holes and unsplit rests."""
    random = np.random.default_rng(seed)
    names = (
        "allocate",
        "free",
        "record_stream",
        "synchronize",
        "empty_cache",
        "use_pool",
    )
    odds = random.dirichlet([30, 24, 3, 3, 1, 1])
    sizes = random.integers(1, 40 * MIB, 6)
    found = []
    for name in random.choice(names, num, p=odds).tolist():
        number = int(random.integers(0, 10**6))
        if name == "allocate":
            # Nearly the same sizes again and again: these leave rests of up to 1 MiB.
            small = int(random.integers(1, 2 * MIB))
            near = int(random.choice(sizes)) - int(random.integers(0, 3 * MIB // 2))
            number = small if random.random() < 0.3 else max(1, near)
        elif name in ("synchronize", "use_pool"):
            number %= 3
        found.append((name, number, int(random.random() < 0.25)))
    return found


histories = st.tuples(
    st.builds(operations, st.integers(0, 2**32), st.integers(0, 150)),
    st.sampled_from(SETTINGS),
    st.sampled_from([None, 5, 60]),
    st.sampled_from(["2.1", "2.13"]),
)
"""Operations, settings, entries kept and the version of torch: for `Modelled`."""


class Modelled:
    """What the allocator model did, and what it held after each operation."""

    def __init__(
        self,
        operations: list[tuple[str, int, int]],
        settings: str = "",
        max_entries: int | None = None,
        torch: Any = "2.13",
    ) -> None:
        self.text, self.torch = settings, torch
        parsed: AllocatorSettings = parse_settings(settings)
        self.sites = Sites()
        self.allocator = CachingAllocator(
            CAPACITY, parsed, history=History(max_entries)
        )
        history = self.allocator.history
        assert history is not None
        states = {}
        live: list[Any] = []
        for number, operation in enumerate(operations):
            frames = (Frame(operation[0], "/home/me/train.py", number % 7 + 1),)
            history.site = self.sites.number(Site(frames))
            before = history.num_recorded
            apply(self.allocator, live, operation)
            if history.num_recorded > before:
                states[history.num_recorded - 1] = self._truth()
        lost = history.num_recorded - len(history)
        self.states = {at - lost: state for at, state in states.items() if at >= lost}
        """By moment: (segments, blocks) as `rows_of` gives them."""
        taken = snapshot([self.allocator], self.sites, Form(torch))
        self.snapshot = snapshot_of(tables_of(taken))
        # torch 2.1 does not say it of its settings, so nothing can be known of them.
        self.device = self.snapshot.devices[0] if self.snapshot.devices else None

    def _truth(self) -> Any:
        return rows_of(list(segments_of(self.allocator, 0, lambda *_: [])))


def rows_of(segments: list[dict[str, Any]]) -> tuple[list[Any], list[Any]]:
    """Segments and blocks of a dump as comparable rows, by address."""
    found = [
        (
            s["address"],
            s["total_size"],
            s["segment_type"] == "large",
            s["is_expandable"],
        )
        for s in segments
    ]
    blocks = [
        (b["address"], b["size"], STATES.index(b["state"]))
        for s in segments
        for b in s["blocks"]
    ]
    return found, blocks


def state_rows(state: Any) -> tuple[list[Any], list[Any]]:
    """The same of a `SegmentState`."""
    s, b = state.segments, state.blocks
    rows = zip(s.address, s.total_size, s.is_large, s.is_expandable, strict=True)
    blocks = zip(b.address, b.size, b.state, strict=True)
    return (
        [(int(a), int(t), bool(g), bool(e)) for a, t, g, e in rows],
        [(int(a), int(n), int(c)) for a, n, c in blocks],
    )


def unknown_share(found: Attribution, replay: Replay, rows: Any) -> float:
    """Share of the bytes of some lives that no rule fits; 0 where there are none."""
    size = replay.lives.size[rows]
    unknown = size[found.category[rows] == OTHER]
    return float(unknown.sum()) / max(1, int(size.sum()))


def held_at(held: Holders, column: int) -> Any:
    """What each slot holds at a column: all changes up to there."""
    until = held.column <= column
    found = np.zeros(len(held.group) + 1, np.int64)
    np.add.at(found, held.slot[until], held.delta[until])
    return found


models = histories.map(lambda made: Modelled(*made)).filter(lambda made: made.device)
"""Models that have recorded something."""


def replay_of(model: Modelled) -> Replay:
    """What the analyses make of a model's snapshot."""
    return Replay(model.snapshot, model.device)


def lives_of(rows: Sequence[tuple[int, ...]]) -> Lifetimes:
    """Of (born, gone[, size[, stack[, freed]]]), in order of birth."""
    padded = [(*row, *(1, -1, row[1])[len(row) - 2 :]) for row in rows]
    born, gone, size, stack, freed = np.array(padded, np.int64).reshape(-1, 5).T
    return Lifetimes(512 * np.arange(len(rows)), size, stack, born, freed, gone, 0)


def stacks_of(*stacks: list[tuple[str, str, int]]) -> Stacks:
    """Stacks of frames (function, file, line), innermost first; each frame once."""
    frames = list(dict.fromkeys(frame for stack in stacks for frame in stack))
    return Stacks(
        name=[name for name, _, _ in frames],
        filename=[file for _, file, _ in frames],
        line=np.array([line for _, _, line in frames], np.int64),
        start=np.cumsum([0, *map(len, stacks)]),
        frame=np.array([frames.index(f) for s in stacks for f in s], np.int64),
    )
