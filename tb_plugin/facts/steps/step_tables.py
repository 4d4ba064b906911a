"""Steps of single ranks with their parts: as they were rolled up, or one by one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.collector.format.columns import STEP_TABLE
from memboard.tb_plugin.analysis.series.labels import part_words
from memboard.tb_plugin.analysis.series.rows import Rows, on_steps
from memboard.tb_plugin.analysis.series.step_parts import (
    OTHER,
    PARTS,
    StepRows,
    other_part,
)
from memboard.tb_plugin.api.base import f64
from memboard.tb_plugin.api.time.steps import AbsentPart, StepPart
from memboard.tb_plugin.facts.ranks.columns import ALLOCATED, RSS, STEP_TIME
from memboard.tb_plugin.facts.steps.collections import collected_steps
from memboard.tb_plugin.formats.recording.series import WALL, SeriesKey, schemas_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import numpy.typing as npt

    from memboard.collector.format.encoding.numeric import Values
    from memboard.tb_plugin.analysis.arrays import Floats, Ints
    from memboard.tb_plugin.analysis.findings.cycles import CollectedSteps
    from memboard.tb_plugin.budget import Budget
    from memboard.tb_plugin.facts.series.selection import XAxis
    from memboard.tb_plugin.formats.recording.rank_file import RankFile
    from memboard.tb_plugin.formats.recording.series import SeriesReader
    from memboard.tb_plugin.index.run import AttemptFiles, Run

COLUMNS: Final = tuple(f"{part}_seconds" for part in PARTS)
_AXES: Final = ("step_first", "step_last", "ns_first", "ns_last")

_ATTACH: Final = "attach it: rec.attach(model, optimizer)"
_SEEN_BY: Final[dict[str, tuple[str, str]]] = {
    "dataloader": (
        "no dataloader was seen",
        "iterate a torch DataLoader, or wrap yours: rec.loader(dataloader)",
    ),
    "forward": ("no model is attached", _ATTACH),
    "backward": (
        "no backward was seen",
        "attach the model, and call loss.backward() on the training thread",
    ),
    "optimizer": ("no optimizer was seen", _ATTACH),
    "zero_grad": ("no optimizer was seen", _ATTACH),
    "checkpoint": (
        "no checkpoint was seen",
        (
            "torch.save and torch.distributed.checkpoint are recorded automatically; wrap"
            ' others in rec.span("checkpoint")'
        ),
    ),
    "eval": (
        "no evaluation was seen",
        'put it into rec.phase("eval"), or use a trainer integration',
    ),
    "communication": (
        "no collective was seen on the training thread",
        (
            "collectives inside a backward (DDP, FSDP) count as that; a torch profile shows"
            " them separately"
        ),
    ),
}
"""Why a part was not recorded, and what records it."""


class StepTables:
    """Reads the step table of a run's ranks, in one phase, on one axis."""

    def __init__(
        self, reader: SeriesReader, run: Run, phase: str, axis: XAxis | None = None
    ) -> None:
        """Without an `axis`, x is the step."""
        self._reader = reader
        self._run = run
        self._axis = axis
        self.key: Final = SeriesKey(STEP_TABLE, STEP_TIME, phase)

    def rollup(self, rank: int, *, keep: bool = False) -> StepRows | None:
        """All steps of a rank at the grain that was kept; None where it has none.

        `keep`: what is decoded is kept for the next time.
        """
        pieces = []
        for attempt, file in self._run.rank_files(rank):
            columns, width = self._aggregates(file, keep)
            if len(columns["step_first"]):
                pieces.append(self._piece(attempt, columns, width))
        return _merged(pieces)

    def between(
        self, rank: int, low: float, high: float, budget: Budget
    ) -> StepRows | None:
        """The steps `low..high` of a rank, one by one; None where that takes too long.

        Of steps that were run twice, the later run's, as everywhere.
        """
        wanted = ["step", "time_ns", STEP_TIME, *COLUMNS]
        pieces = []
        for attempt, file in self._run.rank_files(rank):
            if not schemas_of(file, self.key):
                continue
            columns = self._reader.rows_between(
                file, self.key, wanted, low, high, budget
            )
            if columns is None:
                return None
            if len(columns["step"]):
                pieces.append(self._piece(attempt, _as_buckets(columns), 1))
        rows = _merged(pieces)
        if rows is None:
            return None
        inside = np.flatnonzero((rows.first >= low) & (rows.first <= high))
        return rows.take(inside) if len(inside) else None

    def collected(
        self, rank: int, steps: Ints, budget: Budget
    ) -> CollectedSteps | None:
        """What the garbage collector did in some steps of a rank's last file.

        None where that was not recorded, or cannot be read in time.
        """
        files = self._run.rank_files(rank)
        if not files:
            return None
        file = files[-1][1]
        return collected_steps(file, self._reader, self.key.phase, steps, budget)

    def _aggregates(
        self, file: RankFile, keep: bool
    ) -> tuple[Mapping[str, Values], int]:
        own = {
            column.name
            for schema in schemas_of(file, self.key)
            for column in schema.columns
            # Columns that are no headlines are kept elsewhere, and more coarsely.
            if column.headline or column.name == STEP_TIME
        }
        names = [STEP_TIME, *(column for column in COLUMNS if column in own)]
        wanted = [
            f"{column}:{statistic}" for column in names for statistic in ("max", "mean")
        ]
        columns, width = self._reader.aggregates(
            file, self.key, [*_AXES, *wanted], keep=keep
        )
        return columns, width

    def _piece(
        self, attempt: AttemptFiles, columns: Mapping[str, Values], width: int
    ) -> StepRows:
        clock = None if self._axis is None else self._axis.clocks[attempt.index]
        first = np.asarray(columns["step_first"], np.int64)
        last = np.asarray(columns["step_last"], np.int64)
        order = np.argsort(columns["ns_first"], kind="stable")
        high = _floats(columns, f"{STEP_TIME}:max", order)
        if clock is None:
            end_x, start_x = last[order].astype(np.float64), float(first[order][0]) - 1
        else:
            end_x = np.asarray(clock.x_of(columns["ns_last"]), np.float64)[order]
            began = float(clock.x_of(columns["ns_first"])[order][0])
            start_x = began - 1e3 * float(np.nan_to_num(high[0]))
        return StepRows(
            first=first[order],
            last=last[order],
            end_x=end_x,
            end_ms=WALL.x_of(columns["ns_last"])[order],
            start_x=start_x,
            high=high,
            mean=_floats(columns, f"{STEP_TIME}:mean", order),
            part_high=np.stack([_floats(columns, f"{c}:max", order) for c in COLUMNS]),
            part_mean=np.stack([_floats(columns, f"{c}:mean", order) for c in COLUMNS]),
            width=width,
        )


