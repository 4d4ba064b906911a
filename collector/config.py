"""The settings of a recording: what they are, where they come from, which one wins.

`RecordConfig` is the one list of settings. `load` merges the four places a setting can
stand in, key by key, the first that has it wins:

1. keywords: `collector.record("runs/a", flush_seconds=5)`
2. environment variables: `MEMBOARD_FLUSH_SECONDS=5`
3. the file, mapping or `RecordConfig` given as `config`, or several of them, a later one
   before an earlier one; where none is given, the files that `MEMBOARD_CONFIG` names,
   with the system's path separator between (`base.yaml:mine.yaml`)
4. the defaults below

A variable's name is the key in capitals after `MEMBOARD_`, with one underscore for the
dot: `cpu.interval_seconds` is `MEMBOARD_CPU_INTERVAL_SECONDS`. A variable that is set to
nothing counts as not set. The short forms of a section hold everywhere: `cpu: false` is
`cpu: {enabled: false}`, and `cpu: 5` is `cpu: {enabled: true, interval_seconds: 5}`.
What is off by default is on where any key of its section is given, in whatever place, and
`enabled` in none: `torch_profiler: {gzip: true}` has torch's profiler run.
Where a list is due, one text is a list of one, and a variable holds its entries with
commas between (`MEMBOARD_FUNCTIONS_DEFAULT=training_step,eval`; a lone comma is none).
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from collector.config_checks import Setting, check_fields, checked, hints_of
from collector.config_clock import ClockConfig
from collector.config_code import code_name
from collector.config_options import Options
from collector.config_remote import RemoteConfig, SegmentsConfig
from collector.config_rules import check_rules
from collector.config_sections import (
    ActivationsConfig,
    DumpsConfig,
    FlopsConfig,
    FunctionsConfig,
    HistoryConfig,
    HooksConfig,
    ModulesConfig,
    OomConfig,
    ScheduleConfig,
    SpansConfig,
)
from collector.config_torch_profiler import TorchProfilerConfig

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from collector.config_memprofiler import Imported

    Layer: TypeAlias = "str | Path | Mapping[str, Any] | RecordConfig"

ENV_PREFIX: Final = "MEMBOARD_"

MAX_RANK: Final = 9_999_999
"""What a file's name has room for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceConfig:
    """Switch and pace of one source that is sampled on a timer."""

    enabled: bool = True
    """Whether the source is sampled."""

    interval_seconds: float = field(
        default=1.0, metadata={"least": 0.05, "most": 86400}
    )
    """Seconds between two samples."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordConfig:
    """Every setting of `collector.record`."""

    enabled: bool = True
    """False: nothing is opened, patched, sampled or written; every call passes through."""

    rank: int | None = field(default=None, metadata={"least": 0, "most": MAX_RANK})
    """Global rank. None: from torch.distributed or the launcher's environment."""

    local_rank: int | None = field(
        default=None, metadata={"least": 0, "most": MAX_RANK}
    )
    """Rank within the host. None: from the launcher's environment."""

    world_size: int | None = field(default=None, metadata={"least": 1})
    """Number of ranks. None: from torch.distributed or the launcher's environment."""

    flush_seconds: float = field(default=2.0, metadata={"least": 0.05, "most": 3600})
    """How old a sample gets at most before it is on disk, and what a crash can lose."""

    queue_rows: int = field(default=8192, metadata={"least": 16, "most": 2**24})
    """Rows that may wait for a slow disk; what does not fit is dropped and counted."""

    max_file_bytes: int = field(default=4 * 2**30, metadata={"least": 0})
    """Disk budget of one rank's file; recording stops there with a warning. 0: none."""

    scalars: bool = True
    """Rank 0 writes headline scalars for TensorBoard's own Scalars and Time Series."""

    log_level: Literal["debug", "info", "warning", "error"] = "warning"
    """Least level of the messages that the `memboard` logger lets through."""

    device: str | int = field(
        default="auto", metadata={"least": 0, "words": ("auto", "off")}
    )
    """Accelerator to record: auto (the one this rank uses), off, or its index."""

    device_peaks: Literal["step", "run"] = "step"
    """step: torch's peak counters are reset at each step, so that a peak is the step's
    own; your own reading and resetting of them stays exact (two of torch's functions are
    wrapped while a recorder lives). run: nothing is reset or wrapped, and a peak is the
    highest since the start or since your own last reset."""

    rss: bool = True
    """Resident memory of the process at every step."""

    host_ranks: Literal["first", "all"] = "first"
    """Who records the host's own figures (cpu, memory, swap, disk, network): the first
    rank of each host, which speaks for all of them, or every rank."""

    device_free: SourceConfig = SourceConfig(interval_seconds=1.0)
    """Free, used and total memory of the whole device, whoever uses it."""

    pinned: SourceConfig = SourceConfig(interval_seconds=1.0)
    """Host memory that torch's pinned allocator holds (torch 2.8 and newer)."""

    gpu: SourceConfig = SourceConfig(interval_seconds=1.0)
    """GPU utilization, temperature, power and memory from NVML."""

    process: SourceConfig = SourceConfig(interval_seconds=1.0)
    """Resident, virtual and shared memory, threads, descriptors and CPU of the process."""

    process_full: SourceConfig = SourceConfig(interval_seconds=60.0)
    """Unique and proportional memory of the process: a walk of milliseconds."""

    workers: SourceConfig = SourceConfig(interval_seconds=2.0)
    """Number and resident memory of the DataLoader's worker processes, on Linux."""

    cpu: SourceConfig = SourceConfig(interval_seconds=1.0)
    """The host's processors: total, user, system, waiting for input and output."""

    memory: SourceConfig = SourceConfig(interval_seconds=1.0)
    """The host's memory, and the control group's limit and usage."""

    swap: SourceConfig = SourceConfig(interval_seconds=10.0)
    """The host's swap."""

    disk: SourceConfig = SourceConfig(interval_seconds=2.0)
    """Bytes and operations per second of the host's disks."""

    network: SourceConfig = SourceConfig(interval_seconds=2.0)
    """Bytes per second of the host's network, without the loopback interface."""

    functions: FunctionsConfig = field(default=FunctionsConfig())
    """Functions around which memory is collected (`collector.profiled`, `rec.span`)."""

    schedule: ScheduleConfig = field(default=ScheduleConfig())
    """Which of their calls are collected, and which steps by all that is costly."""

    spans: SpansConfig = field(default=SpansConfig())
    """Named stretches of time, kept one by one."""

    flops: FlopsConfig = field(default=FlopsConfig())
    """Floating point operations that training needs, to say how busy the device is."""

    hooks: HooksConfig = field(default=HooksConfig())
    """Resident memory and your own figures around every module's forward and backward,
    in collected calls."""

    activations: ActivationsConfig = field(default=ActivationsConfig())
    """Bytes that autograd saves for backward, by module and dtype, in collected calls."""

    modules: ModulesConfig = field(default=ModulesConfig())
    """Memory by module and category through collected calls: FSDP, DDP and plain."""

    history: HistoryConfig = field(default=HistoryConfig())
    """The allocator's segments, blocks and events, at the start and end of collected
    calls and where `rec.snapshot` asks."""

    oom: OomConfig = field(default=OomConfig())
    """Reports of out-of-memory errors and of exceptions that nobody caught."""

    torch_profiler: TorchProfilerConfig = field(default=TorchProfilerConfig())
    """Traces of torch's own profiler, in the steps that the schedule picks."""

    clock: ClockConfig = field(default=ClockConfig())
    """How far each rank's clock is from rank 0's, so that ranks are shown on one clock."""

    merge_on_close: bool = False
    """When the recording closes, rank 0 starts a process that waits for the other ranks'
    files, a minute at most, and writes `merged_trace.json.gz` into the run's directory,
    and to the mirror. The close itself waits for none of that."""

    dumps: DumpsConfig = field(default=DumpsConfig())
    """Files for other tools, written when the recording closes."""

    segments: SegmentsConfig = field(default=SegmentsConfig())
    """The rank's file as numbered segments, for stores that cannot append."""

    remote: RemoteConfig = field(default=RemoteConfig())
    """A mirror of the recording and its files at another place (`s3://...`)."""

    def __post_init__(self) -> None:
        check_fields(self)
        check_rules(self.leaf, lambda _path: "RecordConfig()")

    def leaf(self, path: str) -> Any:
        """The value of a setting by its path: `cpu.interval_seconds`."""
        name, _, leaf = path.partition(".")
        value = getattr(self, name)
        return getattr(value, leaf) if leaf else value

    def to_plain(self) -> dict[str, Any]:
        """The settings as JSON holds them; `load` accepts it back.

        Callables become their dotted names; one that has none that can be imported (a
        lambda) is what stays behind. So do `remote.storage_options`: they may be secret.
        """
        plain: dict[str, Any] = {}
        for path in settings():
            name, _, leaf = path.partition(".")
            held = plain.setdefault(name, {}) if leaf else plain
            held[leaf or name] = _plain(self.leaf(path))
        return plain


