"""The window, rank, device and state that a request about module memory names.

Whatever the query leaves out, or is not there, has a default; a capture that cannot be read
becomes a problem and another rank's is shown, unless the query names that very rank.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.tb_plugin.api.base import Problem
from memboard.tb_plugin.api.memory.modules import ModuleFacts, ModuleWindow
from memboard.tb_plugin.api.overview import SourceStatus
from memboard.tb_plugin.budget import Budget
from memboard.tb_plugin.contract.parameters import Count, Query, Rank, Text
from memboard.tb_plugin.contract.wire import finite
from memboard.tb_plugin.facts.modules.sentences import call_group, call_words
from memboard.tb_plugin.facts.series.selection import RankRows, x_axis
from memboard.tb_plugin.facts.view import View, why_absent
from memboard.tb_plugin.formats.recording.captures.modules import (
    KIND,
    ModulesError,
    ModulesReader,
)
from memboard.tb_plugin.formats.recording.series import TRAIN_PHASE
from memboard.tb_plugin.index.catalogue import said_instead

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from memboard.tb_plugin.analysis.modules.log import ModuleMemory
    from memboard.tb_plugin.analysis.series.rows import Rows
    from memboard.tb_plugin.formats.recording.captures.modules import (
        RankModules,
        RankWindow,
        WindowKey,
        Windows,
    )
    from memboard.tb_plugin.index.run import Run

MAX_WINDOWS: Final = 1000
LISTING_SECONDS: Final = 1.0
"""Time of an answer for listing captures."""
_MAX_TRIES: Final = 4
"""Ranks whose captures are tried before the answer is that none can be read."""

_DOUBTS: Final = (
    (
        "{} invalid values of this capture were left out or corrected.",
        "The file was damaged or changed: sums may be off. Record it again.",
    ),
    (
        "At {} moments more memory was freed than had been allocated.",
        "What was allocated before it is partly unknown: trust differences, not totals.",
    ),
    (
        "{} events did not fit into the log and are missing.",
        "Numbers are right up to that point: track a smaller function.",
    ),
)
"""Problems and remedies, for values that mean nothing, negative sums, and events
that were dropped."""


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    windows: Windows
    key: WindowKey
    rank: int
    opened: RankModules | None
    """None where it cannot be read."""
    device: int
    problems: list[Problem] = field(default_factory=list)

    @property
    def ranks(self) -> Mapping[int, RankWindow]:
        """All that have the window."""
        return self.windows[self.key]

    @property
    def devices(self) -> tuple[str, ...]:
        """Names of the rank's devices."""
        return () if self.opened is None else self.opened.memory.devices

    @property
    def device_name(self) -> str:
        """Of the one shown; empty where nothing can be read."""
        return self.devices[self.device] if self.devices else ""


"""Logs of module memory, and what was made of them."""


class WindowQuery(Query, frozen=True):
    """One window of module memory, on one rank and device of it."""

    rank: Rank | None = None
    window: Text | None = None  # `ModuleWindow.id`
    step: Count | None = None
    """Where the query names no window: the window of this step, or the nearest one's."""
    device: Text | None = None


def choose(reader: ModulesReader, view: View[WindowQuery]) -> Choice | None:
    """What is shown; None where the run has no module memory."""
    run, query = view.run, view.query
    listing = Budget(LISTING_SECONDS)
    windows = reader.windows(run, listing)
    if listing.exhausted:
        run.expect_more()  # what was listed is kept: the next poll goes on
    if not windows:
        return None
    asked = chosen_window(windows, query.window) or _of_step(windows, query.step)
    problems: list[Problem] = []
    tried = _highest_first(view, windows, list(windows) if asked is None else [asked])
    for key, rank in tried[:_MAX_TRIES]:
        window = windows[key][rank]
        opened = open_window(reader, window, problems)
        if opened is not None:
            problems += doubts(window, opened)
            device = device_of(opened.memory, query.device)
            return Choice(windows, key, rank, opened, device, problems)
        if rank == query.rank:
            break
    return Choice(windows, *tried[0], None, 0, problems)


def chosen_window(windows: Windows, wanted: str | None) -> WindowKey | None:
    """The window of an id, if it is there."""
    return next((key for key in windows if key.id == wanted), None)


def _of_step(windows: Windows, step: int | None) -> WindowKey | None:
    """The newest of the windows whose step is nearest."""
    steps = {
        key: abs(window.step - step)
        for key, ranks in reversed(list(windows.items()))
        for window in ranks.values()
        if step is not None and window.step is not None
    }
    return min(steps, key=steps.__getitem__, default=None)


def chosen_state(memory: ModuleMemory, device: int, wanted: str | None) -> str:
    """The state of the query, or a default that has values."""
    states = memory.states(device)
    return wanted if wanted in states and wanted else memory.default_state(device)


def device_of(memory: ModuleMemory, wanted: str | None) -> int:
    """Index of the query's device: by name, by kind, or the one that held most.

    Ranks of one host name their devices differently (cuda:0, cuda:1 ...): the kind is
    what they share.
    """
    devices = range(len(memory.devices))
    if wanted in memory.devices:
        return memory.devices.index(wanted)
    kind = (wanted or "").partition(":")[0]
    alike = [d for d in devices if memory.devices[d].partition(":")[0] == kind]
    return max(alike or devices, key=lambda d: np.nan_to_num(memory.peak(d)[0]))


def open_window(
    reader: ModulesReader,
    window: RankWindow,
    problems: list[Problem],
    *,
    keep: bool = True,
) -> RankModules | None:
    """A rank's memory; None, and a problem, where it cannot be read."""
    try:
        return reader.open(window, keep=keep)
    except ModulesError as error:
        problems.append(
            Problem(
                severity="error",
                path=window.path,
                what=error.what,
                where=error.where,
                remedy=error.remedy,
                rank=window.rank,
            )
        )
        return None


