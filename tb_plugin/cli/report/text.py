"""A report for people to read: the most important numbers, in units that fit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from collector.cli.text import counted, printable, problem_lines, text_table, time_text
from collector.format.sizes import bytes_text, range_text
from tb_plugin.cli.prediction.wording import estimate_lines, line, needed_lines
from tb_plugin.cli.report.snapshots import snapshots_text
from tb_plugin.cli.report.steps import steps_text
from tb_plugin.cli.report.traces import traces_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_MAX_ROWS: Final = 20
"""Ranks, modules and calls that are listed, the largest or newest."""

_FILES: Final = {
    "memprofiler": "MemProfiler's files",
    "snapshots": "memory snapshots",
    "traces": "a profiler's traces",
}
_WORDS: Final = {
    "peak_allocated": "peak allocated",
    "peak_reserved": "peak reserved",
    "headroom": "headroom",
    "fragmentation": "fragmentation",
    "non_torch": "not torch's",
    "growth": "growth",
    "rss_peak": "peak resident",
    "rss_headroom": "headroom on the host",
    "rss_growth": "growth of resident",
    "step_time": "step time",
    "cpu": "processor",
    "workers_rss": "dataloader workers",
}
_UNITS: Final = {
    "_bytes": "",
    "_bytes_per_step": " per step",
    "_bytes_per_second": "/s",
    "_pct": " %",
    "_seconds": " s",
}
_STATS: Final = (
    "allocated_bytes.all.current",
    "allocated_bytes.all.peak",
    "reserved_bytes.all.current",
    "rss_bytes",
)
"""Shown of a call, where it has them."""


def as_text(report: Mapping[str, Any]) -> str:
    """The report as lines."""
    lines: list[str] = []
    for run in report["runs"]:
        lines += [*_run(run, printable(name_of(run, report))), ""]
    for problem in report["problems"]:
        lines += problem_lines(problem)
    return "\n".join(lines).rstrip()


def name_of(run: Mapping[str, Any], report: Mapping[str, Any]) -> str:
    """A run's name; where the logdir itself is the run, its directory's."""
    if run["name"] != ".":
        return str(run["name"])
    return Path(report["logdir"]).resolve().name or "."


def unreal_words(run: Mapping[str, Any]) -> str:
    """Where no real device produced the numbers, what did; empty: a real one."""
    return "simulated" if run["simulated"] else printable(run["virtual_gpu"])


def _run(run: Mapping[str, Any], name: str) -> Iterator[str]:
    marks = ["live"] if run["live"] else []
    if unreal := unreal_words(run):
        marks.append(unreal)
    if run["source"] == "imported":
        marks.append(f"imported from {_FILES.get(run['made_of'], 'files')}")
    yield f"{name}  ({', '.join(marks)})" if marks else name
    yield "=" * len(name)
    overview = run["overview"]
    yield from _verdict(run.get("verdict"))
    if run["source"] == "imported":
        if run["num_ranks"]:
            yield counted(run["num_ranks"], "rank")
    else:
        yield from _recorded(run)
        yield from _endings(overview["endings"])
    yield from _by_rank(overview["ranks"])
    yield from steps_text(run.get("steps"))
    yield from _by_module(run["modules"])
    for function in run["functions"]:
        yield from _by_call(function)
    if run["histories"]:
        ranks = {history["rank"] for history in run["histories"]}
        of = f" on rank {ranks.pop()}" if len(ranks) == 1 else ""
        yield f"captures of the allocator: {len(run['histories'])}{of}"
    yield from snapshots_text(run["snapshots"])
    yield from map(printable, traces_text(run.get("traces", ())))
    sources = overview["sources"]
    known = {s["source"] for s in sources if s["status"] == "recorded"}
    for source in [s for s in sources if s["source"] not in known]:
        reason = f": {printable(source['reason'])}" if source["reason"] else ""
        yield f"not recorded: {source['source']} ({source['status']}){reason}"
    for problem in run["problems"]:
        yield from problem_lines(problem)


def _recorded(run: Mapping[str, Any]) -> Iterator[str]:
    """Its size and its headline numbers."""
    attempts, last_step = run["num_attempts"], run["last_step"]
    yield (
        f"{run['num_ranks']} of {run['world_size'] or run['num_ranks']} ranks,"
        f" {counted(attempts, 'attempt')},"
        f" last step {'-' if last_step is None else last_step}"
    )
    for key, headline in run["overview"]["headlines"].items():
        title, value, where = headline_words(key, headline)
        gap = " " if value == "-" else "  "
        if "other_end_bytes" in headline:
            value += ", estimated"
        yield f"  {title:22} {value}" + (f"{gap}({where})" if where else "")
    yield from _prediction(run["overview"]["prediction"])


def _prediction(found: Mapping[str, Any] | None) -> Iterator[str]:
    """Whether a run on a virtual GPU fits a real one, as `memboard run --on` said it."""
    if found is None:
        return
    of = f"rank {found['rank']}: " if found["num_ranks"] > 1 else ""
    yield f"{found['fit']}: {of}{printable(found['reason'])}"
    if found["decides"]:
        yield f"  {found['decides']}"
    for device in found["devices"]:
        number = f", device {device['device']}" if len(found["devices"]) > 1 else ""
        yield line(f"peak reserved{number}", bytes_text(device["peak_reserved_bytes"]))
    yield from estimate_lines(found["estimates"])
    for device in found["devices"]:
        if device["needed_low_bytes"] is not None:
            yield from needed_lines(device, found["capacity_bytes"])


def _endings(endings: Mapping[str, Any]) -> Iterator[str]:
    """Ranks that did not end in order; what to do is said once of each kind."""
    told = endings["ranks"]
    if not told:
        return
    yield "how it ended:"
    advised = set()
    for one in told:
        yield f"  {printable(one['sentence'])} ({time_text(one['time_ms'])})"
        if one["advice"] and one["advice"] not in advised:
            advised.add(one["advice"])
            yield f"    {printable(one['advice'])}"
    num = sum(endings[f"num_{how}"] for how in ("exception", "signal", "lost"))
    if num > len(told):
        yield f"  and {num - len(told)} more like these"


def _verdict(verdict: Mapping[str, Any] | None) -> Iterator[str]:
    """Why memory ran out, the leading error in full and the others by their sentence."""
    if verdict is None or not verdict["ooms"]:
        return
    for place, one in enumerate(verdict["ooms"]):
        what = "OUT OF MEMORY" if one["is_out_of_memory"] else "ENDED"
        where = [f"rank {one['rank']}"] if one["rank"] is not None else []
        where += [f"device {one['device']}"] if one["device"] is not None else []
        where += [f"step {one['step']}"] if one["step"] is not None else []
        where += [printable(word) for word in (one["during"], one["asked_at"]) if word]
        file = f" ({printable(one['file'])})" if one["file"] else ""
        yield f"{what}: {', '.join(where)}{file}"
        yield f"  {printable(one['sentence'])}"
        if place == 0:
            yield from _first_error(one)
    left_out = verdict["num_ooms"] - len(verdict["ooms"])
    if left_out > 0:
        yield f"{counted(left_out, 'more error')} not listed"


def _first_error(one: Mapping[str, Any]) -> Iterator[str]:
    if one["held_sentence"]:
        yield f"  {printable(one['held_sentence'])}"
    if one["also"]:
        yield f"  also: {', '.join(one['also'])}"
    for advice in one["advice"]:
        stake = advice["bytes"]
        words = printable(advice["text"])
        if advice["setting"]:
            words += f" {advice['setting']}"
        yield f"  try: {words}" + (f" (up to {bytes_text(stake)})" if stake else "")
    if not one["analysed"]:
        yield "  caveat: told from the report alone, without the allocator's history"
    yield "  --md shows the evidence, --json all of it"


def headline_words(key: str, headline: Mapping[str, Any]) -> tuple[str, str, str]:
    """What a headline number is called, its value, and where it was."""
    title = _WORDS.get(key, key)
    if "absent_reason" in headline:
        return title, "-", printable(headline["absent_reason"] or "not recorded")
    ((name, value),) = [(k, v) for k, v in headline.items() if k.startswith("value")]
    ending = name.removeprefix("value")
    if "bytes" in ending:
        text = bytes_text(value) + _UNITS.get(ending, "")
    else:
        text = f"{value:.4g}{_UNITS.get(ending, '')}"
    if "other_end_bytes" in headline:
        text = range_text(*sorted((value, headline["other_end_bytes"])))
    where = [] if headline["rank"] is None else [f"rank {headline['rank']}"]
    where += [] if headline["step"] is None else [f"step {headline['step']}"]
    return title, text, ", ".join(where)


def _by_rank(ranks: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    known = [rank for rank in ranks if rank["peak_bytes"] is not None]
    if not known:
        return
    known.sort(key=lambda rank: -rank["peak_bytes"])
    rows = [
        (
            str(rank["rank"]),
            printable(rank["host"] or "-"),
            bytes_text(rank["peak_bytes"]),
            str(rank["peak_step"] if rank["peak_step"] is not None else "-"),
            bytes_text(rank["capacity_bytes"]),
            "lost" if rank["lost"] else "",
        )
        for rank in known[:_MAX_ROWS]
    ]
    yield f"highest peaks of {counted(len(ranks), 'rank')}:"
    yield from text_table(("rank", "host", "peak", "at step", "of", ""), rows)


def _caveats(facts: Mapping[str, Any]) -> Iterator[str]:
    """What makes a window's numbers less than measured and whole."""
    if estimate := facts.get("estimate"):
        yield f"{estimate}: what ran may differ"
    if facts.get("incomplete"):
        reasons = "; ".join(facts.get("reasons", ())) or "the reason is not known"
        yield f"incomplete: {reasons}"
    if dropped := facts.get("num_events_dropped"):
        yield f"{counted(dropped, 'event')} dropped"


