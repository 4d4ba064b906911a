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


def title_text(finding: Finding) -> str:
    """`Out of memory: fragmentation; rank 13, step 412, backward (rank13.pickle)`."""
    where = [] if finding.rank is None else [f"rank {finding.rank}"]
    where += [] if finding.device is None else [f"device {finding.device}"]
    where += [] if finding.step is None else [f"step {finding.step}"]
    where += [word for word in (finding.during, finding.line) if word]
    file = (
        f" ({finding.state.file})"
        if finding.state is not None and finding.state.file
        else ""
    )
    return (
        f"{finding.title}; {', '.join(where)}{file}" if where else finding.title + file
    )


def text_lines(finding: Finding, *, is_first: bool) -> Iterator[str]:
    """A finding in a terminal; the first one of a list with its advice in full."""
    yield printable(title_text(finding))
    yield f"  {printable(finding.sentence)}"
    if is_first and finding.state is not None and finding.state.held_sentence:
        yield f"  {printable(finding.state.held_sentence)}"
    yield from (f"  {printable(text)}" for text in finding.others)
    if finding.also:
        yield f"  {_also(finding)}"
    if is_first or finding.state is None:
        for advice in finding.advice:
            setting = f" {advice.setting}" if advice.setting else ""
            yield f"    try: {printable(advice.text + setting)}{_gain(advice)}"
    if is_first and _is_from_report_alone(finding):
        yield "  caveat: from the report alone, without the allocator's history"


def markdown_lines(finding: Finding) -> Iterator[str]:
    """A finding as Markdown, without a heading above the second level."""
    yield f"## {plain(title_text(finding))}"
    yield ""
    yield plain(finding.sentence)
    if finding.state is not None and finding.state.held_sentence:
        yield ""
        yield plain(finding.state.held_sentence)
    if finding.others:
        yield ""
        yield from (f"- {plain(text)}" for text in finding.others)
    basis = _is_from_report_alone(finding)
    if finding.also or basis:
        yield ""
        told = [
            "From the report at the error, without the allocator's history."
        ] * basis
        yield " ".join([*([_also(finding)] if finding.also else []), *told])
    yield from _evidence(finding.evidence)
    if finding.state is not None:
        yield from _held_by(finding.state)
    if finding.advice:
        yield from ("", "What to try:", "")
        for number, advice in enumerate(finding.advice, start=1):
            setting = f" `{advice.setting}`" if advice.setting else ""
            yield f"{number}. {plain(advice.text)}{setting}{_gain(advice)}"
    if finding.state is not None:
        yield from _stack(finding.state)
    if finding.rule:
        yield ""
        yield f"Rule: {plain(finding.rule)}."
    if finding.not_recorded:
        yield from ("", "Not recorded:", "")
        yield from (f"- {plain(text)}" for text in finding.not_recorded)


def _also(finding: Finding) -> str:
    return f"Also: {', '.join(finding.also)}."


def _is_from_report_alone(finding: Finding) -> bool:
    return finding.state is not None and not finding.state.analysed


def _gain(advice: Advice) -> str:
    if not advice.gain:
        return ""
    return (
        f" (up to {quantity_text(advice.gain, advice.unit)}{_PER.get(advice.unit, '')})"
    )


def _evidence(evidence: Sequence[Evidence]) -> Iterator[str]:
    if not evidence:
        return
    yield ""
    rows = []
    for row in evidence:
        mark = "**" if row.decisive else ""
        value = quantity_text(row.value, row.unit)
        rows.append((f"{mark}{row.label}{mark}", value, row.scope, row.caveat))
    yield from markdown_table(("evidence", "value", "of", "caveat"), rows, right=(1,))


def _held_by(state: MemoryState) -> Iterator[str]:
    if not state.held_by:
        return
    yield ""
    head = ("held by", "category", "size", "share of active", "blocks")
    rows = [
        (
            holder.label or "no stack recorded",
            "waits to be freed"
            if holder.is_pending
            else holder.category or "not known",
            quantity_text(holder.bytes, "bytes"),
            share_text(holder.share),
            f"{holder.num_blocks:,}",
        )
        for holder in state.held_by[:_MAX_HELD_BY]
    ]
    yield from markdown_table(head, rows, right=(2, 3, 4))


def _stack(state: MemoryState) -> Iterator[str]:
    if state.stack:
        heading = "Allocated by" if state.is_out_of_memory else "Where it ended"
        yield from ("", f"{heading}, innermost first:", "", "```")
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
    yield (
        "|"
        + "|".join("-:" if column in right else "-" for column in range(len(head)))
        + "|"
    )
    for row in rows:
        yield f"| {' | '.join(map(plain, row))} |"


def printable(text: str) -> str:
    """Text from files: nothing in it may steer a terminal or end a block."""
    return "".join(c if c.isprintable() else " " for c in text).replace("```", "'''")


def plain(text: str) -> str:
    """Text from files within Markdown: it neither ends a cell nor becomes markup."""
    escaped = printable(text)
    for mark in "\\|<`[":
        escaped = escaped.replace(mark, f"\\{mark}")
    return escaped