def problems_of(run: Run, choice: Choice | None) -> tuple[Problem, ...]:
    """The run's, and those met while answering that it does not name yet."""
    recorded = [(problem.rank, problem.what.lower()) for problem in run.problems]

    def is_new(problem: Problem) -> bool:
        sentence = problem.what.rstrip(".").lower()
        return not any(
            problem.rank == rank and sentence in recorded_sentence
            for rank, recorded_sentence in recorded
        )

    met = () if choice is None else choice.problems
    return (*run.problems, *filter(is_new, met))


def doubts(window: RankWindow, opened: RankModules) -> list[Problem]:
    """What a capture's numbers leave open."""
    facts = opened.facts
    doubtful = [
        (count, sentence, remedy)
        for count, (sentence, remedy) in zip(
            (facts.num_repaired, facts.num_negative, facts.num_events_dropped),
            _DOUBTS,
            strict=True,
        )
        if count
    ]
    return [
        Problem(
            severity="warning",
            path=window.path,
            what=sentence.format(f"{count:,}"),
            where=f"{window.key.function}, iteration {window.key.iteration}",
            salvaged="Everything else is shown.",
            remedy=remedy,
            rank=window.rank,
        )
        for count, sentence, remedy in doubtful
    ]


def window_list(windows: Windows) -> tuple[ModuleWindow, ...]:
    """The newest windows, in order of time."""
    attempts = len({key.attempt for key in windows}) > 1
    newest = list(windows)[-MAX_WINDOWS:]
    return tuple(window_of(key, windows[key], attempts=attempts) for key in newest)


def window_of(
    key: WindowKey, ranks: Mapping[int, RankWindow], *, attempts: bool
) -> ModuleWindow:
    """A window, as the page lists it."""
    newest = max(ranks.values(), key=lambda window: window.time_ns)
    return ModuleWindow(
        id=key.id,
        words=call_words(key, newest.step),
        group=call_group(key, attempts=attempts),
        function=key.function,
        phase=key.phase,
        iteration=key.iteration,
        attempt=key.attempt,
        step=newest.step,
        time_ms=newest.time_ns / 1e6,
        num_ranks=len(ranks),
    )


def facts_of(choice: Choice, opened: RankModules) -> ModuleFacts:
    """What is known of the chosen window on the chosen rank."""
    facts = opened.facts
    return ModuleFacts(
        source=facts.source,
        estimate=facts.estimate,
        incomplete=facts.incomplete,
        num_events=facts.num_events,
        num_events_dropped=facts.num_events_dropped,
        reasons=facts.reasons,
        has_held=facts.has_held,
        window_peak_bytes=finite(opened.memory.peak(choice.device)[0]),
    )


def absent_of(
    reader: ModulesReader, run: Run, choice: Choice | None
) -> tuple[SourceStatus, ...]:
    """Why there is no module memory, or what ranks without it say."""
    if run.made_of in ("snapshots", "traces"):
        return said_instead(run.made_of, len(run.ranks), "absent")
    if choice is None and not reader.has_listed(run):
        reading = "No module memory has been found yet: files are still being read."
        wait = "Wait a moment: each refresh of the page reads on."
        status = SourceStatus(KIND, "absent", len(run.ranks), reading, wait)
        return (*why_absent(run, KIND), status)
    without = "This run was recorded without module memory."
    return why_absent(
        run,
        KIND,
        reason=without if choice is None else "",
        remedy="Record with modules=True: a step that is tracked takes longer, all others"
        " are as fast as before.",
    )


def _highest_first(
    view: View[WindowQuery], windows: Windows, keys: Sequence[WindowKey]
) -> list[tuple[WindowKey, int]]:
    """Of each rank the window to show, the rank with the highest peak first.

    That is what step tables recorded of the windows' steps; the newest of equal ones, and
    where nothing was recorded. Only the query's rank, where it has one of the windows.
    """
    ranks = sorted({rank for key in keys for rank in windows[key]})
    if view.query.rank in ranks:
        ranks = [view.query.rank]
    peaks = _StepPeaks(view)
    best: list[tuple[float, int, int, WindowKey]] = []
    for rank in ranks:
        mine = [
            (-peaks.at(rank, windows[key][rank]), age, rank, key)
            for age, key in enumerate(reversed(keys))
            if rank in windows[key]
        ]
        best.append(min(mine) if len(keys) * len(ranks) > 1 else mine[0])
    return [(key, rank) for *_, rank, key in sorted(best)]


class _StepPeaks:
    """The peaks that step tables recorded; -inf where they have none."""

    def __init__(self, view: View[WindowQuery]) -> None:
        self._view = view
        self._rows: dict[tuple[int, str], Rows | None] = {}

    def at(self, rank: int, window: RankWindow) -> float:
        """The highest of the rows that the window's step lies in."""
        place, step = (rank, window.key.phase or TRAIN_PHASE), window.step
        if place not in self._rows:
            self._rows[place] = self._read(*place)
        rows = self._rows[place]
        if rows is None or step is None:
            return -np.inf
        row = int(np.searchsorted(rows.last, step, "left"))
        is_inside = row < len(rows) and rows.first[row] <= step
        return (
            float(np.nan_to_num(rows.high[row], nan=-np.inf)) if is_inside else -np.inf
        )

    def _read(self, rank: int, phase: str) -> Rows | None:
        view = self._view
        key = view.run.catalogue.find("allocated_peak_bytes", phase)
        if key is None or not view.budget.allows():
            return None
        source = RankRows(view.series, view.run, key, x_axis(view.run, "step"))
        return source.rollup(rank)