def _by_module(modules: Mapping[str, Any] | None) -> Iterator[str]:
    if modules is None:
        return
    found = [m for m in modules["modules"] if m["total_bytes"] is not None]
    facts = modules["facts"] or {}
    peak = facts.get("window_peak_bytes")
    yield (
        f"modules: {printable(modules['window'])} on rank {modules['rank']},"
        f" {printable(modules['device'])}, {modules['state']};"
        f" peak of the window {bytes_text(peak)}; {counted(len(found), 'module')}"
    )
    for window in modules["passed_over"][:1]:
        yield (
            f"  the last complete one: {printable(window)} came after it and ended early"
        )
    for caveat in _caveats(facts):
        yield f"  {printable(caveat)}"
    if split := modules["split"]:
        yield (
            f"  at that moment modules hold {bytes_text(split['held_bytes'])} of the"
            f" rank's {bytes_text(split['total_bytes'])};"
            f" {bytes_text(split['unattributed_bytes'])} not attributed"
        )
    sizes = {"held": "held_bytes", "own": "own_bytes"}
    if all(m["held_bytes"] is None for m in found):  # a report of another tool
        sizes = {"rank's total": "total_bytes"}
    first = next(iter(sizes.values()))
    found.sort(key=lambda m: -(m[first] or 0))
    rows = [
        (
            printable(m["module"]),
            *(bytes_text(m[name]) for name in sizes.values()),
            _largest(m["categories_bytes"]),
        )
        for m in found[:_MAX_ROWS]
    ]
    yield from text_table(("module", *sizes, "mostly"), rows)


def _by_call(function: Mapping[str, Any]) -> Iterator[str]:
    yield (
        f"{printable(function['function'])} ({printable(function['phase'])}):"
        f" {counted(function['num_calls'], 'call')} on rank {function['rank']}"
    )
    calls = function["calls"][-_MAX_ROWS:]
    names = [n for n in _STATS if any(n in call["stats"] for call in calls)]
    if not names:
        return
    rows = []
    for call in calls:
        cells = [str(call["iteration"])]
        for name in names:
            stat = call["stats"].get(name, {})
            cells.append(bytes_text(stat.get("end")))
            cells.append(_signed(stat.get("difference")))
        rows.append(tuple(cells))
    head = ["call"]
    for name in names:
        head += [name, "+/-"]
    yield from text_table(head, rows)


def _largest(sizes: Mapping[str, float]) -> str:
    named = sorted(sizes.items(), key=lambda item: -item[1])[:2]
    return ", ".join(f"{name} {bytes_text(size)}" for name, size in named if size)


def _signed(size: float | None) -> str:
    if size is None:
        return "-"
    return ("+" if size >= 0 else "") + bytes_text(size)
