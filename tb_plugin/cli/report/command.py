"""Say what the page shows, as text or, with --json, as JSON.

The numbers are those of the Overview, Steps, Modules and Functions views: the same analysis, read
to the end. LOGDIR is what TensorBoard is given, or one run's directory; or name snapshots
that `torch.cuda.memory._dump_snapshot` wrote (pickle or JSON, gzipped or not), or traces of
a profiler. With --rank, only that rank's files are read.

The JSON, as one object on standard output (sizes are bytes, times of day milliseconds
since 1970, null is "not known"; keys may be added, never change their meaning under one
report_version)::

  report_version    1
  memboard_version  who wrote it
  logdir            as given; of files: the first one
  problems          what belongs to no run; each: severity, path, what, where, salvaged,
                    remedy, rank
  runs              in order of their names; each:
    id, name, num_ranks, world_size, num_attempts, first_ms, last_ms, last_step, live,
    simulated, virtual_gpu (its words, or empty), imported, device_type, num_problems
    made_of         recording, memprofiler (its files), snapshots or traces (files of
                    them)
    source          recorded, or imported from another tool's files
    overview
      headlines     by key; each: value_<unit>, rank, step, caveats; or absent_reason;
                    of an estimated range also other_end_bytes
      ranks         each: rank, host, peak_bytes, peak_step, capacity_bytes,
                    growth_bytes_per_step, num_alloc_retries, num_ooms, last_step, lost
      peak_series, capacity_kind, median_peak_bytes, outlier_ranks
      attempts      each: index, started_ms, ended_ms, first_step, last_step, num_ranks,
                    ended, overlaps_previous
      endings       ranks that did not end in order: num_exception, num_signal, num_lost,
                    sentence, ranks (at most 16 of each kind; each: rank, attempt, how
                    (exception, signal, lost), message, step, phase, time_ms, rss_bytes,
                    memory_limit_bytes, sentence, advice)
      sources       each: source, status, num_ranks, reason, remedy, cost
      facts         by key, as text
      planted       of simulated runs
      prediction    of runs on a virtual GPU, else null: fit (fits, does not fit, too close
                    to say, cannot say), reason, decides, rank (whose answer it is),
                    num_ranks, estimates (outside of torch's allocator; each: name,
                    low_bytes, high_bytes, source), outside_low_bytes, outside_high_bytes,
                    capacity_bytes, devices (each: device, peak_reserved_bytes,
                    needed_low_bytes, needed_high_bytes)
    verdict         why memory ran out
      num_ooms      of all ranks
      ooms          at most 20, the first one first; each: id, origin (oom, exception, signal,
                    file), is_out_of_memory, rank, attempt, device, step, phase, during,
                    asked_at, time_ms, message, analysed (the history was read), cause
                    (really_full, fragmented, growth, single_giant, imbalance, non_torch,
                    fitting_block_free, private_pools, pending_free, process_limit,
                    unsure), also (smaller troubles), sentence, held_sentence,
                    requested_bytes, device_free_bytes, capacity_bytes,
                    reserved_bytes, allocated_bytes, active_bytes, free_bytes,
                    num_free_blocks, largest_free_bytes, evidence (each: key, label, value,
                    unit, scope, caveat, decisive), advice (text, setting, bytes at stake,
                    because: keys of the evidence), holders (label, category, bytes, share,
                    num_blocks, stack), stack, history (id), moment, peers (rank, step,
                    allocated_bytes, reserved_bytes, peak_bytes, ended, ran_out),
                    not_recorded
      problems      histories that could not be read
    steps           what the time of steps went to; null where it was not recorded
      num_ranks, num_left_out (not compared), num_steps, step_time_seconds (of the rank in
                    the middle, at the median)
      parts         each: name, seconds (mean of all steps and ranks), share
      rank, num_summed  whose throughput, and over how many ranks it is added up
      rates         by key (steps, samples, tokens, flops, mfu): rank_per_second,
                    all_per_second (of mfu rank_pct and all_pct, the mean); at the median
      flops         origin (settings, trace, nothing), per_step, device_peak, missing
      stragglers    at most 64, those that cost most first; each: rank, host,
                    slowest_share, excess_seconds, part, part_excess_seconds, stands_out,
                    words
      num_standing_out
      findings      each: key, sentence, advice, rank, step, seconds_per_step, evidence
      not_recorded  parts; each: name, reason, remedy
    modules         the last complete window on the rank with the highest peak, or on --rank
      passed_over   ids of later windows, which ended early
      windows       each: id, function, phase, iteration, attempt, step, time_ms, num_ranks
      window, ranks, rank, device, state, states, facts
      modules       parents before children; each: module, type, is_fsdp, param_bytes,
                    buffer_bytes, num_calls, call, time_us, total_bytes (the
                    rank's), held_bytes (with the modules below), own_bytes (by itself),
                    categories_bytes (by category)
      split         at one moment for all modules, else null: total_bytes, held_bytes,
                    unattributed_bytes (no module's), categories_bytes
                    (of those)
      absent        as sources
    functions       each function in each phase
      function, phase, ranks, rank, num_calls (of which the newest 1,000 are listed)
      calls         each: attempt, iteration, step, start_ms, end_ms, stats (by name with
                    its unit: start, end, difference)
      hooks         of the newest call, by module: module, type, <attribute>; or null
      activations   of the newest call: total_bytes, total_npp_compat_bytes, saved (each:
                    module, type, dtype, num_tensors, bytes, npp_compat_bytes); or null
      module_window id of the newest call's window, or null
    histories       captures of the allocator; each: id, rank, attempt, function, phase,
                    iteration, context, label, step, time_ms, num_bytes, path
    snapshots       every file, and the newest 20 captures; each as in histories, and:
      origin        file, call, by_hand, oom, exception, signal
      problem       why it cannot be read (as above); or null
      settings      of the allocator
      devices       each: device, capacity_bytes, num_segments, num_blocks; at the end
                    reserved_bytes, allocated_bytes, active_bytes, inactive_bytes,
                    largest_inactive_block_bytes, requested_bytes_active; num_events,
                    actions (events by action), peak_active_bytes, peak_allocated_bytes and
                    peak_reserved_bytes, and the events that reached them:
                    peak_active_event, peak_allocated_event, peak_reserved_event (-1:
                    before all); peak_active_ms, peak_active_step, distinct_alloc_stacks, oom
                    (each: size, device_free), holders (at the peak; each: label, category,
                    bytes, share, num_blocks), categories_bytes (at the peak),
                    not_recorded (texts)
    traces          of torch's profiler; those recorded, each: rank, attempt, time_ms, path
                    (null: it was not saved), exists, cycle, first_step, last_step,
                    num_steps, num_bytes, num_events, flops (of all its steps), problem,
                    complete, remote (url), summary (text); then other files, each: rank,
                    worker, cycle (number among the worker's files), name, path, exists,
                    num_bytes, problem (why it cannot be read), problems (each: what,
                    count, where), events, by_ph_cat (events by phase|category),
                    baseTimeNanoseconds, displayTimeUnit, distributedInfo,
                    n_device_properties, profiler_steps (name, start and duration in us),
                    gpu (kernels, nccl_kernels, us of each as sum and union, overlap_us;
                    where there is a device), memory_by_device_type_id (by `type:device`:
                    events, allocs, frees, bytes, peaks, live_at_end)
    problems        as above

Exit code 0, also where files are damaged (they are listed); 1 where there is nothing to
report; 2 where nothing that was named can be read.
"""

