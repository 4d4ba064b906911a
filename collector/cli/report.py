"""Say what the page shows, as text or, with --json, as JSON.

The numbers are those of the Overview, Modules and Functions views: the same analysis, read
to the end. LOGDIR is what TensorBoard is given, or one run's directory. With --rank, only
that rank's files are read.

The JSON, as one object on standard output (sizes are bytes, times of day milliseconds
since 1970, null is "not known"; keys may be added, never change their meaning under one
report_version)::

  report_version    1
  memboard_version  who wrote it
  logdir            as given
  problems          what belongs to no run; each: severity, path, what, where, salvaged,
                    remedy, rank
  runs              in order of their names; each:
    id, name, num_ranks, world_size, num_attempts, first_ms, last_ms, last_step, live,
    simulated, device_type, num_problems
    source          recorded, or imported from MemProfiler's files
    overview
      headlines     by key; each: value_<unit>, rank, step, caveats; or absent_reason
      ranks         each: rank, host, peak_bytes, peak_step, capacity_bytes,
                    growth_bytes_per_step, num_alloc_retries, num_ooms, last_step, lost
      peak_series, capacity_kind, median_peak_bytes, outlier_ranks
      attempts      each: index, started_ms, ended_ms, first_step, last_step, num_ranks,
                    ended, overlaps_previous
      sources       each: source, status, num_ranks, reason, remedy, cost
      facts         by key, as text
      planted       of simulated runs
    modules         the last window on the rank with the highest peak, or on --rank
      windows       each: id, function, phase, iteration, attempt, step, time_ms, num_ranks
      window, ranks, rank, device, state, states, facts
      modules       parents before children; each: module, type, is_fsdp, param_bytes,
                    buffer_bytes, num_calls, call, time_us, total_bytes, own_bytes,
                    categories_bytes (by category)
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
    problems        as above

Exit code 0, also where files are damaged (they are listed); 1 where there is nothing to
report.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from collector.cli.failure import Failure

if TYPE_CHECKING:
    import argparse

    from tb_plugin import api
    from tb_plugin.run import Run
    from tb_plugin.store import Store

HELP = "say what the page shows, as text or JSON"

REPORT_VERSION: Final = 1

_CACHE_BYTES: Final = 256 << 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `memboard report`."""
    parser.add_argument("logdir", type=Path, metavar="LOGDIR", help="what to read")
    parser.add_argument("--run", dest="name", metavar="NAME", help="one run alone")
    parser.add_argument("--rank", type=int, metavar="N", help="one rank alone")
    parser.add_argument("--json", action="store_true", help="as JSON, for programs")


def run(options: argparse.Namespace) -> int:
    """Print the report."""
    from collector.cli.recordings import choose_run, open_logdir
    from collector.cli.report_text import as_text

    store = open_logdir(options.logdir)
    if options.name is None:
        runs = store.runs()
    else:
        runs = [choose_run(store, options.name, options.logdir)]
    if not runs:
        raise Failure(
            "there is no recording",
            where=str(options.logdir),
            remedy="name the directory given to collector.record, or one above it",
        )
    report = _report(store, runs, options)
    if options.json:
        json.dump(report, sys.stdout, ensure_ascii=True, allow_nan=False)
        print()
    else:
        print(as_text(report))
    return 0


def _report(
    store: Store, runs: list[Run], options: argparse.Namespace
) -> dict[str, Any]:
    from collector.cli.report_values import plain
    from tb_plugin.views.runs import plugin_version

    reader = _Reader(store)
    if options.rank is not None and len(runs) > 1:
        runs = [run for run in runs if _has_rank(run, options.rank)] or runs[:1]
    _, _, problems = store.seen_besides()
    return {
        "report_version": REPORT_VERSION,
        "memboard_version": plugin_version(),
        "logdir": str(options.logdir),
        "problems": plain(problems),
        "runs": [reader.run(run, options.rank) for run in runs],
    }


def _has_rank(run: Run, rank: int) -> bool:
    from collector.cli.recordings import unhurried

    run.update(unhurried(), only=())
    return rank in run.ranks


class _Reader:
    """Asks the views."""

    def __init__(self, store: Store) -> None:
        from tb_plugin.cache import Cache
        from tb_plugin.readers.functions import FunctionsReader
        from tb_plugin.readers.modules import ModulesReader
        from tb_plugin.views.facts import FactsReader

        self._series = store.series
        self._facts = FactsReader(store.series)
        self._modules = ModulesReader(Cache(_CACHE_BYTES))
        self._functions = FunctionsReader(Cache(_CACHE_BYTES))

    def run(self, run: Run, rank: int | None) -> dict[str, Any]:
        """One run's part of the report."""
        from collector.cli.recordings import read_whole, unhurried
        from collector.cli.report_sections import (
            function_section,
            histories_section,
            modules_section,
            overview_section,
        )
        from collector.cli.report_values import plain
        from tb_plugin.query import parse_query
        from tb_plugin.views.modules import modules
        from tb_plugin.views.overview import overview
        from tb_plugin.views.runs import summary_of

        read_whole(run, rank)
        query = parse_query({} if rank is None else {"rank": str(rank)})
        summary = summary_of(self._series, run)
        budget = unhurried()
        first = overview(self._series, self._facts, run, summary, query, budget)
        by_module = modules(self._modules, self._series, run, summary, query, budget)
        answers = self._by_function(run, summary, rank)
        problems = [p for p in run.problems if rank in (None, p.rank)]
        own = [p for p in by_module.problems if p not in problems]
        return {
            **plain(summary_of(self._series, run)),
            "source": "recorded" if run.imported is None else "imported",
            "overview": overview_section(first),
            "modules": None if by_module.window is None else modules_section(by_module),
            "functions": [function_section(a) for a in answers if a.function],
            "histories": histories_section(answers),
            "problems": plain([*problems, *own]),
        }

    def _by_function(
        self, run: Run, summary: api.RunSummary, rank: int | None
    ) -> list[api.FunctionsResponse]:
        from collector.cli.recordings import unhurried
        from tb_plugin.query import parse_query
        from tb_plugin.views.functions import functions

        own = {} if rank is None else {"rank": str(rank)}

        def ask(**asked: str) -> api.FunctionsResponse:
            query = parse_query({**own, **asked})
            return functions(self._functions, run, summary, query, unhurried())

        first = ask()
        return [
            ask(function=found.function, phase=found.phase) for found in first.functions
        ] or [first]
