"""Differences in a sentence: of two runs by their numbers, of two moments by bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

import numpy as np

from memboard.collector.format.memory import NOUNS
from memboard.tb_plugin.analysis.allocator.groups import OUTSIDE as OUTSIDE_FORWARD
from memboard.tb_plugin.analysis.categories.frames import NO_STACK
from memboard.tb_plugin.analysis.findings.text import (
    duration_text,
    share_text,
    size_text,
)
from memboard.tb_plugin.analysis.series.step_parts import TIMES_ALIKE
from memboard.tb_plugin.contract.wire import finite
from memboard.tb_plugin.facts.comparison.run_sides import Number
from memboard.tb_plugin.facts.modules.tracked_peak import OUTSIDE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from memboard.tb_plugin.facts.comparison.difference import Difference
    from memboard.tb_plugin.facts.comparison.run_sides import Key, Side

_ALIKE: Final = 0.005
"""Peaks that differ by less of the larger one are about the same."""
_RSS_ALIKE: Final = 0.02
"""Likewise of resident memory: two starts of one program differ by a little."""
_PeakKey: TypeAlias = Literal["peak_allocated", "tensors", "rss_peak"]
_SHARES: Final[Mapping[_PeakKey, float]] = {
    "peak_allocated": _ALIKE,
    "tensors": _ALIKE,
    "rss_peak": _RSS_ALIKE,
}
_SUBJECTS: Final[Mapping[_PeakKey, tuple[str, str]]] = {
    "tensors": ("Tensors", "those"),
    "rss_peak": ("The resident memory", "that"),
}
"""Of peaks that are not the run's own: what peaks, and its pronoun."""
_MOST: Final = 0.5
"""Share of a difference that "mostly" means."""

_NEARLY_ALL: Final = 0.99
_MANY: Final = 1000
"""Per cent: more of them say nothing."""
_UNKNOWN: Final = "unknown"


class Pair(NamedTuple):
    """The numbers of both sides; None: unknown."""

    a: Number | None
    b: Number | None

    @property
    def known(self) -> tuple[float, float] | None:
        """A and B, where both are known."""
        if self.a is None or self.b is None:
            return None
        of_a, of_b = finite(self.a.value), finite(self.b.value)
        return None if of_a is None or of_b is None else (of_a, of_b)

    def is_alike(self, share: float) -> bool:
        """Whether they differ by at most a share, or by the noise of their steps."""
        if self.a is None or self.b is None:
            return False
        noise = max(self.a.spread, self.b.spread)
        largest = max(self.a.value, self.b.value)
        return abs(self.b.value - self.a.value) <= max(share * largest, noise)

    @property
    def ranks(self) -> list[int]:
        """Whose they are; of all ranks together nobody's."""
        known_ranks = [None if side is None else side.rank for side in self]
        return [rank for rank in known_ranks if rank is not None]


def runs_sentence(
    a: Side,
    b: Side,
    figures: Mapping[Key, Pair],
    tables: Sequence[Difference],
) -> str:
    """What differs, by B's view: it is the side that was chosen."""
    known_figures = {
        key: figure for key, figure in figures.items() if figure.known is not None
    }
    run_a, other = _names(a, b)
    key, peak = _leading_peak(known_figures, tables)
    if peak is None or peak.known is None:
        if a.goes_on or b.goes_on:
            return "The runs are still being read."
        return (
            f"No peak was recorded of both {run_a[:1].lower()}{run_a[1:]} and {other}."
        )
    of_a, of_b = peak.known
    by = of_b - of_a
    if key in _SUBJECTS:
        subject, pronoun = _SUBJECTS[key]
        run_a = f"{subject} of {run_a[:1].lower()}{run_a[1:]}"
        other = f"{pronoun} of {other}"
    against = f"{size_text(of_b)} against {size_text(of_a)}{_ranks(peak)}"
    peaks = "peak" if key == "tensors" else "peaks"
    if peak.is_alike(_SHARES[key]):
        sentence = f"{run_a} {peaks} about as high as {other} ({against})"
    else:
        way = "lower" if by < 0 else "higher"
        sentence = (
            f"{run_a} {peaks} {size_text(abs(by))} {way} than {other} ({against})"
            f"{_mostly(by, tables)}"
        )
    return f"{sentence}{_pace(known_figures.get('step_time'))}."