from __future__ import annotations

import json
import sys
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from collector.cli.failure import Failure
from tb_plugin.cli.addresses import path_or_url
from tb_plugin.cli.capacity import add_capacity
from tb_plugin.cli.run_options import add_run

if TYPE_CHECKING:
    import argparse

    from tb_plugin import api
    from tb_plugin.index.run import Run
    from tb_plugin.index.store import Store

HELP = "say what the page shows, as text or JSON"

REPORT_VERSION: Final = 1

_CACHE_BYTES: Final = 256 << 20

_RECORDED: Final = ("recording", "memprofiler")
"""What runs are made of that hold more than files which are opened one by one."""

_MAX_PASSED_OVER: Final = 20
"""Windows that ended early, before the very last one is reported as it is."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `memboard report`."""
    parser.add_argument(
        "paths",
        nargs="+",
        type=path_or_url,
        metavar="LOGDIR_OR_FILE",
        help="a logdir, snapshots of the allocator, or traces; paths, or URLs such as"
        " s3://bucket/runs",
    )
    add_run(parser, "one run alone")
    parser.add_argument("--rank", type=int, metavar="N", help="one rank alone")
    add_capacity(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="as JSON, for programs")
    form.add_argument(
        "--md",
        action="store_true",
        help="as Markdown: every number with its scope and its caveat",
    )


