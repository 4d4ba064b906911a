"""Route `/findings`: all that is wrong with a run, from all sources, the worst first.

How a rank ended its file says in its last record. One without it shows nothing but that
it goes no further, so no more is said than that, with what was last known and where to
look.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from msgspec import structs

from collector.format.sizes import agreeing, counted, time_text
from tb_plugin.analysis.findings.losses import steps_missing, traces_missing
from tb_plugin.analysis.findings.text import share_text, size_text
from tb_plugin.api.findings import Advice, Evidence, Finding, FindingsResponse, Place
from tb_plugin.index.notes import text_of
from tb_plugin.pages.distributed.stragglers import stragglers_view
from tb_plugin.pages.findings.errors import ErrorsReader
from tb_plugin.pages.findings.missing import simulating
from tb_plugin.pages.findings.of_ranks import cycle_findings, rank_findings
from tb_plugin.pages.of_run import View, of_run
from tb_plugin.pages.overview.facts import LIMIT_USED, RSS
from tb_plugin.pages.overview.rank_numbers import (
    RankNumbers,
)
from tb_plugin.pages.timeline.selection import RanksQuery, chosen_ranks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tb_plugin.api.base import RunSummary
    from tb_plugin.api.findings import Severity
    from tb_plugin.budget import Budget
    from tb_plugin.formats.recording.rank_file import RankFile
    from tb_plugin.index.run import Run
    from tb_plugin.pages.overview.losses import LossReader
    from tb_plugin.server.state import State

    How: TypeAlias = Literal["exception", "lost", "signal"]

_ORDER: Final[tuple[Severity, ...]] = ("error", "warning", "info")

MAX_PER_KIND: Final = 16
"""Ranks of one kind of end that are named each."""
_KINDS: Final[tuple[How, ...]] = ("exception", "lost", "signal")
"""An exception is what others are ended for, so it comes first."""
_TITLES: Final[dict[How, str]] = {
    "exception": "Ended by an exception",
    "lost": "Stopped without closing its recording",
    "signal": "Ended by a signal",
}
_MAX_MESSAGE: Final = 500
_NEARLY_FULL: Final = 0.9
_HOST_MEMORY: Final = ("MemoryError", "DefaultCPUAllocator")
"""In messages of what the host's memory was too small for."""
_DEVICE_MEMORY: Final = ("OutOfMemoryError", "out of memory")
_INTERRUPTED: Final = "KeyboardInterrupt"
_LOST: Final = "stopped without closing its recording: the cause is not recorded"
_CHECK: Final = (
    "If it was killed, dmesg (the OOM killer) or the scheduler's log says so; if it ended by"
    " itself, its disk was full or did not answer."
)
_CHECK_FULL: Final = (
    "The kernel kills what passes that limit: look for oom_kill in dmesg, or in"
    " memory.events of the control group."
)
_LISTEN: Final = (
    'To record SIGTERM, set oom={"on_sigterm": True}, or MEMBOARD_OOM_ON_SIGTERM=1.'
)


def _errors(state: State) -> ErrorsReader:
    def make() -> ErrorsReader:
        return ErrorsReader(
            state.facts, state.histories, state.store.cache, state.capacity_bytes
        )

    return state.kept.get("errors", make)


@of_run(
    "findings",
    RanksQuery,
    reads=lambda state: (_errors(state), state.losses),
    prefetches="facts",
    version=lambda state: _errors(state).judge.version,
)
def findings(
    view: View[RanksQuery], reader: ErrorsReader, losses: LossReader
) -> FindingsResponse:
    """Answer `/findings`; hold the run's lock."""
    run = view.run
    errors = reader.errors(run, view.query.rank, view.budget)
    others: Iterable[Finding] = ()
    is_reading = errors.is_reading
    if run.made_of == "recording":
        ran_out: dict[int, int] = {}
        for one in errors.found:
            if one.rank is not None and one.state and one.state.is_out_of_memory:
                step = -1 if one.step is None else one.step
                ran_out[one.rank] = max(step, ran_out.get(one.rank, -1))
        others, reads_growth = _beside_errors(view, reader, losses, ran_out)
        _remember_worst(view, reader, others)
        is_reading |= reads_growth
    return FindingsResponse(
        run=view.summary,
        findings=ranked([*errors.found, *others]),
        num_errors=errors.num_errors,
        still_reading=is_reading,
        problems=errors.problems,
    )


