"""Captures of the allocator in a simulated run: a few ranks, and one that runs out.

A chosen rank has a history at two steps, one in the middle of the run and the last, each
with the few steps before it. The rank that the fault `oom` names keeps something of every
step until its device is full: its file ends with the report of the error and the history
that explains it, as a recorder leaves them. What a fault says of a rank is in its history
too: memory that leaks, memory that only this rank holds.

Each step is given the batch that takes it to the peak that the rank's step table has for
it, and the table then says what the allocator really did: a peak in a history is the
peak of its step.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from collector.format import oom
from collector.format.memory import CATEGORIES
from collector.format.records import Capture
from collector.format.snapshots import tables_of
from collector.format.snapshots.tags import tag_text
from collector.simulate.allocator.allocator import SimulatedOutOfMemoryError
from collector.simulate.allocator.settings import MIB, AllocatorSettings
from collector.simulate.curves import DEVICE_TOTAL_BYTES, NON_TORCH_BYTES
from collector.simulate.faults import IMBALANCE_BYTES, RANKS_PER_HOST, host_name
from collector.simulate.snapshots.form import Form
from collector.simulate.snapshots.rank import Machine, SimulatedRank, active_peak
from collector.simulate.snapshots.training import training_shape_for
from collector.simulate.stats import (
    ACTIVE,
    ALLOCATED,
    POOL_INFIXES,
    REQUESTED,
    RESERVED,
    row_names,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.format.oom import Frame
    from collector.format.records import CaptureTable
    from collector.simulate.faults import Fault
    from collector.simulate.ranks import RankBatch

MAX_HISTORY_RANKS: Final = 6
"""Spread over the run; the ranks of single faults come on top."""

STEPS_BEFORE: Final = 3
"""Whole steps that a capture shows, its own included."""

_GROWING_STEPS: Final = 9
"""Of the failing rank, before the one that fails: its history shows these too."""

_SPARE_BYTES: Final = 64 * MIB
"""Rather above the peak that is wanted than below it: blocks and batches are rounded."""

_IN_HISTORY: Final = ("allocated", "active", "requested")
"""Statistics that the history and the step table share."""

_KEPT_SITE: Final = "kept outputs"
_PIECES: Final = 24
_FORM: Final = Form("2.13", "alloc")
_FAULTS: Final = ("oom", "leak", "imbalance")
_SETTINGS: Final = "expandable_segments:True"

_CATEGORY_OF_SITE: Final = {
    "parameter": "sharded_param",
    "moments": "optimizer",
    "reduce": "sharded_grad",
    "accumulate": "sharded_grad",
}


def has_history(rank: int, faults: Sequence[Fault], num_ranks: int) -> bool:
    """Whether a rank's allocator is captured."""
    apart = -(-num_ranks // MAX_HISTORY_RANKS)
    return rank % apart == 0 or any(
        fault.kind in _FAULTS and rank == fault.ranks[0] for fault in faults
    )


@dataclass(frozen=True, slots=True)
class Histories:
    """What one rank's allocator left."""

    captures: list[Capture] = field(default_factory=list)
    """In order of time."""
    rows: dict[int, dict[str, int]] = field(default_factory=dict)
    """By step that a history shows: the statistics at its end, by column."""

    def correct(self, batch: RankBatch, row: int) -> None:
        """Let the step table say of these steps what the allocator did."""
        columns = batch.columns
        for step, stats in self.rows.items():
            for name, value in stats.items():
                columns[name][row, step] = value
            for suffix in ("bytes", "peak_bytes"):
                for infix in POOL_INFIXES:  # what is in use is no unused piece
                    pieces = columns[f"inactive_split{infix}_{suffix}"]
                    reserved = columns[f"reserved{infix}_{suffix}"][row, step]
                    room = max(0, reserved - columns[f"active{infix}_bytes"][row, step])
                    pieces[row, step] = min(pieces[row, step], room)


def history_captures(
    batch: RankBatch, row: int, faults: Sequence[Fault], num_ranks: int, seed: int
) -> Histories:
    """The captures of one rank; none where it has no history."""
    rank = batch.ranks[row]
    if not has_history(rank, faults, num_ranks):
        return Histories()
    mine = {fault.kind: fault for fault in faults if rank == fault.ranks[0]}
    num_steps = int(batch.num_steps[row])
    unequal = IMBALANCE_BYTES if "imbalance" in mine else 0
    run = _Run(batch, row, seed, unequal)
    if "oom" in mine:
        captures = _failing(run, num_ranks, mine["oom"])
        return Histories(captures, run.rows)
    leak = mine.get("leak")
    captures = []
    for step in sorted({num_steps // 2, num_steps - 1}):
        for before in range(max(0, step + 1 - STEPS_BEFORE), step + 1):
            if leak is not None and before >= leak.first_step:
                run.keep((before + 1 - leak.first_step) * leak.bytes_per_step)
            run.step(before, run.peaks[before])
        captures.append(_history(run, step, function="step", context="end"))
    return Histories(captures, run.rows)


class _Run:
    """One rank's allocator, driven at the times of the run's own steps."""

    def __init__(
        self, batch: RankBatch, row: int, seed: int, unequal_bytes: int
    ) -> None:
        """`unequal_bytes`: held from the start, beyond what the model needs."""
        rank, times = batch.ranks[row], batch.time_ns[row]
        idle = int(batch.columns["allocated_bytes"][row].min()) - unequal_bytes
        shape = training_shape_for(
            DEVICE_TOTAL_BYTES,
            state_share=idle / DEVICE_TOTAL_BYTES,
            activation_share=0.5,
            num_layers=12,
        )
        machine = Machine(
            total_bytes=DEVICE_TOTAL_BYTES,
            context_bytes=NON_TORCH_BYTES,
            shape=shape,
            settings=AllocatorSettings(text=_SETTINGS, expandable_segments=True),
            max_entries=100_000,
            stacks="python",
            resumed=True,
        )
        self.times = times
        self.random = np.random.default_rng([seed, rank])
        self.rank = SimulatedRank(
            machine,
            int(self.random.integers(0, 2**31)),
            tag=partial(_tag, phase="train"),
            started_us=int(times[0]) // 1000,
        )
        self.number = rank
        self.peaks: list[int] = batch.columns["allocated_peak_bytes"][row].tolist()
        """By step, as the step table has them."""
        self.rows: dict[int, dict[str, int]] = {}
        self.kept_bytes = 0
        self._needs = _needs_of(machine)
        self._unequal_bytes = 0
        if unequal_bytes:
            self._unequal_bytes = self.rank.plant_growth(
                unequal_bytes, _PIECES, "feature cache"
            )

    def step(self, step: int, peak_bytes: int) -> None:
        """The step of that number, at its time, up to about that peak.

        Raises:
            SimulatedOutOfMemoryError: the device is full.
        """
        stats = self.rank.allocator.stats
        if step not in self.rows:
            stats.reset_peaks()
        try:
            self._run(step, peak_bytes)
        finally:
            found = zip(row_names(), stats.row(), strict=True)
            self.rows[step] = {
                name: value for name, value in found if name.startswith(_IN_HISTORY)
            }

    def _run(self, step: int, peak_bytes: int) -> None:
        began = int(self.times[step - 1 if step else 0]) // 1000
        history = self.rank.history
        history.now_us = max(history.now_us, began)
        self.rank.training.num_steps = step - 1
        least, per_token = self._needs
        rest = peak_bytes + _SPARE_BYTES - self.kept_bytes - self._unequal_bytes - least
        self.rank.step(max(64, int(rest / per_token) // 8 * 8))

    def keep(self, num_bytes: int) -> None:
        """Have kept so much of all steps so far."""
        more = (num_bytes - self.kept_bytes) // MIB * MIB
        if more > 0:
            self.kept_bytes += self.rank.plant_growth(more, _PIECES, _KEPT_SITE)


def _tag(step: int, phase: str) -> str:
    return tag_text(step=step, phase=phase, function="step")


@lru_cache(maxsize=8)
def _needs_of(machine: Machine) -> tuple[int, float]:
    """What a step peaks at without any token, and by how much more with each."""
    most = machine.shape.max_tokens
    low = active_peak(machine, most // 2, ALLOCATED)
    high = active_peak(machine, most, ALLOCATED)
    per_token = (high - low) / (most - most // 2)
    return int(high - per_token * most), per_token


def _failing(run: _Run, num_ranks: int, fault: Fault) -> list[Capture]:
    """The last steps of the rank whose device fills up, its report and its history.

    It keeps as much of each step as the step table says: all it can from the fault's
    first step on, in equal parts.
    """
    last_step = fault.last_step
    usual = run.peaks[fault.first_step]
    num_parts = max(1, last_step - fault.first_step)
    # The last step lacks a part of what the one before it kept.
    lacking = 8 * num_parts
    room = DEVICE_TOTAL_BYTES - NON_TORCH_BYTES - usual
    full = room * lacking // (lacking - 1)
    try:
        for step in range(max(0, last_step - _GROWING_STEPS), last_step + 1):
            run.keep(full * max(0, step - fault.first_step) // num_parts)
            run.step(step, usual + run.kept_bytes)
        while True:  # a short last batch; the next one is as good
            run.keep(run.kept_bytes + 512 * MIB)
            run.step(last_step, usual + run.kept_bytes)
    except SimulatedOutOfMemoryError as error:
        report = _report(run, error, last_step, num_ranks)
        history = _history(run, last_step, context="oom", label="oom", report=1)
        return [report, history]


def _history(run: _Run, step: int, **fields: Any) -> Capture:
    """The allocator as it is now."""
    report = fields.pop("report", None)
    snapshot = run.rank.snapshot(_FORM)
    tensors = _tensors(run.rank)
    meta: dict[str, Any] = {
        "device_type": "cuda",
        "recording": "ours",
        "num_segments": len(snapshot["segments"]),
        "num_blocks": sum(len(s["blocks"]) for s in snapshot["segments"]),
        "num_events": sum(map(len, snapshot["device_traces"])),
        "num_events_dropped": 0,
        "took_us": 0,
        "num_tensors": len(tensors["address"]),
        "num_tensors_dropped": 0,
        "simulated": True,
    }
    if report is not None:
        meta[oom.REPORT] = report
    is_call = "function" in fields
    return Capture(
        kind="history",
        time_ns=_now_ns(run, step),
        step=step,
        phase="train",
        iteration=step + 1 if is_call else 0,
        meta=meta,
        tables={**tables_of(snapshot), "tensors": tensors},
        **{"function": "", **fields},
    )


def _now_ns(run: _Run, step: int) -> int:
    """When it was captured: by the allocator's clock, and with its step's row."""
    return max(int(run.times[step]), run.rank.history.now_us * 1000)


def _tensors(rank: SimulatedRank) -> CaptureTable:
    """What a recorder would know of the addresses."""
    found = [
        (block, site)
        for block, site in rank.training.live.items()
        if site in _CATEGORY_OF_SITE
    ]
    codes = [CATEGORIES.index(_CATEGORY_OF_SITE[site]) for _, site in found]
    counts: dict[str, int] = {}
    names = []
    for _, site in found:
        counts[site] = counts.get(site, -1) + 1
        names.append(f"{site}.{counts[site]}")
    return {
        "address": np.array([block.address for block, _ in found], np.int64),
        "num_bytes": np.array([block.requested_bytes for block, _ in found], np.int64),
        "category": np.array(codes, np.int64),
        "name": tuple(names),
        "device": np.zeros(len(found), np.int64),
    }


def _report(
    run: _Run, error: SimulatedOutOfMemoryError, step: int, num_ranks: int
) -> Capture:
    """What the recorder of the failing rank writes first."""
    rank = run.rank
    stats = rank.allocator.stats
    holders, live_bytes, num_blocks = _holders(rank)
    reserved = stats.get(RESERVED)
    meta: dict[str, Any] = {
        **oom.META,
        oom.REPORT: 1,
        "origin": "oom",
        "num_ooms": 1,
        "device_type": "cuda",
        "device": 0,
        "requested_bytes": error.requested_bytes,
        "device_free_bytes": error.free_bytes,
        "device_total_bytes": DEVICE_TOTAL_BYTES,
        "other_bytes": DEVICE_TOTAL_BYTES - error.free_bytes - reserved,
        "memory": {
            **dict.fromkeys(oom.MEMORY),
            "allocated_bytes": stats.get(ALLOCATED),
            "allocated_peak_bytes": stats.get_peak(ALLOCATED),
            "active_bytes": stats.get(ACTIVE),
            "active_peak_bytes": stats.get_peak(ACTIVE),
            "reserved_bytes": reserved,
            "reserved_peak_bytes": stats.get_peak(RESERVED),
            "inactive_split_bytes": reserved - stats.get(ACTIVE),
            "requested_live_bytes": stats.get(REQUESTED),
            "num_ooms": 1,
        },
        "thread": "MainThread",
        "spans": ["train_step"],
        "rank": run.number,
        "local_rank": run.number % RANKS_PER_HOST,
        "world_size": num_ranks,
        "host_name": host_name(run.number),
        "allocator": {
            "settings": _SETTINGS,
            "backend": "native",
            "expandable_segments": True,
            "max_split_size_bytes": None,
            "garbage_collection_threshold": None,
        },
        "history": {
            "recording": "ours",
            "stacks": "python",
            "max_entries": 100_000,
            "events": True,
            "why_not": "",
        },
        "holders": {
            "live_bytes": live_bytes,
            "num_blocks": num_blocks,
            "source": "segments",
            "why_not": "",
        },
        "simulated": True,
        "report_us": 0,
    }
    tensors = _tensors(rank)
    category = np.asarray(tensors["category"])
    sizes = np.asarray(tensors["num_bytes"])
    sums = [
        (int(code), int(sizes[category == code].sum()), int((category == code).sum()))
        for code in np.unique(category)
    ]
    return Capture(
        kind=oom.KIND,
        time_ns=_now_ns(run, step),
        step=step,
        phase="train",
        function="train_step",
        iteration=0,
        label="oom",
        meta=meta,
        tables={
            "stack": oom.stack_table([_plain(rank.sites[rank.history.site].frames)]),
            **oom.holder_tables(holders),
            "categories": oom.category_table(sums),
        },
    )


def _holders(
    rank: SimulatedRank,
) -> tuple[list[tuple[int, int, list[Frame], int]], int, int]:
    """Live blocks by the line that allocated them: the largest, all bytes, all blocks."""
    held: dict[Any, list[Any]] = {}
    for block, site in rank.training.live.items():
        name = _CATEGORY_OF_SITE.get(site)
        code = -1 if name is None else CATEGORIES.index(name)
        entry = held.setdefault(rank.sites[block.site].frames, [0, 0, code])
        entry[0] += block.size_bytes
        entry[1] += 1
    rows = [
        (size, many, _plain(frames), code)
        for frames, (size, many, code) in held.items()
    ]
    rows.sort(key=lambda row: -row[0])
    return rows, sum(row[0] for row in rows), sum(row[1] for row in rows)


def _plain(frames: Sequence[Any]) -> list[Frame]:
    return [(frame.name, frame.filename, frame.line) for frame in frames]