def run(options: argparse.Namespace) -> int:
    """Print the report."""
    from tb_plugin.cli.left_dumps import finish_dumps
    from tb_plugin.cli.named_files import tell
    from tb_plugin.cli.recordings import choose_run
    from tb_plugin.cli.report.markdown import report_markdown
    from tb_plugin.cli.report.text import as_text

    store, logdir, refused = _store(options.paths)
    if options.name is None:
        runs = store.runs()
    else:
        runs = [choose_run(store, options.name, logdir)]
    _, _, problems = store.seen_besides()
    if not runs and not refused and not problems:
        raise Failure(
            "there is no recording",
            where=str(logdir),
            remedy="name the directory given to collector.record, or one above it",
        )
    if refused and (options.json or options.md or not runs):
        # The output goes to programs and files: whoever waits reads the other one.
        tell(refused, "report")
    if not (runs or problems or options.json or options.md):
        return 2
    finish_dumps(runs)
    reader = _Reader(store, options.capacity)
    report = _report(reader, store, runs, options, logdir)
    report["problems"] += [failure.as_problem() for failure in refused]
    if options.json:
        json.dump(report, sys.stdout, ensure_ascii=True, allow_nan=False)
        print()
    elif options.md:
        print(report_markdown(report, reader.errors))
    else:
        print(as_text(report))
    return 2 if _is_nothing_readable(report) else 0


def report_of(
    run_dir: Path, *, rank: int | None = None, capacity_bytes: int | None = None
) -> dict[str, Any]:
    """One run's part of the report; of one rank alone where that is given.

    Raises:
        Failure: there is no recording.
    """
    from tb_plugin.cli.recordings import open_logdir

    store = open_logdir(run_dir)
    runs = store.runs()
    if not runs:
        raise Failure("there is no recording", where=str(run_dir))
    return _Reader(store, capacity_bytes).run(runs[0], rank)


def _store(
    paths: list[Path | str],
) -> tuple[Store, Path | str, list[Failure]]:
    """Everything that was named, what to call it in messages, and what was refused.

    Raises:
        Failure: there is no such logdir.
    """
    from tb_plugin.cli.named_files import is_folder, sorted_out
    from tb_plugin.cli.recordings import open_logdir, open_store
    from tb_plugin.index.given import Given
    from tb_plugin.index.store import Store

    first = paths[0]
    if isinstance(first, Path):
        is_missing = not (first.exists() or first.suffix)
        if len(paths) == 1 and (first.is_dir() or is_missing):
            return open_logdir(first), first, []
    good, bad = sorted_out(paths, folders=len(paths) == 1)
    if good and isinstance(good[0], str) and is_folder(good[0]):
        return open_store(good[0]), good[0], bad
    given = Given(files=tuple(map(str, good))).runs()
    store = Store((), lambda: given)
    store.look()
    return store, first, bad


def _report(
    reader: _Reader,
    store: Store,
    runs: list[Run],
    options: argparse.Namespace,
    logdir: Path | str,
) -> dict[str, Any]:
    from tb_plugin.cli.report.values import plain
    from tb_plugin.pages.overview.runs import plugin_version

    if options.rank is not None and len(runs) > 1:
        runs = [run for run in runs if _has_rank(run, options.rank)] or runs[:1]
    _, _, problems = store.seen_besides()
    return {
        "report_version": REPORT_VERSION,
        "memboard_version": plugin_version(),
        "logdir": str(logdir if isinstance(logdir, str) else options.paths[0]),
        "problems": plain(problems),
        "runs": [reader.run(run, options.rank) for run in runs],
    }


def _is_nothing_readable(report: dict[str, Any]) -> bool:
    """Whether there is nothing but problems."""
    files = [
        one for run in report["runs"] for one in (*run["snapshots"], *run["traces"])
    ]
    recorded = any(run["made_of"] in _RECORDED for run in report["runs"])
    return not recorded and all(one["problem"] for one in files)


def _has_rank(run: Run, rank: int) -> bool:
    from tb_plugin.cli.recordings import unhurried

    run.update(unhurried(), only=())
    return rank in run.ranks


