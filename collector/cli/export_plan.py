"""Which files a recording can give, and how each of them is made."""

from __future__ import annotations

import math
import pickle
from functools import partial
from typing import TYPE_CHECKING, Any

from collector.cli.export_files import Planned, UnmadeError, safe_name
from collector.cli.export_report import report_text, window_report
from collector.cli.export_snaps import has_snaps, snaps_of
from collector.cli.export_stats import PICKLE_PROTOCOL, as_pickle, as_yaml, stats_of
from collector.format.errors import FormatError
from collector.format.snapshots import rebuilt
from collector.history.pickles import pickle_name
from tb_plugin.budget import Budget
from tb_plugin.cache import Cache
from tb_plugin.readers.captures import captures_of, read_capture
from tb_plugin.readers.functions import TABLE_PREFIX
from tb_plugin.readers.memprofiler.names import FunctionKey, names_of
from tb_plugin.readers.modules import ModulesError, ModulesReader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from collector.cli.export_report import Layout, WindowReport
    from collector.format.records import CaptureEntry
    from tb_plugin.readers.modules import RankWindow, WindowKey
    from tb_plugin.readers.rank_file import RankFile
    from tb_plugin.run import AttemptFiles, Run

_CACHE_BYTES = 64 << 20
_HISTORY = "history"


class Plan:
    """The files of one attempt."""

    def __init__(self, run: Run, attempt: AttemptFiles, layout: Layout) -> None:
        self._attempt = attempt
        self._layout = layout
        self._modules = ModulesReader(Cache(_CACHE_BYTES))
        self._windows: dict[int, list[tuple[WindowKey, RankWindow]]] = {}
        for key, ranks in self._modules.windows(run, Budget(math.inf)).items():
            if key.attempt == attempt.index:
                for rank, window in ranks.items():
                    self._windows.setdefault(rank, []).append((key, window))
        self._names = names_of(self._functions())
        """Of all ranks, so that a call is called the same on each."""

    def _functions(self) -> Iterator[FunctionKey]:
        """What was collected, whatever of it."""
        for windows in self._windows.values():
            for key, _ in windows:
                yield FunctionKey(key.function, key.phase)
        for file in self._attempt.files.values():
            for schema in file.schemas.values():
                if schema.table.startswith(TABLE_PREFIX):
                    function = schema.table.removeprefix(TABLE_PREFIX)
                    yield FunctionKey(function, schema.phase)
            for entry in captures_of(file):
                if entry.kind == _HISTORY and entry.function:
                    yield FunctionKey(entry.function, entry.phase)

    def files(self, kind: str, rank: int) -> Iterator[Planned]:
        """A rank's files of one kind."""
        make: dict[str, Callable[[int], Iterator[Planned]]] = {
            "yaml": self._yaml,
            "pickle": self._pickle,
            "fsdp_report": self._reports,
            "history": self._histories,
            "config": self._config,
        }
        yield from make[kind](rank)

    def _yaml(self, rank: int) -> Iterator[Planned]:
        if has_snaps(self._attempt.files[rank]):
            name = f"rank_{rank}_memory_stats.yaml"
            yield Planned("yaml", name, lambda: as_yaml(self._stats(rank)))
        windows = self._windows.get(rank, [])
        if windows:
            name = f"rank_{rank}_fsdp_memory_stats.yaml"
            yield Planned("yaml", name, partial(self._modules_yaml, rank))

    def _pickle(self, rank: int) -> Iterator[Planned]:
        if has_snaps(self._attempt.files[rank]):
            name = f"rank_{rank}_memory_stats.pickle"
            yield Planned("pickle", name, lambda: as_pickle(self._stats(rank)))

    def _reports(self, rank: int) -> Iterator[Planned]:
        for key, window in self._windows.get(rank, []):
            function = self._names[FunctionKey(key.function, key.phase)]
            make = partial(self._report, window, function, key.iteration)
            named = partial(_report_name, rank, function, key.iteration)
            yield Planned("fsdp_report", named(""), make, named)

    def _histories(self, rank: int) -> Iterator[Planned]:
        file = self._attempt.files[rank]
        for entry in captures_of(file):
            if entry.kind == _HISTORY:
                key = FunctionKey(entry.function, entry.phase)
                named = partial(_history_name, rank, entry, self._names.get(key, ""))
                yield Planned(
                    "history", named(""), partial(_history, file, entry), named
                )

    def _config(self, rank: int) -> Iterator[Planned]:
        header = self._attempt.files[rank].header
        if header.config:
            yield Planned(
                "config", f"rank_{rank}_config.yaml", partial(_settings, header.config)
            )

    def _stats(self, rank: int) -> dict[str, dict[str, int | float]]:
        return stats_of(snaps_of(self._attempt.files[rank]), rank, self._names)

    def _window(self, window: RankWindow) -> WindowReport:
        try:
            opened = self._modules.open(window)
        except ModulesError as error:
            raise UnmadeError(error.what, window.path, error.remedy) from error
        return window_report(opened.memory, fsdp=opened.facts.backend == "fsdp2")

    def _report(self, window: RankWindow, function: str, iteration: int) -> bytes:
        report = self._window(window)
        return report_text(report, function, iteration, self._layout).encode()

    def _modules_yaml(self, rank: int) -> bytes:
        found: dict[str, Any] = {}
        for key, window in self._windows[rank]:
            function = self._names[FunctionKey(key.function, key.phase)]
            name = f"{rank}.{function}.{key.iteration}"
            found[name] = self._window(window).plain()
        return as_yaml(found)


def _report_name(rank: int, function: str, iteration: int, suffix: str) -> str:
    return f"fsdp_mem_rank_{rank}_{safe_name(function)}{suffix}_{iteration}.log"


def _history_name(rank: int, entry: CaptureEntry, function: str, suffix: str) -> str:
    if function:
        return pickle_name(
            rank, function + suffix, entry.iteration, context=entry.context
        )
    return pickle_name(  # by hand: the step tells captures of one name apart
        rank,
        "",
        entry.step or 0,
        phase=entry.phase,
        context=entry.context,
        label=(entry.label or "snapshot") + suffix,
    )


def _history(file: RankFile, entry: CaptureEntry) -> bytes:
    try:
        snapshot = rebuilt(read_capture(file, entry).tables)
    except (FormatError, OSError) as error:
        raise UnmadeError(
            f"a capture of the allocator cannot be read: {error}",
            file.shown_path,
            "all other captures are written; the disk may have been full",
        ) from error
    return pickle.dumps(snapshot, PICKLE_PROTOCOL)


def _settings(config: Mapping[str, Any]) -> bytes:
    from collector.config.table import as_yaml as settings_yaml

    heading = (
        "The settings that were in effect, as `memboard export --config` read them from"
        " the recording. collector.record(config=FILE) takes them back."
    )
    return settings_yaml(config, None, heading).encode()
