"""Findings about ranks that ended otherwise than in order.

How a rank ended its file says in its last record. One without it shows nothing but that
it goes no further, so no more is said than that, with what was last known and where to
look.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from memboard.collector.format.sizes import agreeing, counted, time_text
from memboard.tb_plugin.analysis.findings.text import share_text, size_text
from memboard.tb_plugin.api.findings import Advice, Evidence, Finding, Place
from memboard.tb_plugin.facts.ranks.columns import LIMIT_USED, RSS
from memboard.tb_plugin.index.notes import text_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from memboard.tb_plugin.api.findings import Severity
    from memboard.tb_plugin.facts.ranks.rank_numbers import RankNumbers
    from memboard.tb_plugin.formats.recording.rank_file import RankFile
    from memboard.tb_plugin.index.run import Run

    How: TypeAlias = Literal["exception", "lost", "signal"]

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
            oom_step = ran_out.get(rank)
            if oom_step is None:
                is_known = False
            elif how == "lost":
                is_known = _last_step(numbers, rank) <= oom_step
            else:
                is_known = _may_be_out_of_memory(file)
            if not is_known:
                by_kind[how].append((rank, file))
    signals = {
        (event.rank, event.attempt): text_of(event.data, "signal")
        for event in run.notes.events("signal")
    }
    for how, files_of_kind in by_kind.items():
        if files_of_kind:
            files_of_kind.sort(
                key=lambda rank_file: (rank_file[1].newest_ns, rank_file[0])
            )
            ends = [
                _end(how, rank, file, numbers, signals.get((rank, file.attempt), ""))
                for rank, file in files_of_kind[:MAX_PER_KIND]
            ]
            yield _finding(how, ends, len(files_of_kind))


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
    files_facts = numbers.of_rank(rank)
    step = (
        files_facts[-1].last_step
        if files_facts and files_facts[-1] is not None
        else None
    )
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
    for end in ends[1:]:
        for text in _advice(how, end):
            advice.setdefault(text, f"On rank {end.rank}: ")
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
            f"{end.sentence} ({time_text(end.file.newest_ns / 1e6)})"
            for end in ends[1:]
        ),
        place=Place("timeline", f"Show rank {first.rank}", rank=first.rank),
    )


def _end(how: How, rank: int, file: RankFile, numbers: RankNumbers, came: str) -> _End:
    """`came`: a signal that the rank received before."""
    files_facts = numbers.of_rank(rank)
    facts = files_facts[-1] if files_facts else None
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
