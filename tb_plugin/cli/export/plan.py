"""Which files a recording can give, and how each of them is made."""

from __future__ import annotations

import csv
import io
import math
import pickle
from functools import partial
from typing import TYPE_CHECKING, Any

from collector.format.errors import FormatError
from collector.format.snapshots import rebuilt
from collector.history.pickles import pickle_name
from tb_plugin.budget import Budget
from tb_plugin.cache import Cache
from tb_plugin.cli.export.files import Planned, UnmadeError
from tb_plugin.cli.export.snaps import has_snaps, snaps_of
from tb_plugin.cli.export.stats import as_yaml, stats_of
from tb_plugin.cli.export.tables import COLUMNS, module_rows, window_report
from tb_plugin.formats.memprofiler.names import FunctionKey, names_of
from tb_plugin.formats.recording.captures import captures_of, read_capture
from tb_plugin.formats.recording.functions import TABLE_PREFIX
from tb_plugin.formats.recording.modules import ModulesError, ModulesReader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from collector.format.records import CaptureEntry
    from tb_plugin.cli.export.tables import WindowReport
    from tb_plugin.formats.recording.modules import RankWindow, WindowKey
    from tb_plugin.formats.recording.rank_file import RankFile
    from tb_plugin.index.run import AttemptFiles, Run

_CACHE_BYTES = 64 << 20
_HISTORY = "history"
_PICKLE_PROTOCOL = 4
"""The newest that every supported Python reads and that viewers know."""


class Plan:
    """The files of one attempt."""

    def __init__(self, run: Run, attempt: AttemptFiles) -> None:
        self._attempt = attempt
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
            "modules": self._modules_csv,
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

    def _modules_csv(self, rank: int) -> Iterator[Planned]:
        if self._windows.get(rank):
            name = f"rank_{rank}_modules.csv"
            yield Planned("modules", name, partial(self._modules_table, rank))

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

    def _reports(self, rank: int) -> Iterator[tuple[str, int, WindowReport]]:
        """Function, iteration and module memory of every window of a rank."""
        for key, window in self._windows[rank]:
            function = self._names[FunctionKey(key.function, key.phase)]
            yield function, key.iteration, self._window(window)

    def _modules_yaml(self, rank: int) -> bytes:
        return as_yaml(
            {
                f"{rank}.{function}.{iteration}": report.plain()
                for function, iteration, report in self._reports(rank)
            }
        )

    def _modules_table(self, rank: int) -> bytes:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(COLUMNS)
        for function, iteration, report in self._reports(rank):
            writer.writerows(module_rows(report, function, iteration))
        return text.getvalue().encode()


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
    return pickle.dumps(snapshot, _PICKLE_PROTOCOL)


def _settings(config: Mapping[str, Any]) -> bytes:
    from collector.config.table import as_yaml as settings_yaml

    heading = (
        "The settings that were in effect, as `memboard export --config` read them from"
        " the recording. collector.record(config=FILE) takes them back."
    )
    return settings_yaml(config, None, heading).encode()