def _beside_errors(
    view: View[RanksQuery],
    reader: ErrorsReader,
    losses: LossReader,
    ran_out: Mapping[int, int],
    *,
    opens: bool = True,
) -> tuple[list[Finding], bool]:
    """All that is wrong with a recording but its errors; whether more will be known.

    `opens`: whether histories are opened for it.
    """
    run = view.run
    shown = chosen_ranks(run, view.query)
    numbers = RankNumbers(reader.facts, run, view.budget)
    ends = ending_findings(run, shown, numbers, ran_out)
    of_ranks, is_reading = rank_findings(reader, view, numbers, ran_out, opens=opens)
    accounts = tuple(losses.of_run(run, set(shown), view.budget))
    missing = filter(None, (steps_missing(accounts), traces_missing(accounts)))
    cycles = cycle_findings(run, shown, view.series, view.budget)
    times = stragglers_view(view).findings
    found = [*missing, *simulating(view), *ends, *of_ranks, *cycles, *times]
    return found, is_reading


def worst_title(
    state: State, run: Run, summary: RunSummary, budget: Budget
) -> str | None:
    """The worst finding of a recording beside its errors, by its title; empty: none.

    None: that is not known within the budget. No history is opened for it; hold the lock.
    """
    reader = _errors(state)
    title = reader.worst_of(run)
    if title is None and budget.allows():
        view = View(state.store.series, run, summary, RanksQuery(), budget)
        found, _ = _beside_errors(view, reader, state.losses, {}, opens=False)
        _remember_worst(view, reader, found)
        title = reader.worst_of(run)
    return title


def _remember_worst(
    view: View[RanksQuery], reader: ErrorsReader, found: Sequence[Finding]
) -> None:
    """Keep its title for the list of runs, where all ranks were read for it."""
    is_all = structs.replace(view.query, run="") == RanksQuery()
    if is_all and not (view.budget.exhausted or view.run.unfinished):
        titles = (one.title for one in ranked(found) if one.severity != "info")
        reader.remember_worst(view.run, next(titles, ""))


def ranked(found: Iterable[Finding]) -> tuple[Finding, ...]:
    """The worst first; of one severity as they came. No two have the same id."""
    seen: dict[str, int] = {}
    unique = []
    for one in found:
        number = seen[one.id] = seen.get(one.id, 0) + 1
        unique.append(
            one if number == 1 else structs.replace(one, id=f"{one.id}-{number}")
        )
    return tuple(sorted(unique, key=lambda one: _ORDER.index(one.severity)))


class _End(NamedTuple):
    """One rank's end, with what was known last."""

    rank: int
    file: RankFile
    step: int | None
    phase: str
    sentence: str
    rss_bytes: float | None
    used_bytes: float | None
    """Of the control group's limit."""

    @property
    def message(self) -> str:
        return "" if self.file.close is None else self.file.close.message[:_MAX_MESSAGE]


def ending_findings(
    run: Run, ranks: Sequence[int], numbers: RankNumbers, ran_out: Mapping[int, int]
) -> Iterator[Finding]:
    """One finding for each kind of end, by the last attempt of each of these ranks.

    `ran_out`: steps of the last out-of-memory errors that are findings of their own, by
    rank; -1: not known. A rank that was lost at such an error is no news.
    """
    if run.made_of != "recording":
        return
    by_kind: dict[How, list[tuple[int, RankFile]]] = {kind: [] for kind in _KINDS}
    unread = run.unread_ranks
    for rank in ranks:
        files = run.rank_files(rank)
        how = _how(run, files[-1][1]) if files and rank not in unread else None
        if how is not None:
            file = files[-1][1]
            at = ran_out.get(rank)
            if at is None:
                is_known = False
            elif how == "lost":
                is_known = _last_step(numbers, rank) <= at
            else:
                is_known = _may_be_out_of_memory(file)
            if not is_known:
                by_kind[how].append((rank, file))
    signals = {
        (event.rank, event.attempt): text_of(event.data, "signal")
        for event in run.notes.events("signal")
    }
    for how, found in by_kind.items():
        if found:
            found.sort(key=lambda one: (one[1].newest_ns, one[0]))
            ends = [
                _end(how, rank, file, numbers, signals.get((rank, file.attempt), ""))
                for rank, file in found[:MAX_PER_KIND]
            ]
            yield _finding(how, ends, len(found))


def _how(run: Run, file: RankFile) -> How | None:
    """None: in order, or not at all yet."""
    if file.close is None:
        return None if run.file_is_live(file) else "lost"
    how: Any = file.close.how
    return how if how in _KINDS else None


def _may_be_out_of_memory(file: RankFile) -> bool:
    """An exception without a message is the error that the rank is known to have had."""
    close = file.close
    if close is None:
        return False
    if not close.message:
        return close.how == "exception"
    return any(part in close.message for part in _DEVICE_MEMORY)


