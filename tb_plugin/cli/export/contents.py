"""Files that an attempt of a recording can give, and their contents."""

from __future__ import annotations

import csv
import io
import itertools
import math
import pickle
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias, get_args

import yaml

from memboard.collector.cli.failure import Failure
from memboard.collector.config.table import as_yaml as settings_yaml
from memboard.collector.format.errors import FormatError
from memboard.collector.format.memory import HOOK_ATTRS
from memboard.collector.format.snapshots import rebuilt
from memboard.tb_plugin.analysis.series.functions import CONTEXTS, HOOK_PREFIX
from memboard.tb_plugin.cache import Cache
from memboard.tb_plugin.cli.export.module_report import TableFormat, report_of
from memboard.tb_plugin.cli.export.module_table import COLUMNS, WindowTable
from memboard.tb_plugin.cli.opening import no_deadline
from memboard.tb_plugin.formats.memprofiler.names import FunctionKey, SnapKey, names_of
from memboard.tb_plugin.formats.memprofiler.stats import their_name
from memboard.tb_plugin.formats.recording.captures.modules import (
    ModulesError,
    ModulesReader,
)
from memboard.tb_plugin.formats.recording.captures.reading import (
    captures_of,
    read_capture,
)
from memboard.tb_plugin.formats.recording.functions import every_snap, snapped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from memboard.collector.format.records import CaptureEntry
    from memboard.tb_plugin.analysis.series.functions import Context
    from memboard.tb_plugin.formats.recording.captures.modules import (
        RankWindow,
        WindowKey,
    )
    from memboard.tb_plugin.formats.recording.rank_file import RankFile
    from memboard.tb_plugin.index.run import AttemptFiles, Run