def _plain(value: Any) -> Any:
    if isinstance(value, Options):
        return {}
    if isinstance(value, tuple):
        return [_plain(entry) for entry in value]
    return code_name(value) if callable(value) else value


def load(
    config: Layer | Sequence[Layer] | None = None,
    **keywords: Any,
) -> RecordConfig:
    """Merge keywords, environment variables, `config` and defaults, in that order.

    Args:
        config: a YAML file, a mapping, or settings made before; or several of them, of
            which a later one wins. None: the files that `MEMBOARD_CONFIG` names, or
            nothing.
        **keywords: any field of `RecordConfig`; a section's takes its dataclass, a
            mapping, or its short form.

    Raises:
        ConfigError: a key is unknown, or a value ill-typed or out of range; says which,
            where and what to do.
    """
    return load_with_imports(config, **keywords)[0]


def load_with_imports(
    config: Layer | Sequence[Layer] | None = None, **keywords: Any
) -> tuple[RecordConfig, list[Imported]]:
    """As `load`; also what became of the layers that hold MemProfiler's settings."""
    from collector.config_layers import merged
    from collector.config_switches import check_needs

    layers = merged(config, keywords)
    effective = {path: setting.default for path, setting in settings().items()}
    for path, (value, place) in layers.leaves.items():
        effective[path] = checked(settings()[path], value, place)
    check_needs(layers.said)
    check_rules(effective.__getitem__, layers.place)
    return RecordConfig(**_nested(effective)), layers.imported