def _last_step(numbers: RankNumbers, rank: int) -> float:
    known = numbers.of_rank(rank)
    step = known[-1].last_step if known and known[-1] is not None else None
    return math.inf if step is None else step


def _finding(how: How, ends: Sequence[_End], num: int) -> Finding:
    first = ends[0]
    interrupted = first.message.startswith(_INTERRUPTED)
    title = "Interrupted" if interrupted else _TITLES[how]
    sentence = first.sentence
    if num > 1:
        more = counted(num - 1, "more rank")
        were = agreeing(num - 1, "was", "were")
        ended = {
            "lost": "stopped in the same way",
            "signal": f"{were} ended by a signal too",
        }
        sentence += f" {more} {ended.get(how, 'ended by an exception too')}."
    severity: Severity = "error"
    if interrupted or how == "signal":
        severity = "warning"
    advice = dict.fromkeys(_advice(how, first), "")
    for one in ends[1:]:
        for text in _advice(how, one):
            advice.setdefault(text, f"On rank {one.rank}: ")
    return Finding(
        id=f"{how}-{first.rank}",
        key=f"ended_{how}",
        severity=severity,
        title=title,
        sentence=sentence,
        rank=first.rank,
        step=first.step,
        time_ms=first.file.newest_ns / 1e6,
        during=first.phase,
        evidence=tuple(_evidence(first)),
        advice=tuple(Advice(whose + text) for text, whose in advice.items()),
        others=tuple(
            f"{one.sentence} ({time_text(one.file.newest_ns / 1e6)})"
            for one in ends[1:]
        ),
        place=Place("timeline", f"Show rank {first.rank}", rank=first.rank),
    )


def _end(how: How, rank: int, file: RankFile, numbers: RankNumbers, came: str) -> _End:
    """`came`: a signal that the rank received before."""
    known = numbers.of_rank(rank)
    facts = known[-1] if known else None
    latest = {} if facts is None else facts.latest
    last_step = None if facts is None else facts.last_step
    step = None if file.close is None else file.close.step
    phase = "" if file.close is None else file.close.phase
    end = _End(
        rank=rank,
        file=file,
        step=last_step if step is None else step,
        phase=phase,
        sentence="",
        rss_bytes=latest.get(RSS),
        used_bytes=latest.get(LIMIT_USED),
    )
    of = f" ({phase})" if phase else ""
    where = "" if last_step is None else f" after step {last_step:,}{of}"
    if step is not None:
        where = f" in step {step:,}{of}"
    text = f"Rank {rank} {_ended_text(how, end.message, where, came)}."
    if how == "lost" or any(part in end.message for part in _HOST_MEMORY):
        text += _held_text(end)
    return end._replace(sentence=text)


def _ended_text(how: How, message: str, where: str, came: str) -> str:
    after = f", after {came} had come" if came and how != "signal" else ""
    if how == "lost":
        return f"{_LOST}{where and f'. It was last seen{where}'}{after}"
    if how == "signal":
        return f"was ended by {message or 'a signal'}{where}"
    if message.startswith(_INTERRUPTED):
        return f"was interrupted by Ctrl-C or SIGINT{where}{after}"
    told = f": {message}" if message else ""
    return f"ended by an exception{where}{after}{told}".removesuffix(".")


def _held_text(end: _End) -> str:
    """What the process held last, and how near its control group was to the limit."""
    limit = end.file.header.memory_limit_bytes
    if end.rss_bytes is None:
        return ""
    text = f" Its process held {size_text(end.rss_bytes)} in its last steps"
    if limit is None:
        return f"{text}."
    text += f"; its control group may hold {size_text(limit)}"
    if end.used_bytes is None:
        return f"{text}."
    return f"{text} and held {share_text(min(1.0, end.used_bytes / limit))} of it."


def _evidence(end: _End) -> Iterator[Evidence]:
    scope = f"rank {end.rank}, in its last steps"
    limit = end.file.header.memory_limit_bytes
    sizes = (
        ("rss", "RSS of its process", end.rss_bytes, scope),
        ("limit_used", "memory of its control group", end.used_bytes, scope),
        ("limit", "limit of its control group", limit, f"rank {end.rank}"),
    )
    for key, label, size, of in sizes:
        if size is not None:
            yield Evidence(key, label, float(size), "bytes", of)


def _advice(how: How, end: _End) -> Iterator[str]:
    if how != "lost":
        return
    limit, used = end.file.header.memory_limit_bytes, end.used_bytes
    is_full = limit is not None and used is not None and used >= _NEARLY_FULL * limit
    yield _CHECK_FULL if is_full else _CHECK
    oom = end.file.header.config.get("oom")
    if not (isinstance(oom, dict) and oom.get("on_sigterm") is True):
        yield _LISTEN
