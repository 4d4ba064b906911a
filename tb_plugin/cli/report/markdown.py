"""A report as Markdown, for pull requests, issues and agents.

Scope and caveat of each number stand beside it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tb_plugin.cli.report.snapshots import snapshots_markdown
from tb_plugin.cli.report.steps import steps_markdown
from tb_plugin.cli.report.text import as_text, headline_words, name_of
from tb_plugin.pages.verdict.report import as_markdown, markdown_table, plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tb_plugin import api

_CAVEATS: Final = {
    "sampled": "sampled at intervals: a shorter peak may have been missed",
    "estimated": "estimated from other numbers",
    "cumulative_peak": "the peak since the start, not of single steps",
    "no_limit": "no memory limit was recorded",
    "few_steps": "from few steps",
    "after_warmup": "without the steps of the warm-up",
    "one_host": "measured on one host and taken for all",
}


def report_markdown(
    report: Mapping[str, Any], verdicts: Mapping[str, tuple[api.OutOfMemory, ...]]
) -> str:
    """The whole report; `verdicts`: errors by the id of their run."""
    lines: list[str] = []
    for run in report["runs"]:
        lines += [*_run(run, report, verdicts.get(run["id"], ())), ""]
    outside = as_text({**report, "runs": []})
    if outside:
        lines += ["```", outside, "```"]
    return "\n".join(lines).rstrip()


def _run(
    run: Mapping[str, Any],
    report: Mapping[str, Any],
    errors: tuple[api.OutOfMemory, ...],
) -> Iterator[str]:
    yield f"# {plain(name_of(run, report))}"
    if run["simulated"]:
        yield ""
        yield "Simulated data: no training produced these numbers."
    elif run["virtual_gpu"]:
        yield ""
        yield (
            f"{plain(run['virtual_gpu'])}: memory is what torch's allocator did; values"
            " and times are not real."
        )
    if (found := run["overview"]["prediction"]) is not None:
        yield ""
        yield f"**{found['fit']}**: {plain(found['reason'])}"
    for error in errors:
        yield ""
        yield as_markdown(error)
    left_out = run["verdict"]["num_ooms"] - len(errors)
    if left_out > 0:
        yield ""
        yield f"{left_out} more out-of-memory errors are not listed."
    if not errors:
        yield ""
        yield "No out-of-memory error was recorded."
    yield from snapshots_markdown(run["snapshots"])
    if sentence := run["overview"]["endings"]["sentence"]:
        yield ""
        yield plain(sentence)
    if run["overview"]["headlines"] and run["source"] == "recorded":
        yield ""
        yield "## Numbers"
        yield ""
        rows = (_headline(*item) for item in run["overview"]["headlines"].items())
        yield from markdown_table(("", "value", "of", "caveat"), rows, right=(1,))
    if run.get("steps") is not None:
        yield ""
        yield from steps_markdown(run["steps"])
    if run["source"] != "recorded" and not run["functions"] and not run["problems"]:
        return
    yield ""
    yield "## Everything else"
    yield ""
    yield "```"
    rest = {**run, "verdict": None, "snapshots": []}
    text = as_text({**report, "runs": [rest], "problems": []})
    yield text.replace("```", "'''")
    yield "```"


def _headline(key: str, headline: Mapping[str, Any]) -> tuple[str, ...]:
    caveats = [_CAVEATS.get(name, name) for name in headline.get("caveats", ())]
    return *headline_words(key, headline), "; ".join(caveats)