def _nested(effective: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of `RecordConfig` from its leaves."""
    values: dict[str, Any] = {}
    leaves: dict[str, dict[str, Any]] = {}
    for path, value in effective.items():
        name, _, leaf = path.partition(".")
        if leaf:
            leaves.setdefault(name, {})[leaf] = value
        else:
            values[name] = value
    sectioned = {n: type(sections()[n])(**held) for n, held in leaves.items()}
    return {**values, **sectioned}


@cache
def settings() -> Mapping[str, Setting]:
    """Every leaf by its path, in the order of the dataclass."""
    leaves = {}
    for item in fields(RecordConfig):
        if item.name not in sections():
            hint = hints_of(RecordConfig)[item.name]
            leaves[item.name] = Setting(item.name, hint, item.default, item.metadata)
            continue
        section = sections()[item.name]
        owner: type = type(section)
        for leaf in fields(owner):
            path = f"{item.name}.{leaf.name}"
            hint = hints_of(owner)[leaf.name]
            default = getattr(section, leaf.name)
            leaves[path] = Setting(path, hint, default, leaf.metadata)
    return leaves


@cache
def sections() -> Mapping[str, Any]:
    """The keys that hold further keys: each with the dataclass of its defaults."""
    return {
        item.name: item.default
        for item in fields(RecordConfig)
        if is_dataclass(item.default)
    }


def variable(path: str) -> str:
    """The environment variable of a setting or of a source's short form."""
    return ENV_PREFIX + path.replace(".", "_").upper()


if __name__ == "__main__":
    from collector.config_table import main

    sys.exit(main())
