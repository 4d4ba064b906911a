"""Every setting: the struct of them all, and the same as a flat table by path.

`RecordConfig` holds the sections. `options` has the same fields as mappings for type
checkers, with all that each takes.
"""

from __future__ import annotations

import ast
import inspect
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from memboard.collector.config.rules import check_rules
from memboard.collector.config.sections import (
    ActivationsConfig,
    ClockMethod,
    Dump,
    FlopsConfig,
    FunctionsConfig,
    HistoryConfig,
    HooksConfig,
    ModulesConfig,
    OomConfig,
    Pace,
    RemoteConfig,
    ScheduleConfig,
    Section,
    SpansConfig,
    TorchProfilerConfig,
    fields_of,
)
from memboard.collector.config.values import Options, Setting, code_name, resolve

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_RANK: Final = 9_999_999
"""Largest rank that fits a file's name."""


class RecordConfig(Section, frozen=True, kw_only=True):
    """Settings of `mb.record`, each with the default that holds where nobody sets it."""

    enabled: bool = True
    """False: nothing is opened, patched, sampled or written; every call passes through."""

    rank: Annotated[int, Meta(ge=0, le=MAX_RANK)] | None = None
    """Global rank. None: from torch.distributed or the launcher's environment."""

    local_rank: Annotated[int, Meta(ge=0, le=MAX_RANK)] | None = None
    """Rank within the host. None: from the launcher's environment."""

    world_size: Annotated[int, Meta(ge=1)] | None = None
    """Number of ranks. None: from torch.distributed or the launcher's environment."""

    flush_seconds: Annotated[float, Meta(ge=0.05, le=3600)] = 2.0
    """The longest until a sample is on disk, and the most that a crash can lose."""

    max_file_bytes: Annotated[int, Meta(ge=0)] = 4 * 2**30
    """Limit of one rank's file; recording stops there with a warning. 0: no limit."""

    scalars: bool | Literal["composer"] = True
    """Rank 0 writes headline scalars for TensorBoard's own Scalars and Time Series.
    composer: beside them the nine of Composer's MemoryMonitor, under its names and in its
    units (`memory/peak_allocated_mem` and so on)."""

    device: Literal["auto", "off"] | Annotated[int, Meta(ge=0)] = "auto"
    """Accelerator to record: auto (the one this rank uses), off, or its index."""

    device_peaks: Literal["step", "run"] = "step"
    """step: torch's peak counters are reset at each step, so that a peak is the step's
    own; your own reading and resetting of them stays exact (two of torch's functions are
    wrapped while a recorder lives). run: nothing is reset or wrapped, and a peak is the
    highest since the start or since your own last reset."""

    gpu: Pace = 1.0
    """Load, temperature, power and memory of the GPU from NVML; free memory of the whole
    device, whoever uses it; host memory that torch has pinned (torch 2.8 and newer)."""

    process: Pace = 1.0
    """Resident, virtual and shared memory, threads, descriptors and CPU of the process; the
    DataLoader's workers on Linux, half as often; unique and proportional memory, a walk of
    milliseconds, at one sample in 60. At every step the counts of Python's garbage
    collector."""

    host: Pace = 1.0
    """The host's processors and memory, and the control group's limit; disks and network
    half as often, swap at one sample in 10. The first rank of each host samples it."""

    functions: FunctionsConfig = FunctionsConfig()
    """Functions around which memory is collected (`mb.profiled`, `rec.span`)."""

    schedule: ScheduleConfig = ScheduleConfig()
    """Which of their calls are collected, and which steps by all that is costly."""

    spans: SpansConfig = SpansConfig()
    """Named intervals of time, recorded one by one."""

    flops: FlopsConfig = FlopsConfig()
    """Floating point operations of the training, for its model flops utilization."""

    hooks: HooksConfig = HooksConfig()
    """Resident memory and your own figures around every module's forward and backward,
    in collected calls."""

    activations: ActivationsConfig = ActivationsConfig()
    """Bytes that autograd saves for backward, by module and dtype, in collected calls."""

    modules: ModulesConfig = ModulesConfig()
    """Memory by module and category through collected calls: FSDP, DDP and plain."""

    history: HistoryConfig = HistoryConfig()
    """The allocator's segments, blocks and events, at the start and end of collected
    calls and where `rec.snapshot` asks."""

    oom: OomConfig = OomConfig()
    """Reports of out-of-memory errors and of exceptions that nobody caught."""

    torch_profiler: TorchProfilerConfig = TorchProfilerConfig()
    """Traces of torch's own profiler, in the steps that the schedule picks."""

    clock: ClockMethod = "auto"
    """How each rank's clock is compared with rank 0's. auto: ranks of one host share a clock; of
    others the wall clocks are taken, with the bound that the system knows. distributed:
    round trips with rank 0 in a gloo group of its own, at the start and end of each cycle of
    the schedule, which every rank must then reach. off: clocks are not compared."""

    merge_on_close: bool = False
    """When the recording closes, rank 0 starts a process that waits for the other ranks'
    files, a minute at most, and writes `merged_trace.json.gz` into the run's directory,
    and to the mirror. The close itself waits for none of that."""

    dumps: tuple[Dump, ...] = ()
    """Files for other tools, written when the recording closes; see `memboard export`. yaml:
    `rank_R_memory_stats.yaml` and `rank_R_fsdp_memory_stats.yaml`. modules:
    `rank_R_modules.csv`, module memory by window, module, state, call and device, and a table
    of each window to read, `fsdp_mem_rank_R_FUNCTION_ITER.log`. history:
    `cuda_alloc_rank_R.FUNCTION.ITER.start|end.pickle`."""

    dumps_dir: str = ""
    """Where `dumps` go; empty: `memprofiler` in the run's directory."""

    segments: bool = False
    """The rank's file as numbered segments, of which all but the newest never change: for
    stores that cannot append. With `remote` it is always so."""

    remote: RemoteConfig = RemoteConfig()
    """A mirror of the recording and its files at another place (`s3://...`)."""

    def __post_init__(self) -> None:
        super().__post_init__()
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
            section = plain.setdefault(name, {}) if leaf else plain
            section[leaf or name] = _plain(self.leaf(path))
        return plain


