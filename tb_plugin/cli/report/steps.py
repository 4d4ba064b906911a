"""The steps of a report: what their time went to, throughput, who is waited for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from collector.cli.text import printable
from tb_plugin.cli.report.values import number, plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tb_plugin import api
    from tb_plugin.formats.recording.series import SeriesReader
    from tb_plugin.index.run import Run

_MAX_ROWS: Final = 5
"""Stragglers that are listed as text."""

_RATES: Final = {
    "steps": "steps",
    "samples": "samples",
    "tokens": "tokens",
    "flops": "operations",
}


def steps_section(
    series: SeriesReader, run: Run, summary: api.RunSummary, rank: int | None
) -> dict[str, Any] | None:
    """What the Steps view shows; None where no step's time was recorded."""
    from tb_plugin.cli.recordings import unhurried
    from tb_plugin.pages.distributed.stragglers import stragglers_view
    from tb_plugin.pages.steps.steps import StepsQuery, steps
    from tb_plugin.pages.timeline.selection import RanksQuery

    course = steps(series, run, summary, StepsQuery(rank=rank), unhurried())
    if course.rank is None:
        return None
    beside = stragglers_view(series, run, summary, RanksQuery(rank=rank), unhurried())
    return {
        "num_ranks": beside.num_ranks,
        "num_left_out": beside.num_left_out,
        "num_steps": beside.num_steps,
        "step_time_seconds": number(beside.step_seconds),
        "parts": plain(beside.parts),
        "rank": course.rank,
        "num_summed": course.num_summed,
        "rates": {
            rate.key: {
                f"rank_{_unit(rate.key)}": number(rate.median),
                f"all_{_unit(rate.key)}": number(rate.summed_median),
            }
            for rate in course.rates
        },
        "flops": plain(course.flops),
        "stragglers": plain(beside.rows),
        "num_standing_out": beside.num_standing_out,
        "findings": plain(beside.findings),
        "not_recorded": plain(course.absent),
    }


def _unit(key: str) -> str:
    return "pct" if key == "mfu" else "per_second"


def steps_text(steps: Mapping[str, Any] | None) -> Iterator[str]:
    """The same as lines."""
    if steps is None:
        return
    from tb_plugin.pages.steps.words import duration_words

    usual = steps["step_time_seconds"]
    took = "-" if usual is None else duration_words(usual)
    yield f"steps: {steps['num_steps']}, {took} each at the median"
    for part in steps["parts"]:
        share = f"{100 * part['share']:5.1f} %"
        yield f"  {part['name']:22} {share}  {duration_words(part['seconds'])}"
    for key, rate in steps["rates"].items():
        yield f"  {_rate_words(key, rate, steps)}"
    if "mfu" not in steps["rates"] and steps["flops"]["missing"]:
        yield f"  no MFU: {steps['flops']['missing']}"
    for finding in steps["findings"]:
        yield f"  {printable(finding['sentence'])}"
        for advice in finding["advice"]:
            yield f"    try: {advice}"
    late = [row for row in steps["stragglers"] if row["stands_out"]]
    for row in late[:_MAX_ROWS]:
        host = f" ({printable(row['host'])})" if row["host"] else ""
        yield f"  {row['words']}{host}"
    if len(late) > _MAX_ROWS:
        yield f"  {steps['num_standing_out'] - _MAX_ROWS} more stragglers not listed"
    for part in steps["not_recorded"]:
        yield f"  not recorded: {part['name']}: {part['reason']}; {part['remedy']}"


def _rate_words(
    key: str, rate: Mapping[str, float | None], steps: Mapping[str, Any]
) -> str:
    own, every = rate[f"rank_{_unit(key)}"], rate[f"all_{_unit(key)}"]
    if key == "mfu":
        value = own if every is None else every
        whose = f"rank {steps['rank']}" if every is None else "mean over ranks"
        return (
            f"{'MFU':22} {value or 0:.1f} % ({whose}; flops per second / device peak)"
        )
    title = f"{_RATES[key]} per second"
    together = "" if every is None else f", {rate_text(every)} over all ranks"
    return f"{title:22} {rate_text(own)} (rank {steps['rank']}){together}"


def rate_text(value: float | None) -> str:
    """A number per second: `6.793`, `27,823`, `40.8 T`."""
    if value is None:
        return "-"
    for least, prefix in ((1e15, " P"), (1e12, " T"), (1e9, " G")):
        if value >= least:
            return f"{value / least:.1f}{prefix}"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def steps_markdown(steps: Mapping[str, Any] | None) -> Iterator[str]:
    """Findings with their evidence, and where the time went, as tables."""
    from tb_plugin.pages.steps.words import duration_words
    from tb_plugin.pages.verdict import report as markdown

    if steps is None:
        return
    yield "## Steps"
    for finding in steps["findings"]:
        yield ""
        yield f"**{markdown.plain(finding['sentence'])}**"
        yield ""
        for advice in finding["advice"]:
            yield f"- {markdown.plain(advice)}"
        yield ""
        rows = [
            (one["label"], _evidence(one, duration_words), one["scope"])
            for one in finding["evidence"]
        ]
        yield from markdown.markdown_table(
            ("evidence", "value", "of"), rows, right=(1,)
        )
    if not steps["findings"]:
        yield ""
        yield (
            "Nothing was found that slows the steps down: no straggler, no wait for the"
            " dataloader, no slow step at equal distances, no growth."
        )
    if steps["parts"]:
        yield ""
        rows = [
            (
                part["name"],
                duration_words(part["seconds"]),
                f"{100 * part['share']:.1f} %",
            )
            for part in steps["parts"]
        ]
        yield from markdown.markdown_table(
            ("part of the step", "mean", "share"), rows, right=(1, 2)
        )
    yield ""


def _evidence(one: Mapping[str, Any], duration: Callable[[float], str]) -> str:
    value = float(one["value"])
    if one["unit"] == "seconds":
        return duration(value)
    return f"{value:.1f} %" if one["unit"] == "percent" else f"{value:,.0f}"
