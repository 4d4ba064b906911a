"""Print the pages' numbers about runs and files, as text, Markdown or JSON.

The numbers are those of Overview with its findings, Steps, Modules and Calls, read to the
end; and of each snapshot and trace. Name a logdir or a run's directory; or snapshots, as
`torch.cuda.memory._dump_snapshot` writes them, and traces. With --rank, only that rank's
files are read. Damaged files are listed, and then the exit code is 4; one whose process was
killed while it wrote is listed alone. The keys of --json are in the documentation.
"""

from __future__ import annotations

import json
import sys
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import Struct, to_builtins

from memboard.collector.cli.failure import Failure
from memboard.collector.cli.terminal import say, width_of
from memboard.collector.format.sizes import capitalized, printable
from memboard.tb_plugin import plugin_version
from memboard.tb_plugin.api.base import Problem
from memboard.tb_plugin.cli.afterwards.dumps import finish_all
from memboard.tb_plugin.cli.opening import (
    choose_run,
    is_folder,
    no_deadline,
    open_files,
    path_or_url,
    runs_at,
)
from memboard.tb_plugin.cli.options import add_capacity, add_run, whole_number
from memboard.tb_plugin.cli.report.document import markdown_of, text_of
from memboard.tb_plugin.cli.report.memory_sections import values_of
from memboard.tb_plugin.cli.report.reading import Reader, RunReport
from memboard.tb_plugin.cli.report.sections import run_section
from memboard.tb_plugin.cli.text import complain, problem_lines
from memboard.tb_plugin.formats.registry import WHAT_IS_READ
from memboard.tb_plugin.index.logdirs import OpenedPaths
from memboard.tb_plugin.index.store import Store
from memboard.tb_plugin.jobs.problems import failed_problem

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from memboard.tb_plugin.cli.opening import Place
    from memboard.tb_plugin.index.run import Run

REPORT_VERSION: Final = 2
EXIT_NOTHING: Final = 2
EXIT_DAMAGED: Final = 4
"""All that could be read was reported, and problems name what could not."""


class Report(Struct, frozen=True):
    """The JSON: keys may be added, never change their meaning under one version."""

    report_version: int
    memboard_version: str
    logdir: str
    """As it was given; of files: the first one."""
    problems: tuple[Problem, ...]
    runs: tuple[RunReport, ...]

    @property
    def is_read_whole(self) -> bool:
        """Whether all that was written was read."""
        of_runs = (run.problems for run in self.runs)
        problems = chain(self.problems, *of_runs)
        return all(problem.severity == "info" for problem in problems)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `memboard report`."""
    parser.add_argument(
        "paths",
        nargs="+",
        type=path_or_url,
        metavar="LOGDIR_OR_FILE",
        help="paths, or URLs such as s3://bucket/runs",
    )
    add_run(parser, "only this run")
    parser.add_argument(
        "--rank", type=whole_number(0), metavar="N", help="only this rank"
    )
    add_capacity(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="as JSON, for programs")
    form.add_argument(
        "--md",
        action="store_true",
        help="as Markdown: every number with its scope and its caveat",
    )


def run(options: argparse.Namespace) -> int:
    store, logdir, refused = _store(options.paths)
    runs = store.runs()
    if options.name is not None:
        runs = [choose_run(store, options.name, logdir)]
    problems = store.problems()
    if not runs and not refused and not problems:
        reason = "there is no recording, no snapshot and no trace"
        raise Failure(reason, where=logdir, remedy=WHAT_IS_READ)
    is_text = not (options.json or options.md)
    if not is_text or not runs:  # the output goes to a program or a file
        complain("report", refused)
        if is_text and not problems:
            return EXIT_NOTHING
    finish_all(runs)
    if options.rank is not None and len(runs) > 1:
        runs = [run for run in runs if _has_rank(run, options.rank)] or runs[:1]
    reader = Reader(store, options.capacity)
    reports, failed = _read(reader, runs, options.rank)
    report = Report(
        report_version=REPORT_VERSION,
        memboard_version=plugin_version(),
        logdir=str(logdir if isinstance(logdir, str) else options.paths[0]),
        problems=(*problems, *map(_problem_of, refused), *failed),
        runs=tuple(reports),
    )
    if options.json:
        print(json.dumps(to_builtins(report, enc_hook=_plain), allow_nan=False))
    else:
        text = "\n".join(_lines(report, is_markdown=options.md)).rstrip()
        if options.md:
            print(text)
        else:
            say(text)
    if not any(run.is_readable for run in report.runs):
        return EXIT_NOTHING
    return 0 if report.is_read_whole else EXIT_DAMAGED


def _read(
    reader: Reader, runs: Sequence[Run], rank: int | None
) -> tuple[list[RunReport], list[Problem]]:
    """Each run, and why some cannot be reported: one that fails hides no other."""
    reports: list[RunReport] = []
    problems: list[Problem] = []
    for run in runs:
        try:
            reports.append(reader.run(run, rank))
        except Exception as error:  # noqa: PERF203  # the others are reported
            if isinstance(error, Failure):  # what an argument names is not there
                raise
            problems.append(failed_problem(run.found.shown_folder, error))
    return reports, problems


def _store(paths: Sequence[Place]) -> tuple[Store, Place, list[Failure]]:
    """All that was named, its name in messages, and what cannot be opened."""
    first = paths[0]
    if len(paths) == 1 and isinstance(first, Path):
        is_missing = not (first.exists() or first.suffix)
        if first.is_dir() or is_missing:
            return runs_at(first), first, []
    good, bad = open_files(paths, folders=len(paths) == 1)
    if good and isinstance(good[0], str) and is_folder(good[0]):
        return runs_at(good[0]), good[0], bad
    runs_of_files = OpenedPaths(files=tuple(map(str, good))).runs()
    store = Store((), lambda: runs_of_files)
    store.look()
    return store, first, bad


def _has_rank(run: Run, rank: int) -> bool:
    run.update(no_deadline(), only=())
    return rank in run.ranks


def _problem_of(failure: Failure) -> Problem:
    return Problem(
        severity="error",
        path=failure.where,
        what=f"{capitalized(failure.what)}.",
        remedy=failure.remedy,
    )


def _lines(report: Report, *, is_markdown: bool) -> Iterator[str]:
    for run in report.runs:
        section = run_section(run, printable(run.run.name))
        if is_markdown:
            yield from markdown_of(section)
        else:
            yield from text_of(section, width_of(sys.stdout))
        yield ""
    lines = [line for problem in report.problems for line in problem_lines(problem)]
    fence = ["```"] if is_markdown and lines else []
    yield from (*fence, *lines, *fence)


def _plain(value: Any) -> Any:
    """Columns and numbers of numpy's as JSON has them."""
    return values_of(value) if isinstance(value, np.ndarray) else value.item()