class _Reader:
    """Asks the views."""

    def __init__(self, store: Store, capacity_bytes: int | None) -> None:
        from tb_plugin.cache import Cache
        from tb_plugin.cli.report.verdict import VerdictSection
        from tb_plugin.formats.recording.functions import FunctionsReader
        from tb_plugin.formats.recording.modules import ModulesReader
        from tb_plugin.jobs.histories import HistoriesReader
        from tb_plugin.pages.overview.facts import FactsReader

        self._series = store.series
        self._facts = FactsReader(store.series)
        self._modules = ModulesReader(Cache(_CACHE_BYTES))
        self._functions = FunctionsReader(Cache(_CACHE_BYTES))
        self._histories = HistoriesReader()
        self._verdict = VerdictSection(
            self._facts, self._histories, store.cache, capacity_bytes
        )
        self.errors: dict[str, tuple[api.OutOfMemory, ...]] = {}
        """Of each run that was reported, by its id."""

    def run(self, run: Run, rank: int | None) -> dict[str, Any]:
        """One run's part of the report."""
        from tb_plugin.cli.recordings import read_whole, unhurried
        from tb_plugin.cli.report.sections import (
            function_section,
            histories_section,
            modules_section,
            overview_section,
        )
        from tb_plugin.cli.report.snapshots import snapshots_section
        from tb_plugin.cli.report.steps import steps_section
        from tb_plugin.cli.report.traces import traces_section
        from tb_plugin.cli.report.values import plain
        from tb_plugin.pages.overview.overview import overview
        from tb_plugin.pages.overview.runs import summary_of
        from tb_plugin.pages.timeline.selection import RanksQuery

        read_whole(run, rank)
        summary = summary_of(self._series, run)
        budget = unhurried()
        query = RanksQuery(rank=rank)
        first = overview(self._series, self._facts, run, summary, query, budget)
        by_module, passed_over = self._by_module(run, summary, rank)
        answers = self._by_function(run, summary, rank)
        judge = self._verdict.judge
        snapshots = [*snapshots_section(run, rank, self._histories, judge)]
        why, self.errors[summary.id] = self._verdict.of(run, summary, rank)
        problems = [p for p in run.problems if rank in (None, p.rank)]
        own = [p for p in by_module.problems if p not in problems]
        return {
            **plain(summary_of(self._series, run)),
            "source": "recorded" if run.made_of == "recording" else "imported",
            "overview": overview_section(first),
            "verdict": why,
            "steps": steps_section(self._series, run, summary, rank),
            "modules": None
            if by_module.window is None
            else modules_section(by_module, passed_over),
            "functions": [function_section(a) for a in answers if a.function],
            "histories": histories_section(answers),
            "snapshots": snapshots,
            "traces": traces_section(run, rank),
            "problems": plain([*problems, *own]),
        }

    def _by_module(
        self, run: Run, summary: api.RunSummary, rank: int | None
    ) -> tuple[api.ModulesResponse, list[str]]:
        """The last complete window; and later ones, which an error cut short.

        Where none of the last is complete, the very last one.
        """
        from tb_plugin.cli.recordings import unhurried
        from tb_plugin.pages.modules.modules import ModulesQuery, modules

        def ask(window: str | None = None) -> api.ModulesResponse:
            query = ModulesQuery(rank=rank, window=window)
            return modules(
                self._modules, self._series, run, summary, query, unhurried()
            )

        last = found = ask()
        passed_over: list[str] = []
        earlier = (w.id for w in reversed(last.windows) if w.id != last.window)
        for window in islice(earlier, _MAX_PASSED_OVER):
            if (
                found.window is None
                or found.facts is None
                or not found.facts.incomplete
            ):
                break
            passed_over.append(found.window)
            found = ask(window)
        if found.facts is not None and found.facts.incomplete:
            return last, []
        return found, passed_over

    def _by_function(
        self, run: Run, summary: api.RunSummary, rank: int | None
    ) -> list[api.FunctionsResponse]:
        from tb_plugin.cli.recordings import unhurried
        from tb_plugin.pages.functions.functions import FunctionsQuery, functions

        def ask(
            function: str | None = None, phase: str | None = None
        ) -> api.FunctionsResponse:
            query = FunctionsQuery(rank=rank, function=function, phase=phase)
            return functions(self._functions, run, summary, query, unhurried())

        first = ask()
        return [ask(found.function, found.phase) for found in first.functions] or [
            first
        ]
