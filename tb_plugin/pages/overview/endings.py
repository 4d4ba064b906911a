"""How the ranks ended that did not end in order: by an exception, by a signal, or lost.

A file says so itself in its last record. One without it tells nothing but that it goes no
further, so no more is said than that, with what was last known and where to look.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tb_plugin import api
from tb_plugin.index.notes import text_of
from tb_plugin.pages.overview.facts import LIMIT_USED, RSS
from tb_plugin.pages.verdict.words import share_words, size_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tb_plugin.api import EndedHow
    from tb_plugin.formats.recording.rank_file import RankFile
    from tb_plugin.index.run import Run
    from tb_plugin.pages.overview.facts import FileFacts
    from tb_plugin.pages.overview.rank_numbers import RankNumbers

MAX_PER_KIND: Final = 16
"""Ranks of one kind of end that are told of by themselves."""

_KINDS: Final[tuple[EndedHow, ...]] = ("exception", "lost", "signal")
"""An exception is what others are ended for, so it comes first."""
_MAX_MESSAGE: Final = 500
_NEARLY_FULL: Final = 0.9
_HOST_MEMORY: Final = ("MemoryError", "DefaultCPUAllocator")
"""In messages of what the host's memory was too small for."""
_INTERRUPTED: Final = "KeyboardInterrupt"

_LOST: Final = (
    "ended without a goodbye: killed (SIGKILL, SIGTERM, a crash in C), or its machine or"
    " disk was lost"
)
_LOOK: Final = (
    "dmesg tells of a kill for memory, the scheduler's log of one of its own."
)
_LOOK_FULL: Final = (
    "The kernel kills what passes that limit: look for oom_kill in dmesg, or in"
    " memory.events of the control group."
)
_LISTEN: Final = (
    'SIGTERM leaves a word where it is listened to: oom={"on_sigterm": True}, or'
    " MEMBOARD_OOM_ON_SIGTERM=1."
)


def endings_of(run: Run, ranks: Sequence[int], numbers: RankNumbers) -> api.RankEndings:
    """The last attempt's end of each of these ranks that did not end in order."""
    by_kind: dict[EndedHow, list[tuple[int, int, RankFile]]] = {
        kind: [] for kind in _KINDS
    }
    if run.made_of == "recording":
        unread = run.unread_ranks
        for rank in ranks:
            files = run.rank_files(rank)
            if files and rank not in unread:
                attempt, file = files[-1]
                how = _how(run, file)
                if how is not None:
                    by_kind[how].append((rank, attempt.index, file))
    signals = {
        (event.rank, event.attempt): text_of(event.data, "signal")
        for event in run.notes.events("signal")
    }
    told: list[api.RankEnding] = []
    for how, found in by_kind.items():
        found.sort(key=lambda one: (one[2].newest_ns, one[0]))
        for rank, attempt_index, file in found[:MAX_PER_KIND]:
            known = numbers.of_rank(rank)
            came = signals.get((rank, file.attempt), "")
            facts = known[-1] if known else None
            told.append(_ending(how, rank, attempt_index, file, facts, came))
    counts = {how: len(found) for how, found in by_kind.items()}
    return api.RankEndings(
        num_exception=counts["exception"],
        num_signal=counts["signal"],
        num_lost=counts["lost"],
        sentence=_summary(told, counts),
        ranks=tuple(told),
    )


def _how(run: Run, file: RankFile) -> EndedHow | None:
    """None: in order, or not at all yet."""
    if file.close is None:
        return None if run.file_is_live(file) else "lost"
    how: Any = file.close.how
    return how if how in _KINDS else None


def _ending(
    how: EndedHow,
    rank: int,
    attempt: int,
    file: RankFile,
    facts: FileFacts | None,
    came: str,
) -> api.RankEnding:
    message = "" if file.close is None else file.close.message[:_MAX_MESSAGE]
    latest = {} if facts is None else facts.latest
    limit = file.header.memory_limit_bytes
    in_limit = latest.get(LIMIT_USED)
    last_step = None if facts is None else facts.last_step
    step = None if file.close is None else file.close.step
    phase = "" if file.close is None else file.close.phase
    where = _where(step, phase, last_step)
    rss = latest.get(RSS)
    words = f"Rank {rank} {_words(how, message, where, came)}."
    if how == "lost" or any(part in message for part in _HOST_MEMORY):
        words += _held(rss, in_limit, limit)
    return api.RankEnding(
        rank=rank,
        attempt=attempt,
        how=how,
        message=message,
        step=last_step if step is None else step,
        phase=phase,
        time_ms=file.newest_ns / 1e6,
        rss_bytes=rss,
        memory_limit_bytes=None if limit is None else float(limit),
        sentence=words,
        advice=_advice(file, in_limit, limit) if how == "lost" else "",
    )


def _words(how: EndedHow, message: str, where: str, came: str) -> str:
    after = f", after {came} had come" if came and how != "signal" else ""
    if how == "lost":
        return f"{_LOST}{where and f'. It was last seen{where}'}{after}"
    if how == "signal":
        return f"was ended by {message or 'a signal'}{where}"
    if message.startswith(_INTERRUPTED):
        return f"was interrupted by Ctrl-C or SIGINT{where}{after}"
    told = f": {message}" if message else ""
    return f"ended by an exception{where}{after}{told}".removesuffix(".")


def _where(step: int | None, phase: str, last_step: int | None) -> str:
    of = f" ({phase})" if phase else ""
    if step is not None:
        return f" in step {step:,}{of}"
    return "" if last_step is None else f" after step {last_step:,}{of}"


def _held(rss: float | None, in_limit: float | None, limit: int | None) -> str:
    """What the process held last, and how near its control group was to the limit."""
    if rss is None:
        return ""
    words = f" Its process held {size_words(rss)} in its last steps"
    if limit is None:
        return f"{words}."
    words += f"; its control group may hold {size_words(limit)}"
    if in_limit is None:
        return f"{words}."
    return f"{words} and held {share_words(min(1.0, in_limit / limit))} of it."


def _advice(file: RankFile, in_limit: float | None, limit: int | None) -> str:
    full = limit is not None and in_limit is not None
    full = full and (in_limit or 0.0) >= _NEARLY_FULL * (limit or 0)
    oom = file.header.config.get("oom")
    listened = isinstance(oom, dict) and oom.get("on_sigterm") is True
    return (_LOOK_FULL if full else _LOOK) + ("" if listened else f" {_LISTEN}")


def _summary(told: Sequence[api.RankEnding], counts: dict[EndedHow, int]) -> str:
    """The first end, and how many others there were of each kind."""
    if not told:
        return ""
    first = told[0]
    others = {how: count - (how == first.how) for how, count in counts.items() if count}
    parts = [_OTHERS[how](count) for how, count in others.items() if count > 0]
    return first.sentence if not parts else f"{first.sentence} {_listed(parts)}."


def _listed(parts: Sequence[str]) -> str:
    text = ", ".join(parts)
    return text[0].upper() + text[1:]


_OTHERS: Final = {
    "exception": lambda num: f"{_more(num)} ended by an exception",
    "lost": lambda num: f"{_more(num)} ended without a goodbye",
    "signal": lambda num: f"{_more(num)} ended by a signal",
}


def _more(num: int) -> str:
    return f"{num:,} more {'rank' if num == 1 else 'ranks'}"