Kind: TypeAlias = Literal["yaml", "modules", "history", "config"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

_HISTORY: Final = "history"
_SETTINGS_HEADING: Final = (
    "The settings that were in effect, as `memboard export --config` read them from"
    " the recording. mb.record(config=FILE) takes them back."
)


class PlannedFile(NamedTuple):
    """A file that can be written."""

    kind: Kind
    name: str
    make: Callable[[], bytes]
    """Raises Failure where it cannot be made; the other files can."""


class Contents:
    """The files of one attempt."""

    def __init__(
        self,
        run: Run,
        attempt: AttemptFiles,
        *,
        depth: int | None = None,
        units: str | None = None,
    ) -> None:
        """`depth`, `units`: of tables; None: as each rank's settings say."""
        self._attempt = attempt
        self._depth, self._units = depth, units
        self._modules = ModulesReader(Cache())
        self._windows: dict[int, list[tuple[WindowKey, RankWindow]]] = {}
        for key, ranks in self._modules.windows(run, no_deadline()).items():
            if key.attempt == attempt.index:
                for rank, window in ranks.items():
                    self._windows.setdefault(rank, []).append((key, window))
        # Of all ranks, so that a call has the same name on each.
        self._names = names_of(self._functions())

    @property
    def ranks(self) -> tuple[int, ...]:
        return tuple(self._attempt.files)

    @property
    def start(self) -> str:
        """What tells the attempt's start from others, in names of files."""
        return next(iter(self._attempt.files.values())).attempt

    def files(self, kind: Kind, rank: int) -> Iterator[PlannedFile]:
        """A rank's files of one kind."""
        file = self._attempt.files[rank]
        begin = f"rank_{rank}_"
        if kind == "yaml" and any(snapped(file)):
            make = partial(self._stats_yaml, rank)
            yield PlannedFile(kind, f"{begin}memory_stats.yaml", make)
        if kind == "yaml" and rank in self._windows:
            make = partial(self._modules_yaml, rank)
            yield PlannedFile(kind, f"{begin}fsdp_memory_stats.yaml", make)
        if kind == "modules" and rank in self._windows:
            make = partial(self._modules_csv, rank)
            yield PlannedFile(kind, f"{begin}modules.csv", make)
            yield from self._reports(rank, file)
        if kind == "history":
            yield from self._histories(rank, file)
        if kind == "config" and file.header.config:
            make = partial(_settings, file)
            yield PlannedFile(kind, f"{begin}config.yaml", make)

    def _functions(self) -> Iterator[FunctionKey]:
        """Functions of which anything was collected."""
        for windows in self._windows.values():
            for key, _ in windows:
                yield FunctionKey(key.function, key.phase)
        for file in self._attempt.files.values():
            yield from snapped(file)
            for entry in captures_of(file):
                if entry.kind == _HISTORY and entry.function:
                    yield FunctionKey(entry.function, entry.phase)

    def _stats_yaml(self, rank: int) -> bytes:
        """Measurements by MemProfiler's keys, in order of time."""
        snaps: list[tuple[int, str, dict[str, int | float | None]]] = []
        for key, table in every_snap(self._attempt.files[rank]).items():
            columns = {stat: column.tolist() for stat, column in table.stats.items()}
            for row in range(len(table)):
                context = CONTEXTS[int(table.context[row])]
                iteration = int(table.iteration[row])
                values = _snap(
                    {s: column[row] for s, column in columns.items()}, context
                )
                text = SnapKey(rank, self._names[key], iteration, context).text
                snaps.append((int(table.time_ns[row]), text, values))
        snaps.sort(key=lambda snap: snap[0])
        return _yaml({key: values for _, key, values in snaps})

    def _modules_yaml(self, rank: int) -> bytes:
        tables = self._window_tables(rank)
        return _yaml(
            {
                f"{rank}.{window_name}.{i}": table.nested()
                for window_name, i, table in tables
            }
        )

    def _modules_csv(self, rank: int) -> bytes:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(("function", "iteration", *COLUMNS))
        for window_name, iteration, table in self._window_tables(rank):
            writer.writerows((window_name, iteration, *row) for row in table.rows)
        return text.getvalue().encode()

    def _reports(self, rank: int, file: RankFile) -> Iterator[PlannedFile]:
        """A table of each window, to read."""
        style = TableFormat.of(file.header.config, self._depth, self._units)
        taken: set[str] = set()
        for key, window in self._windows[rank]:
            function = self._name_of(key)
            file_name = _free_name(
                taken, partial(report_name, rank, function, key.iteration)
            )
            make = partial(self._report, key, window, style)
            yield PlannedFile("modules", file_name, make)

    def _report(self, key: WindowKey, window: RankWindow, style: TableFormat) -> bytes:
        table = self._table_of(window)
        return report_of(self._name_of(key), key.iteration, table, style).encode()

    def _window_tables(self, rank: int) -> Iterator[tuple[str, int, WindowTable]]:
        """Function, iteration and module memory of every window of a rank."""
        for key, window in self._windows[rank]:
            yield self._name_of(key), key.iteration, self._table_of(window)

    def _name_of(self, key: WindowKey) -> str:
        return self._names[FunctionKey(key.function, key.phase)]

    def _table_of(self, window: RankWindow) -> WindowTable:
        try:
            opened = self._modules.open(window)
        except ModulesError as error:
            raise Failure(error.what, where=window.path, remedy=error.remedy) from error
        return WindowTable(opened.memory, is_fsdp=opened.facts.backend == "fsdp2")

    def _histories(self, rank: int, file: RankFile) -> Iterator[PlannedFile]:
        taken: set[str] = set()
        for entry in captures_of(file):
            if entry.kind == _HISTORY:
                function = self._names.get(FunctionKey(entry.function, entry.phase), "")
                file_name = _free_name(
                    taken, partial(_history_name, rank, entry, function)
                )
                yield PlannedFile("history", file_name, partial(_history, file, entry))


def _free_name(taken: set[str], name_with: Callable[[str], str]) -> str:
    """The first of the names with "", "-2", "-3" ... in them that is not taken: it is now."""
    for number in itertools.count(1):
        file_name = name_with("" if number == 1 else f"-{number}")
        if file_name not in taken:
            break
    taken.add(file_name)
    return file_name


def _history_name(rank: int, entry: CaptureEntry, function: str, suffix: str) -> str:
    if function:
        iteration, context = entry.iteration, entry.context
        return pickle_name(rank, function, iteration, context=context, suffix=suffix)
    return pickle_name(  # by hand: the step tells captures of one name apart
        rank,
        "",
        entry.step or 0,
        phase=entry.phase,
        context=entry.context,
        label=entry.label or "snapshot",
        suffix=suffix,
    )


def _history(file: RankFile, entry: CaptureEntry) -> bytes:
    try:
        snapshot = rebuilt(read_capture(file, entry).tables)
    except (FormatError, OSError) as error:
        raise Failure(
            f"a capture of the allocator cannot be read: {error}",
            where=file.shown_path,
            remedy="all other captures are written; the disk may have been full",
        ) from error
    return pickle.dumps(snapshot, PROTOCOL)


def _settings(file: RankFile) -> bytes:
    return settings_yaml(file.header.config, None, _SETTINGS_HEADING).encode()


def _snap(
    values: Mapping[str, float], context: Context
) -> dict[str, int | float | None]:
    """One measurement under MemProfiler's names; `values` by ours, NaN: not recorded.

    Where hooks were read, all keys of theirs are there, as in MemProfiler's: at the start
    the built-in ones are 0, as nothing has run in the call yet, and what is not known is
    null.
    """
    snap: dict[str, int | float | None] = {}
    own = {their_name(stat) for stat in values if stat.startswith(HOOK_PREFIX)}
    if own:
        snap = dict.fromkeys(HOOK_ATTRS, 0 if context == "start" else None)
        snap.update((column, None) for column in sorted(own - snap.keys()))
    for stat, value in values.items():
        if not math.isnan(value):
            snap[their_name(stat)] = _exact(value)
    return snap


def _yaml(data: Any) -> bytes:
    """Plain data as YAML that `yaml.safe_load` takes, in the order given."""
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(
        data, Dumper=dumper, sort_keys=False, default_flow_style=False, width=1000
    )
    return text.encode()


def _exact(value: float) -> int | float:
    """Bytes and counts are whole numbers, as they were when they were measured."""
    return int(value) if float(value).is_integer() else value


PROTOCOL: Final = 4
"""Pickle protocol that memory_viz has always read; Python 3.14's own default is 5."""

_MAX_NAME: Final = 100


def pickle_name(
    rank: int,
    function: str,
    iteration: int,
    *,
    phase: str = "train",
    context: str = "",
    label: str = "",
    suffix: str = "",
) -> str:
    """The name that MemProfiler gives: `cuda_alloc_rank_R.FUNCTION.ITER.start|end.pickle`.

    Of another phase than train, whose calls count by themselves, the phase stands before
    the function. Of a snapshot by hand: `cuda_alloc_rank_R.LABEL.STEP.pickle`, where
    `iteration` is the training step.
    """
    name = label or function
    if phase != "train":
        name = f"{phase}.{name}"
    name = f"{_safe(name)}{suffix}"
    parts = (f"cuda_alloc_rank_{rank}", name, str(iteration), context, "pickle")
    return ".".join(filter(None, parts))


def report_name(rank: int, function: str, iteration: int, suffix: str = "") -> str:
    """The name that MemProfiler gives the report of a call, here also without FSDP."""
    return f"fsdp_mem_rank_{rank}_{_safe(function)}{suffix}_{iteration}.log"


def _safe(text: str) -> str:
    """A name without what a file's name must not hold; the user chose it."""
    kept = (c if c.isalnum() or c in "-_.+" else "_" for c in text)
    return "".join(kept).strip(".")[:_MAX_NAME] or "snapshot"
