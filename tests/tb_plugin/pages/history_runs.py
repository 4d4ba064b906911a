"""Runs with histories for the routes' tests, and pictures drawn the slow way."""

from __future__ import annotations

import pickle
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from memboard.collector.format.snapshots import tables_of
from memboard.tb_plugin.server.routes import ROUTES
from tests.simulate import trained_rank
from tests.tb_plugin.analysis.slow_blocks import SlowBlocks
from tests.tb_plugin.client import Page, answered, refresh

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from memboard.tb_plugin.jobs.open_history import OpenHistory
    from tests.builders import RunBuilder
    from tests.simulate import SimulatedRank

PICTURES = (
    "stacks",
    "allocations",
    "allocation_holders",
    "allocation_live",
    "allocation_block",
    "allocation_range",
    "segments",
    "segment_timeline",
    "allocator_events",
)
"""Routes of what is made of an open history and a query."""

_trained: dict[tuple[int, bool], SimulatedRank] = {}


def view_of(name: str) -> Callable[[OpenHistory, Any], Any]:
    """What makes the answer of one of these routes."""
    found: Callable[[OpenHistory, Any], Any]
    found = getattr(import_module(f"memboard.tb_plugin.pages.{ROUTES[name]}"), name)
    return found


def trained(num_events: int = 3000, *, graph_pool: bool = False) -> SimulatedRank:
    """A simulated training; made once."""
    key = (num_events, graph_pool)
    if key not in _trained:
        _trained[key] = trained_rank(num_events, graph_pool=graph_pool)
    return _trained[key]


def captured(run: RunBuilder, snapshot: Any, rank: int = 0, **fields: Any) -> str:
    """A run with one history capture on a rank; its id."""
    made = run.rank(rank, world_size=rank + 1)
    entry = made.capture(
        "history",
        **{"function": "", "iteration": 0, "tables": tables_of(snapshot), **fields},
    )
    made.close()
    return f"{rank}-{made.header.attempt}-{entry.offset}"


def dropped(folder: Path, name: str, snapshot: Any) -> None:
    """A pickle in the logdir."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(pickle.dumps(snapshot, 4))


class Asked:
    """One history of one run, asked through the routes."""

    def __init__(self, logdir: Path, name: str = "exp", history: str | None = None):
        self.page = Page(logdir)
        self.run = self.page.run_id(name)
        self.history = history or self.histories()["default"]

    def histories(self, **query: Any) -> dict[str, Any]:
        refresh(self.page)
        return self.page.get("/histories", run=self.run, **query)

    def opened(self) -> dict[str, Any]:
        return answered(
            lambda: self.page.get("/history", run=self.run, history=self.history),
            lambda found: found["state"] != "opening",
        )

    def get(self, route: str, **query: Any) -> dict[str, Any]:
        return self.page.get(f"/{route}", run=self.run, history=self.history, **query)

    def raw(self, route: str, **query: Any) -> Any:
        return self.page.raw(f"/{route}", run=self.run, history=self.history, **query)


def asked_of(run: RunBuilder, snapshot: Any, **fields: Any) -> Asked:
    """A captured snapshot, opened."""
    history = captured(run, snapshot, **fields)
    asked = Asked(run.folder.parent, run.folder.name, history)
    assert asked.opened()["state"] == "ready"
    return asked


class Slow:
    """What a trace says, event by event: the live set at every event."""

    def __init__(self, snapshot: dict[str, Any], device: int = 0) -> None:
        trace = snapshot["device_traces"][device]
        self.num_events = len(trace)
        self.states: list[dict[int, tuple[int, int]]] = []
        """After each event, by address: size and the event that allocated it."""
        live: dict[int, tuple[int, int]] = {}
        for number, event in enumerate(trace):
            if event["action"] == "alloc":
                live[event["addr"]] = (event["size"], number)
            elif event["action"] == "free_completed":
                live.pop(event["addr"], None)
            self.states.append(dict(live))
        self.level = np.array(
            [sum(size for size, _ in state.values()) for state in self.states]
        )
        """Bytes as requested, after each event."""
        self.active = np.array(SlowBlocks(snapshot, device).levels(active=True)[1:])
        """Bytes of blocks, after each event."""


def painted(tile: dict[str, Any]) -> dict[tuple[int, int], float]:
    """Of a tile: the lower edge of each life in each column it is drawn in."""
    lives, runs = tile["lives"], tile["runs"]
    width = len(tile["columns"]["moment"])
    bands = tile["band_bytes"].reshape(-1, width)
    base = np.cumsum(bands, axis=0) - bands
    found: dict[tuple[int, int], float] = {}
    for slot, first, last, offset in zip(
        runs["slot"], runs["first"], runs["last"], runs["offset"], strict=True
    ):
        life, band = int(lives["life"][slot]), int(lives["band"][slot])
        for column in range(int(first), int(last) + 1):
            assert (life, column) not in found
            found[life, column] = float(offset + base[band, column])
    return found
