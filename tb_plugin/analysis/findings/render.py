"""Findings as text for terminals, and as Markdown for people and issue trackers.

Every number stands with its scope.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from memboard.collector.format.sizes import counted
from memboard.tb_plugin.analysis.findings.text import quantity_text, share_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from memboard.tb_plugin.api.findings import (
        Advice,
        Evidence,
        Finding,
        MemoryState,
        Quantity,
    )

_MAX_STACK: Final = 12
_MAX_HELD_BY: Final = 8

_PER: Final[dict[Quantity, str]] = {"seconds": " per step", "percent": " of the steps"}
"""Behind gains of a unit."""


def title_text(one: Finding) -> str:
    """`Out of memory: fragmentation; rank 13, step 412, backward (rank13.pickle)`."""
    where = [] if one.rank is None else [f"rank {one.rank}"]
    where += [] if one.device is None else [f"device {one.device}"]
    where += [] if one.step is None else [f"step {one.step}"]
    where += [word for word in (one.during, one.line) if word]
    file = f" ({one.state.file})" if one.state is not None and one.state.file else ""
    return f"{one.title}; {', '.join(where)}{file}" if where else one.title + file


def text_lines(one: Finding, *, is_first: bool) -> Iterator[str]:
    """A finding in a terminal; the first one of a list with its advice in full."""
    yield printable(title_text(one))
    yield f"  {printable(one.sentence)}"
    if is_first and one.state is not None and one.state.held_sentence:
        yield f"  {printable(one.state.held_sentence)}"
    yield from (f"  {printable(text)}" for text in one.others)
    if one.also:
        yield f"  {_also(one)}"
    if is_first or one.state is None:
        for advice in one.advice:
            setting = f" {advice.setting}" if advice.setting else ""
            yield f"    try: {printable(advice.text + setting)}{_gain(advice)}"
    if is_first and _is_from_report_alone(one):
        yield "  caveat: from the report alone, without the allocator's history"


def markdown_lines(one: Finding) -> Iterator[str]:
    """A finding as Markdown, without a heading above the second level."""
    yield f"## {plain(title_text(one))}"
    yield ""
    yield plain(one.sentence)
    if one.state is not None and one.state.held_sentence:
        yield ""
        yield plain(one.state.held_sentence)
    if one.others:
        yield ""
        yield from (f"- {plain(text)}" for text in one.others)
    basis = _is_from_report_alone(one)
    if one.also or basis:
        yield ""
        told = [
            "From the report at the error, without the allocator's history."
        ] * basis
        yield " ".join([*([_also(one)] if one.also else []), *told])
    yield from _evidence(one.evidence)
    if one.state is not None:
        yield from _held_by(one.state)
    if one.advice:
        yield from ("", "What to try:", "")
        for number, advice in enumerate(one.advice, start=1):
            setting = f" `{advice.setting}`" if advice.setting else ""
            yield f"{number}. {plain(advice.text)}{setting}{_gain(advice)}"
    if one.state is not None:
        yield from _stack(one.state)
    if one.rule:
        yield ""
        yield f"Rule: {plain(one.rule)}."
    if one.not_recorded:
        yield from ("", "Not recorded:", "")
        yield from (f"- {plain(text)}" for text in one.not_recorded)


def _also(one: Finding) -> str:
    return f"Also: {', '.join(one.also)}."


def _is_from_report_alone(one: Finding) -> bool:
    return one.state is not None and not one.state.analysed


def _gain(one: Advice) -> str:
    if not one.gain:
        return ""
    return f" (up to {quantity_text(one.gain, one.unit)}{_PER.get(one.unit, '')})"


def _evidence(evidence: Sequence[Evidence]) -> Iterator[str]:
    if not evidence:
        return
    yield ""
    rows = []
    for one in evidence:
        mark = "**" if one.decisive else ""
        value = quantity_text(one.value, one.unit)
        rows.append((f"{mark}{one.label}{mark}", value, one.scope, one.caveat))
    yield from markdown_table(("evidence", "value", "of", "caveat"), rows, right=(1,))


def _held_by(state: MemoryState) -> Iterator[str]:
    if not state.held_by:
        return
    yield ""
    head = ("held by", "category", "size", "share of active", "blocks")
    rows = [
        (
            one.label or "no stack recorded",
            "waits to be freed" if one.is_pending else one.category or "not known",
            quantity_text(one.bytes, "bytes"),
            share_text(one.share),
            f"{one.num_blocks:,}",
        )
        for one in state.held_by[:_MAX_HELD_BY]
    ]
    yield from markdown_table(head, rows, right=(2, 3, 4))


def _stack(state: MemoryState) -> Iterator[str]:
    if state.stack:
        what = "Allocated by" if state.is_out_of_memory else "Where it ended"
        yield from ("", f"{what}, innermost first:", "", "```")
        yield from map(printable, state.stack[:_MAX_STACK])
        left_out = len(state.stack) - _MAX_STACK
        if left_out > 0:
            yield f"... {counted(left_out, 'frame')} more"
        yield "```"
    if state.message:
        yield ""
        yield f"Message: {plain(state.message)}"


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
