"""The six headline numbers: each with its worst rank, a sparkline and its caveats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from memboard.collector.format.sizes import agreeing, part_of
from memboard.tb_plugin.analysis.series.growth import FEW_ROWS
from memboard.tb_plugin.api.base import f64
from memboard.tb_plugin.api.overview import Headline
from memboard.tb_plugin.budget import Budget
from memboard.tb_plugin.contract.wire import finite
from memboard.tb_plugin.facts.overview.headline_words import (
    CAVEATS,
    LINES,
    WORDS,
    HeadlineKey,
)
from memboard.tb_plugin.facts.overview.sparklines import Sparklines
from memboard.tb_plugin.facts.ranks.columns import (
    ALLOCATED,
    CPU,
    DEVICE_USED,
    RESERVED,
    RSS,
    STEP_TIME,
    WORKERS,
)
from memboard.tb_plugin.facts.ranks.headroom import (
    device_headroom,
    host_headroom,
    host_use_column,
    predicted_headroom,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from memboard.collector.format.prediction import Prediction
    from memboard.tb_plugin.analysis.arrays import Floats
    from memboard.tb_plugin.api.base import Unit
    from memboard.tb_plugin.facts.ranks.rank_numbers import PerRank, RankNumbers
    from memboard.tb_plugin.facts.ranks.rank_strip import Strip
    from memboard.tb_plugin.formats.recording.series import SeriesReader
    from memboard.tb_plugin.index.run import Run

_EXACT_SECONDS: Final = 0.1

_SOURCES: Final = {
    ALLOCATED: "device",
    RESERVED: "device",
    DEVICE_USED: "device_free",
    RSS: "rss",
    CPU: "cpu",
    WORKERS: "workers",
}
"""Source of each column: its words explain an absence."""

_UNITS: Final[dict[HeadlineKey, Unit]] = {
    "growth": "bytes_per_step",
    "rss_growth": "bytes_per_step",
    "step_time": "seconds",
    "cpu": "percent",
}
_LOWEST: Final = ("headroom", "rss_headroom")
"""Of which the lowest is the worst."""
_STEPLESS: Final = ("step_time", "cpu")
"""Medians stand at no step."""

_NOTHING_OUTSIDE: Final = (
    "a virtual GPU holds nothing but torch's, and nothing was estimated"
)
_NO_HEADROOM: Final = "of a virtual GPU it is known once the program has run its steps"


@dataclass(frozen=True, slots=True)
class Headlines:
    """What the numbers are made from."""

    reader: SeriesReader
    run: Run
    ranks: Sequence[int]
    numbers: RankNumbers
    strip: Strip
    predictions: Mapping[int, Prediction]
    """By rank; of runs on a virtual GPU."""
    is_virtual: bool

    def all(self) -> tuple[Headline, ...]:
        """Six numbers for the device, or six for the host where there is none."""
        if self.numbers.has(ALLOCATED):
            return self._of_device()
        return self._of_host()

    def _of_device(self) -> tuple[Headline, ...]:
        fragmented = self.numbers.fragmentation(self.ranks, RESERVED)
        peak = self._peak_caveats()
        return (
            self._headline("peak_allocated", ALLOCATED, peak),
            self._headline("peak_reserved", RESERVED, peak),
            self._headroom(),
            self._headline(
                "fragmentation",
                RESERVED,
                (*peak, *_estimated(fragmented)),
                fragmented,
                line=self._lines.fragmentation,
            ),
            self._non_torch(),
            self._growth("growth", ALLOCATED),
        )

    def _non_torch(self) -> Headline:
        if self.is_virtual:
            predictions = self.predictions.items()
            ends = {
                rank: (prediction.outside[1], prediction.outside[0])
                for rank, prediction in predictions
            }
            return _range("non_torch", ends, max, _NOTHING_OUTSIDE)
        other = self.numbers.non_torch(self.ranks)
        return self._headline(
            "non_torch",
            DEVICE_USED,
            ("sampled", *_estimated(other)),
            other,
            line=self._lines.non_torch,
        )

    def _of_host(self) -> tuple[Headline, ...]:
        pace = self.numbers.highest(self.ranks, STEP_TIME)
        cpu = self.numbers.highest(self.ranks, CPU)
        one_host: tuple[str, ...] = ()
        if (
            len(set(self.strip.host)) > 1
            and np.count_nonzero(~np.isnan(cpu.value)) == 1
        ):
            one_host = ("one_host",)
        pace_caveats = ("after_warmup", *_estimated(pace), *self._few_steps())
        return (
            self._headline("rss_peak", RSS, ("sampled",)),
            self._host_headroom(),
            self._growth("rss_growth", RSS),
            self._headline("step_time", STEP_TIME, pace_caveats, pace),
            self._headline("cpu", CPU, ("sampled", *one_host), cpu),
            self._headline("workers_rss", WORKERS, ("sampled",)),
        )

    def _headroom(self) -> Headline:
        """Capacity less the most that was used, by anyone where that was recorded.

        Of a virtual GPU: less what a real one would need.
        """
        if self.is_virtual:
            return _range(
                "headroom", predicted_headroom(self.predictions), min, _NO_HEADROOM
            )
        sampled = self.numbers.has(DEVICE_USED)
        return self._headline(
            "headroom",
            DEVICE_USED if sampled else RESERVED,
            ("sampled",) if sampled else self._peak_caveats(),
            device_headroom(self.numbers, self.strip),
            reason=self._unknown_capacity(),
            line=lambda rank: self._lines.headroom(rank, self._capacity(rank)),
        )

    def _host_headroom(self) -> Headline:
        caveats: tuple[str, ...] = ("sampled",)
        if self.strip.capacity_kind != "cgroup_limit":
            caveats += ("no_limit",)
        return self._headline(
            "rss_headroom",
            RSS,
            caveats,
            host_headroom(self.run, self.numbers, self.strip),
            reason=self._unknown_capacity(),
            line=lambda rank: self._lines.host_headroom(
                [
                    other
                    for other, host in self.strip.host_of.items()
                    if host == self.strip.host_of[rank]
                ],
                host_use_column(self.strip),
                self._capacity(rank),
            ),
        )

    def _growth(self, key: HeadlineKey, column: str) -> Headline:
        nowhere = np.full(len(self.ranks), np.nan)
        recorded = self.numbers.highest(self.ranks, column)
        return self._headline(
            key,
            column,
            ("after_warmup", *self._few_steps()),
            recorded._replace(value=self.strip.growth, step=nowhere),
            reason=None if np.isnan(recorded.value).all() else "too few steps so far",
        )

    def _headline(
        self,
        key: HeadlineKey,
        column: str,
        caveats: tuple[str, ...],
        number: PerRank | None = None,
        *,
        reason: str | None = None,
        line: Callable[[int], Floats] | None = None,
    ) -> Headline:
        """One number: the worst rank's. `reason` says why it is absent, if it is.

        Without a `number` it is the column's highest; `line` gives its values over the
        run, without it they are the column's.
        """
        number = number or self.numbers.highest(self.ranks, column)
        unit, value = _UNITS.get(key, "bytes"), number.value
        if num_unread := self.numbers.num_unread(self.ranks):
            value = np.full(len(value), np.nan)
            unread = part_of(num_unread, len(self.ranks), "rank")
            reason = f"{unread} {agreeing(num_unread, 'is', 'are')} still being read"
        if np.isnan(value).all():
            why = reason or self._why_absent(column)
            return _made(key, unit=unit, absent_reason=why)
        is_lowest = key in _LOWEST
        index = int(np.nanargmin(value) if is_lowest else np.nanargmax(value))
        rank, step = self.ranks[index], None
        # Where nothing was used there is no step that used most.
        is_at_step = is_lowest or value[index] > 0
        if key not in _STEPLESS and is_at_step and not np.isnan(number.step[index]):
            step = int(number.step[index])
            if number.width[index] > 1:
                step = self._exact_step(rank, column, step)
        return _made(
            key,
            unit=unit,
            value=finite(value[index]),
            rank=rank,
            step=step,
            sparkline=line(rank) if line else self._lines.highest(rank, column),
            caveats=tuple(CAVEATS[caveat] for caveat in dict.fromkeys(caveats)),
        )

    def _exact_step(self, rank: int, column: str, first: int) -> int:
        """The step of the highest row of the bucket that begins at `first`."""
        key = self.run.catalogue.find(column, self.run.catalogue.phase(None))
        if key is None:
            return first
        for _, file in self.run.rank_files(rank):
            buckets = self.reader.rollup(file, key, None)
            if buckets is None or buckets.width == 1:
                continue
            for bucket in np.flatnonzero(buckets.first == first)[:1]:
                low, high = float(first), float(buckets.last[bucket])
                rows = self.reader.row_by_row(
                    file,
                    key,
                    None,
                    low,
                    high,
                    Budget(_EXACT_SECONDS),
                )
                if rows is not None:
                    matches = rows.first[rows.high == buckets.high[bucket]]
                    if len(matches):
                        return int(matches[0])
        return first

    @property
    def _lines(self) -> Sparklines:
        return Sparklines(self.reader, self.run)

    def _capacity(self, rank: int) -> float:
        return float(self.strip.capacity_bytes[self.ranks.index(rank)])

    def _why_absent(self, column: str) -> str:
        if len(self.ranks) < len(self.run.ranks) and self.numbers.has(column):
            return "recorded by another rank of this run"
        source = _SOURCES.get(column)
        for absent in self.run.catalogue.absent():
            if absent.source == source and absent.reason:
                return absent.reason
        return "it was not recorded"

    def _unknown_capacity(self) -> str | None:
        unknown = np.isnan(self.strip.capacity_bytes).all()
        return "the capacity is not known" if unknown else None

    def _few_steps(self) -> tuple[str, ...]:
        return ("few_steps",) if self.strip.num_steps < FEW_ROWS else ()

    def _peak_caveats(self) -> tuple[str, ...]:
        """Peaks that are never reset say nothing about single steps."""
        for file in self.run.files.values():
            if file.header.config.get("device_peaks") == "run":
                return ("cumulative_peak",)
        return ()


def _range(
    key: HeadlineKey,
    ends: Mapping[int, tuple[int, int]],
    worst: Callable[..., int],
    reason: str,
) -> Headline:
    """An estimate, of the rank whose worse end, the first one, is worst."""
    rank = worst(ends, key=lambda rank: ends[rank][0]) if ends else None
    value, other = (None, None) if rank is None else ends[rank]
    if rank is None:
        return _made(key, unit="bytes", absent_reason=reason)
    return _made(
        key,
        unit="bytes",
        value=None if value is None else float(value),
        rank=rank,
        caveats=(CAVEATS["estimated"],),
        other_end=None if other is None else float(other),
    )


def _made(
    key: HeadlineKey, *, sparkline: Sequence[float] | Floats = (), **values: Any
) -> Headline:
    title, meaning = WORDS[key]
    nothing = {"value": None, "rank": None, "step": None, "caveats": ()}
    return Headline(
        key=key,
        title=title,
        meaning=meaning,
        line=f"The line: {LINES.get(key, title)}, over the run.",
        sparkline=f64(sparkline),
        **{"absent_reason": None, **nothing, **values},
    )


def _estimated(number: PerRank) -> tuple[str, ...]:
    """Numbers from two columns, and medians, are exact only from single rows."""
    return ("estimated",) if number.widest > 1 else ()