def _plain(value: Any) -> Any:
    if isinstance(value, Options):
        return {}
    if isinstance(value, tuple):
        return [_plain(entry) for entry in value]
    return code_name(value) if callable(value) else value


@cache
def settings() -> Mapping[str, Setting]:
    """Every leaf by its path, in the order of `RecordConfig`."""
    leaves = {}
    for name, hint in fields_of(RecordConfig).items():
        if isinstance(hint, Setting):
            leaves[name] = hint
            continue
        for item in msgspec.structs.fields(hint):
            path, default = f"{name}.{item.name}", getattr(sections()[name], item.name)
            leaves[path] = Setting(path, item.type, default)
    return leaves


@cache
def sections() -> Mapping[str, Section]:
    """The keys that hold further keys: each with its defaults."""
    plain = RecordConfig()
    value_by_name = {name: getattr(plain, name) for name in fields_of(RecordConfig)}
    return {
        name: value
        for name, value in value_by_name.items()
        if isinstance(value, Section)
    }


@cache
def meanings(owner: type) -> dict[str, str]:
    """The docstring under each field of a section, as one line."""
    (definition,) = ast.parse(inspect.getsource(owner)).body
    body = definition.body if isinstance(definition, ast.ClassDef) else []
    return {
        item.target.id: " ".join(str(after.value.value).split())
        for item, after in pairwise(body)
        if isinstance(item, ast.AnnAssign)
        and isinstance(item.target, ast.Name)
        and isinstance(after, ast.Expr)
        and isinstance(after.value, ast.Constant)
    }


def check_code(config: RecordConfig) -> None:
    """Import the code that sections name which are switched on.

    Raises:
        ConfigError: as `values.resolve`.
    """
    for path, setting in settings().items():
        section = path.partition(".")[0]
        if setting.takes_code and getattr(getattr(config, section), "enabled", True):
            value = config.leaf(path)
            for code in value if setting.many else (value,):
                if code is not None:
                    resolve(code, path)
