"""A verdict as text for people and issue trackers: Markdown, every number with its scope.

The page copies it, and `memboard report` prints it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tb_plugin.pages.verdict.words import CAUSE_WORDS, share_words, size_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tb_plugin import api

_ENDS: Final = {
    "oom": "Out of memory",
    "file": "Out of memory",
    "exception": "Ended by an exception",
    "signal": "Ended by a signal",
}
_MAX_STACK: Final = 12
_MAX_HOLDERS: Final = 8


def as_markdown(one: api.OutOfMemory) -> str:
    """One error as Markdown, without a heading above the second level."""
    return "\n".join(_lines(one))


def title_of(one: api.OutOfMemory) -> str:
    """`Out of memory: rank 13, device 5, step 412, backward (rank13.pickle)`."""
    what = "Out of memory" if one.is_out_of_memory else _ENDS[one.origin]
    where = [] if one.rank is None else [f"rank {one.rank}"]
    where += [] if one.device is None else [f"device {one.device}"]
    where += [] if one.step is None else [f"step {one.step}"]
    where += [word for word in (one.during, one.asked_at) if word]
    file = f" ({one.file})" if one.file else ""
    return f"{what}: {', '.join(where)}{file}" if where else what + file


def _lines(one: api.OutOfMemory) -> Iterator[str]:
    yield f"## {plain(title_of(one))}"
    yield ""
    yield plain(one.sentence)
    if one.held_sentence:
        yield ""
        yield plain(one.held_sentence)
    if one.is_out_of_memory:
        yield ""
        yield from _cause(one)
    yield from _evidence(one.evidence)
    yield from _holders(one.holders)
    yield from _advice(one)
    if one.stack:
        yield ""
        what = "Allocated by" if one.is_out_of_memory else "Where it ended"
        yield f"{what}, innermost first:"
        yield ""
        yield "```"
        yield from map(printable, one.stack[:_MAX_STACK])
        left_out = len(one.stack) - _MAX_STACK
        if left_out > 0:
            yield f"... {left_out} more"
        yield "```"
    if one.message:
        yield ""
        yield f"Message: {plain(one.message)}"
    if one.not_recorded:
        yield ""
        yield "Not recorded:"
        yield ""
        yield from (f"- {plain(text)}" for text in one.not_recorded)


def _cause(one: api.OutOfMemory) -> Iterator[str]:
    also = ", ".join(CAUSE_WORDS[cause] for cause in one.also)
    basis = (
        "the state at the error, replayed from the allocator's history"
        if one.analysed
        else "what was reported at the error, without the allocator's history"
    )
    yield f"Cause: **{CAUSE_WORDS[one.cause]}**{f' (also: {also})' if also else ''}."
    yield f"Told from {basis}."


def _evidence(evidence: Sequence[api.VerdictEvidence]) -> Iterator[str]:
    if not evidence:
        return
    yield ""
    rows = []
    for one in evidence:
        mark = "**" if one.decisive else ""
        value = value_words(one.value, one.unit)
        rows.append((f"{mark}{one.label}{mark}", value, one.scope, one.caveat))
    yield from markdown_table(("", "value", "of", "caveat"), rows, right=(1,))


def _holders(holders: Sequence[api.VerdictHolder]) -> Iterator[str]:
    if not holders:
        return
    yield ""
    head = ("held by", "category", "size", "share of live", "blocks")
    rows = [
        (
            one.label or "no stack recorded",
            one.category or "not known",
            size_words(one.bytes),
            share_words(one.share),
            f"{one.num_blocks:,}",
        )
        for one in holders[:_MAX_HOLDERS]
    ]
    yield from markdown_table(head, rows, right=(2, 3, 4))


def _advice(one: api.OutOfMemory) -> Iterator[str]:
    if not one.advice:
        return
    yield ""
    yield "What to try:"
    yield ""
    for number, advice in enumerate(one.advice, start=1):
        stake = "" if advice.bytes is None else f" (up to {size_words(advice.bytes)})"
        setting = f" `{advice.setting}`" if advice.setting else ""
        yield f"{number}. {plain(advice.text)}{setting}{stake}"


def value_words(value: float, unit: api.Unit) -> str:
    """A number of the evidence with its unit."""
    if unit == "bytes":
        return size_words(value)
    return f"{value:.1f} %" if unit == "percent" else f"{value:,.0f}"


def markdown_table(
    head: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()
) -> Iterator[str]:
    """A table; cells may be texts from files. `right`: columns of numbers."""
    yield "|" + "|".join(f" {title} " if title else " " for title in head) + "|"
    yield "|" + "|".join("-:" if at in right else "-" for at in range(len(head))) + "|"
    for row in rows:
        yield f"| {' | '.join(map(plain, row))} |"


def printable(text: str) -> str:
    """Text from files: nothing in it may steer a terminal or end a block."""
    return "".join(c if c.isprintable() else " " for c in text).replace("```", "'''")


def plain(text: str) -> str:
    """Text from files within Markdown: it neither ends a cell nor becomes markup."""
    found = printable(text)
    for mark in "\\|<`[":
        found = found.replace(mark, f"\\{mark}")
    return found
