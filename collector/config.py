"""The settings of a recording: what they are, where they come from, which one wins.

`RecordConfig` is the one list of settings. `load` merges the four places a setting can
stand in, key by key, the first that has it wins:

1. keywords: `collector.record("runs/a", flush_seconds=5)`
2. environment variables: `MEMBOARD_FLUSH_SECONDS=5`
3. the file, mapping or `RecordConfig` given as `config`; where none is given, the file
   that `MEMBOARD_CONFIG` names
4. the defaults below

A variable's name is the key in capitals after `MEMBOARD_`, with one underscore for the
dot: `cpu.interval_seconds` is `MEMBOARD_CPU_INTERVAL_SECONDS`. A variable that is set to
nothing counts as not set. The short forms of a source hold everywhere: `cpu: false` is
`cpu: {enabled: false}`, and `cpu: 5` is `cpu: {enabled: true, interval_seconds: 5}`.
"""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal, get_type_hints

from collector.config_checks import Setting, check_fields, checked

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

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
    """GPU utilisation, temperature, power and memory from NVML."""

    process: SourceConfig = SourceConfig(interval_seconds=1.0)
    """Resident, virtual and shared memory, threads, descriptors and CPU of the process."""

    process_full: SourceConfig = SourceConfig(interval_seconds=60.0)
    """Unique and proportional memory of the process: a walk of milliseconds."""

    workers: SourceConfig = SourceConfig(interval_seconds=2.0)
    """Number and resident memory of the dataloader workers (live child processes)."""

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

    def __post_init__(self) -> None:
        check_fields(self)

    def to_plain(self) -> dict[str, Any]:
        """The settings as plain data; `load` accepts it back."""
        return asdict(self)


def load(
    config: str | Path | Mapping[str, Any] | RecordConfig | None = None,
    **keywords: Any,
) -> RecordConfig:
    """Merge keywords, environment variables, `config` and defaults, in that order.

    Args:
        config: a YAML file, a mapping, or settings made before. None: the file that
            `MEMBOARD_CONFIG` names, or nothing.
        **keywords: any field of `RecordConfig`; a source's takes a `SourceConfig`, a
            mapping, a switch or an interval.

    Raises:
        ConfigError: a key is unknown, or a value ill-typed or out of range; says which,
            where and what to do.
    """
    from collector.config_layers import merged

    values: dict[str, Any] = {}
    for path, (value, place) in merged(config, keywords).items():
        right = checked(settings()[path], value, place)
        name, _, leaf = path.partition(".")
        if leaf:
            values.setdefault(name, {})[leaf] = right
        else:
            values[name] = right
    for name, value in values.items():
        if isinstance(value, dict):
            pace = settings()[f"{name}.interval_seconds"].default
            values[name] = SourceConfig(**{"interval_seconds": pace, **value})
    return RecordConfig(**values)


@cache
def settings() -> Mapping[str, Setting]:
    """Every leaf by its path, in the order of the dataclass."""
    leaves = {}
    for item in fields(RecordConfig):
        if isinstance(item.default, SourceConfig):
            nested = [(f"{item.name}.", leaf) for leaf in fields(SourceConfig)]
        else:
            nested = [("", item)]
        for above, leaf in nested:
            owner = SourceConfig if above else RecordConfig
            default = getattr(item.default, leaf.name) if above else leaf.default
            hint = get_type_hints(owner)[leaf.name]
            path = f"{above}{leaf.name}"
            leaves[path] = Setting(path, hint, default, leaf.metadata)
    return leaves


@cache
def sections() -> tuple[str, ...]:
    """The names of the timed sources: the keys that hold a `SourceConfig`."""
    held = (i.name for i in fields(RecordConfig) if isinstance(i.default, SourceConfig))
    return tuple(held)


def variable(path: str) -> str:
    """The environment variable of a setting or of a source's short form."""
    return ENV_PREFIX + path.replace(".", "_").upper()


if __name__ == "__main__":
    from collector.config_table import main

    sys.exit(main())
