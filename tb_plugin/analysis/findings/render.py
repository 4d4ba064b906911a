"""Findings as text for terminals, and as Markdown for people and issue trackers.

Every number stands with its scope.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from msgspec import structs

from memboard.collector.format.sizes import counted
from memboard.tb_plugin.analysis.findings.text import quantity_text, share_text
from memboard.tb_plugin.analysis.text_tables import (
    Column,
    Table,
    block_text,
    plain,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from memboard.tb_plugin.api.findings import (
        Advice,
        Evidence,
        Finding,
        HeldBy,
        MemoryState,
        Quantity,
    )

_MAX_STACK: Final = 12
_MAX_HELD_BY: Final = 8

_EVIDENCE: Final[Sequence[Column[Evidence]]] = (
    Column("evidence", lambda row: f"**{row.label}**" if row.decisive else row.label),
    Column("value", lambda row: quantity_text(row.value, row.unit)),
    Column("of", lambda row: row.scope, is_text=True),
    Column("caveat", lambda row: row.caveat, is_text=True),
)
_HELD_BY: Final[Sequence[Column[HeldBy]]] = (
    Column("held by", lambda holder: holder.label or "no stack recorded"),
    Column(
        "category",
        lambda holder: (
            "waits to be freed" if holder.is_pending else holder.category or "not known"
        ),
        is_text=True,
    ),
    Column("size", lambda holder: quantity_text(holder.bytes, "bytes")),
    Column("share of active", lambda holder: share_text(holder.share)),
    Column("blocks", lambda holder: f"{holder.num_blocks:,}"),
)
_PER: Final[dict[Quantity, str]] = {"seconds": " per step", "percent": " of the steps"}
"""Behind gains of a unit."""


@dataclass(frozen=True, slots=True)
class FindingBlock:
    """A finding among the parts of a report."""

    finding: Finding
    is_first: bool
    """Whether its advice is printed in full."""

    def text_lines(self, max_width: int | None = None) -> Iterator[str]:  # noqa: ARG002  # terminals wrap sentences
        return text_lines(self.finding, is_first=self.is_first)

    def markdown_lines(self) -> Iterator[str]:
        return markdown_lines(self.finding)


def with_markdown(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Findings as they are sent, each with its own Markdown."""
    return tuple(
        structs.replace(finding, markdown="\n".join(markdown_lines(finding)))
        for finding in findings
    )


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
    yield block_text(title_text(finding))
    yield f"  {block_text(finding.sentence)}"
    if is_first and finding.state is not None and finding.state.held_sentence:
        yield f"  {block_text(finding.state.held_sentence)}"
    yield from (f"  {block_text(text)}" for text in finding.others)
    if finding.also:
        yield f"  {_also(finding)}"
    if is_first or finding.state is None:
        for advice in finding.advice:
            setting = f" {advice.setting}" if advice.setting else ""
            yield f"    try: {block_text(advice.text + setting)}{_gain(advice)}"
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
    if finding.evidence:
        yield ""
        yield from Table(_EVIDENCE, finding.evidence).markdown_lines()
    if finding.state is not None and finding.state.held_by:
        yield ""
        holders = finding.state.held_by[:_MAX_HELD_BY]
        yield from Table(_HELD_BY, holders).markdown_lines()
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


def _stack(state: MemoryState) -> Iterator[str]:
    if state.stack:
        heading = "Allocated by" if state.is_out_of_memory else "Where it ended"
        yield from ("", f"{heading}, innermost first:", "", "```")
        yield from map(block_text, state.stack[:_MAX_STACK])
        left_out = len(state.stack) - _MAX_STACK
        if left_out > 0:
            yield f"... {counted(left_out, 'frame')} more"
        yield "```"
    if state.message:
        yield ""
        yield f"Message: {plain(state.message)}"