def _floats(
    columns: Mapping[str, Values], column: str, order: npt.NDArray[np.intp]
) -> Floats:
    values = columns.get(column)
    if values is None or len(values) != len(order):
        return np.full(len(order), np.nan)
    floats = np.asarray(values, np.float64)[order]
    # No step takes less than nothing, or for ever: such a file says nothing of it.
    return np.where(np.isfinite(floats) & (floats >= 0), floats, np.nan)


def _as_buckets(rows: Mapping[str, Values]) -> dict[str, Values]:
    """Single rows as buckets of one row each."""
    columns: dict[str, Values] = {
        "step_first": rows["step"],
        "step_last": rows["step"],
        "ns_first": rows["time_ns"],
        "ns_last": rows["time_ns"],
    }
    for column in (STEP_TIME, *COLUMNS):
        columns[f"{column}:max"] = columns[f"{column}:mean"] = rows[column]
    return columns


def _merged(pieces: Sequence[StepRows]) -> StepRows | None:
    """Attempts in order, each step once."""
    if not pieces:
        return None
    joined = StepRows.joined(pieces, width=max(piece.width for piece in pieces))
    places = np.arange(len(joined), dtype=np.float64)
    kept = on_steps([Rows(joined.first, joined.last, places, places, 1)])
    if len(kept) == 0:
        return None
    chosen = joined.take(kept.high.astype(np.intp))
    return replace(
        chosen,
        first=np.asarray(kept.first, np.int64),
        last=np.asarray(kept.last, np.int64),
        # A clock that was set back must not turn the picture around.
        end_x=np.maximum.accumulate(chosen.end_x),
        start_x=min(chosen.start_x, float(chosen.end_x[0])),
    )


def parts_of(seconds: Floats, parts: Floats) -> tuple[StepPart, ...]:
    """The parts of steps that are known, by (part, step), and what they leave."""
    seconds_by_part = {
        part: values
        for part, values in zip(PARTS, parts, strict=True)
        if not np.isnan(values).all()
    }
    if seconds_by_part:
        seconds_by_part[OTHER] = other_part(seconds, parts)
    return tuple(
        StepPart(part, *part_words(part), f64(values))
        for part, values in seconds_by_part.items()
    )


def memory_series(run: Run, phase: str) -> str | None:
    """The step's memory peak: of the device, else resident."""
    key = run.catalogue.find(ALLOCATED, phase) or run.catalogue.find(RSS, phase)
    return None if key is None else key.text


def absent_parts(
    run: Run, rank: int | None, recorded: Collection[str]
) -> tuple[AbsentPart, ...]:
    """What the rank did not record of the parts of its steps."""
    off = _switched_off(run, rank)
    return tuple(
        AbsentPart(part, part_words(part)[0], *(off or _SEEN_BY[part]))
        for part in PARTS
        if part not in recorded
    )


def _switched_off(run: Run, rank: int | None) -> tuple[str, str] | None:
    """Why no part of any step was recorded; None where some could be."""
    if run.made_of != "recording":
        return "the files of another tool hold no steps", "record with mb.record"
    files = [file for _, file in run.rank_files(rank)] if rank is not None else []
    config = files[-1].header.config if files else {}
    spans = config.get("spans")
    if not isinstance(spans, dict):
        return (
            "the recording knows no parts of steps",
            "record with spans.automatic=True (the default of newer versions)",
        )
    for setting in ("enabled", "automatic"):
        if spans.get(setting) is False:
            return f"spans.{setting} is off", f"set spans.{setting}=True"
    return None
