"""Verdicts on simulated out-of-memory errors whose cause is known: the matrix.

    python -m tests.perf.oom_verdicts [--first-seed 10000] [--per-cause 30]

Seven causes, the same number of cases each, every second with a smaller trouble beside
it; torch 2.1 to 2.13, up to five ranks, a ring that overflowed in some, the exception
unwound before the snapshot in a third. Seeds from 10,000 on were held back while the
rules were made. Rows are the truth, columns the verdict. Judged twice: with the
device's size, as our own recordings have it, and from the pickles alone.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING

from memboard.tb_plugin.analysis.oom.case import NAMES, Case
from memboard.tb_plugin.analysis.oom.judge import verdict
from tests.perf import bench
from tests.simulate import OOM_CAUSES
from tests.tb_plugin.analysis.oom_cases import HELD_BACK, cases, judged, without_size

if TYPE_CHECKING:
    from collections.abc import Mapping

WANTED = 0.95
"""Precision and recall of each cause."""
MOST_UNSURE = 0.1


def main() -> None:
    given = bench.options(__doc__, first_seed=HELD_BACK, per_cause=30)
    sized: Counter[tuple[str, str]] = Counter()
    alone: Counter[tuple[str, str]] = Counter()
    beside: Counter[str] = Counter()
    seconds = 0.0
    for case in cases(given.first_seed, given.per_cause):
        started = time.perf_counter()
        found = judged(case)
        seconds += time.perf_counter() - started
        cause = found.label.cause
        sized[cause, found.verdict.cause] += 1
        alone[cause, verdict(Case(facts=without_size(found.facts))).cause] += 1
        beside["planted"] += len(found.label.also)
        beside["named"] += len({*found.verdict.also} & {*found.label.also})
        beside["more"] += len({*found.verdict.also} - {*found.label.also})
    total = sum(sized.values())
    print(f"{total} cases, seeds {given.first_seed} and up, {seconds:.1f} s to judge")
    print_matrix("with the device's size", sized)
    print_goal(sized)
    print_matrix(
        "from the pickles alone, which do not say how large the device is", alone
    )
    print(
        f"\nsmaller troubles planted beside {beside['planted']}, of them named"
        f" {beside['named']}; others named {beside['more']}"
    )


def print_matrix(title: str, counts: Mapping[tuple[str, str], int]) -> None:
    """The matrix with precision and recall of each cause."""
    print(f"\n{title}\n")
    row = bench.table("truth", *NAMES, "recall", "precision")
    for cause in OOM_CAUSES:
        cells = (counts.get((cause, told)) for told in NAMES)
        row(cause, *cells, *rates(counts, cause))


def rates(counts: Mapping[tuple[str, str], int], cause: str) -> tuple[float, float]:
    """Recall and precision of a cause."""
    right = counts.get((cause, cause), 0)
    there = sum(counts.get((cause, told), 0) for told in NAMES)
    told_so = sum(counts.get((other, cause), 0) for other in OOM_CAUSES)
    return right / max(1, there), right / max(1, told_so)


def print_goal(counts: Mapping[tuple[str, str], int]) -> None:
    """Whether each cause is told as well as it is meant to be."""
    worst = min(min(rates(counts, cause)) for cause in OOM_CAUSES)
    total = sum(counts.values())
    unsure = sum(counts.get((cause, "unsure"), 0) for cause in OOM_CAUSES) / total
    met = "met" if worst >= WANTED and unsure <= MOST_UNSURE else "NOT met"
    print(
        f"worst recall or precision {worst:.2f} (at least {WANTED}), unsure"
        f" {100 * unsure:.1f} % (at most {100 * MOST_UNSURE:.0f} %): {met}"
    )


if __name__ == "__main__":
    main()