def _leading_peak(
    figures: Mapping[Key, Pair], tables: Sequence[Difference]
) -> tuple[_PeakKey, Pair | None]:
    """The device's; without one the tensors', unless resident memory alone differs."""
    device = figures.get("peak_allocated")
    if device is not None:
        return "peak_allocated", device
    tensors, rss = _tensors(tables), figures.get("rss_peak")
    if tensors is None:
        return "rss_peak", rss
    if rss is not None and tensors.is_alike(_ALIKE) and not rss.is_alike(_RSS_ALIKE):
        return "rss_peak", rss
    return "tensors", tensors


def _tensors(tables: Sequence[Difference]) -> Pair | None:
    """All tensors at the peak of the tracked step, where both sides tracked one."""
    for table in tables:
        if table.by == "category" and not np.isnan(table.held).any():
            a, b = table.held.sum(axis=0).tolist()
            return Pair(Number(a, None), Number(b, None))
    return None


def _names(a: Side, b: Side) -> tuple[str, str]:
    """B, which begins the sentence, and A."""
    if a.summary.id == b.summary.id:
        of_b = "The worst rank" if b.rank is None else f"Rank {b.rank}"
        return of_b, "the worst rank" if a.rank is None else f"rank {a.rank}"
    if a.rank == b.rank:
        return "This run", a.summary.name
    of_b = "This run" if b.rank is None else f"Rank {b.rank} of this run"
    return (
        of_b,
        a.summary.name if a.rank is None else f"rank {a.rank} of {a.summary.name}",
    )


def _ranks(peak: Pair) -> str:
    if len(peak.ranks) < 2:
        return ""
    of_a, of_b = peak.ranks
    if of_a == of_b:
        return f", rank {of_a}"
    return f", rank {of_b} against rank {of_a}"


def _mostly(by: float, tables: Sequence[Difference]) -> str:
    """What makes most of a difference: a line, or else a category of some modules."""
    largest_by = {}
    for table in tables:
        change = (table.held[:, 1] - table.held[:, 0]) * np.sign(by)
        index = int(np.argmax(change)) if len(change) else 0
        # Of a side that tracked nothing all are NaN.
        is_most = len(change) and change[index] > max(0.0, _MOST * float(change.sum()))
        largest_by[table.by] = table.labels[index] if is_most else ""
    line, module = largest_by.get("line", ""), largest_by.get("module", "")
    if line not in {"", NO_STACK}:
        return f": mostly at {line}"
    category = largest_by.get("category", _UNKNOWN)
    if category == _UNKNOWN or category not in NOUNS:
        return ""
    by_category = next(table for table in tables if table.by == "category")
    of_a, of_b = by_category.held[by_category.labels.index(category)].tolist()
    category_text = f": mostly {NOUNS[category]}"
    is_named = module not in {"", OUTSIDE, OUTSIDE_FORWARD}
    if is_named:
        category_text += f" of {module}"
    way = "less" if by < 0 else "more"
    percent = 100 * (of_b / of_a - 1) if of_a else _MANY
    share = f", {abs(percent):.0f} %" if abs(percent) < _MANY else ""
    return f"{category_text} ({size_text(abs(of_b - of_a))} {way}{share})"


def moments_sentence(a: float, b: float, tables: Sequence[Difference]) -> str:
    """How much more lives in B, and what most of it is."""
    if a == b:
        return "B holds as much as A."
    way = "more" if b > a else "less"
    share = 100 * abs(b - a) / a if a else 0.0
    digits = max(0, 3 - len(str(int(share))))
    share_text = f" ({share:.{digits}f} %)" if 0 < share < _MANY else ""
    return f"B holds {size_text(abs(b - a))} {way} than A{share_text}{_mostly(b - a, tables)}."


def steps_sentence(a: float, b: float) -> str:
    """How much longer a mean step of B's trace takes."""
    if not a or not b:
        return ""
    if a == b:
        return "A step of B takes as long as one of A."
    way = "longer" if b > a else "less"
    share = 100 * abs(b / a - 1)
    share_text = f" ({share:.3g} %)" if share < _MANY else ""
    return f"A step of B takes {duration_text(abs(b - a))} {way} than one of A{share_text}."


def _pace(time: Pair | None) -> str:
    if time is None or time.known is None or not time.known[0]:
        return ""
    of_a, of_b = time.known
    by = of_b / of_a - 1
    if time.is_alike(TIMES_ALIKE):
        return ""
    took = f"{duration_text(of_b)} against {duration_text(of_a)}"
    if 1 + by >= _MANY / 100:
        return f"; a step takes {1 + by:,.0f} times as long ({took})"
    way = "longer" if by > 0 else "less time"
    # Never all of it.
    share = share_text(-by) if by < -_NEARLY_ALL else f"{100 * abs(by):.0f} %"
    return f"; a step takes {share} {way} ({took})"
