"""The settings as mappings, for type checkers: a wrong key or value is refused.

Written by `python -m memboard.collector.config.table --options`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from memboard.collector.config.sections import (
        ActivationsConfig,
        FlopsConfig,
        FunctionsConfig,
        HistoryConfig,
        HooksConfig,
        ModulesConfig,
        OomConfig,
        RemoteConfig,
        ScheduleConfig,
        SpansConfig,
        TorchProfilerConfig,
    )
    from memboard.collector.config.values import Code


class FunctionsOptions(TypedDict, total=False):
    enabled: bool
    default: str | Sequence[str]
    device: str | Sequence[str]
    host: str | Sequence[str]
    history: str | Sequence[str]
    modules: str | Sequence[str]


class ScheduleOptions(TypedDict, total=False):
    skip_first: int
    wait: int
    warmup: int
    active: int
    repeat: int
    per_epoch: bool
    unit: Literal["call", "step", "sample", "token", "epoch"]
    resume: int
    choose: Code | None


class SpansOptions(TypedDict, total=False):
    enabled: bool
    automatic: bool
    states: (
        Literal["skip", "warmup", "active", "active_and_save"]
        | Sequence[Literal["skip", "warmup", "active", "active_and_save"]]
    )


class FlopsOptions(TypedDict, total=False):
    per_step: float | None
    per_sample: float | None
    per_token: float | None
    device_peak: float | None


class HooksOptions(TypedDict, total=False):
    enabled: bool
    pre_forward: Code | Sequence[Code]
    post_forward: Code | Sequence[Code]
    reset: Code | Sequence[Code]
    save_attrs: str | Sequence[str]


class ActivationsOptions(TypedDict, total=False):
    enabled: bool
    functions: Code | Sequence[Code]


class ModulesOptions(TypedDict, total=False):
    enabled: bool
    root: str | os.PathLike[str]
    table_depth: int
    table_units: Literal["B", "KiB", "MiB", "GiB"]


class HistoryOptions(TypedDict, total=False):
    enabled: bool
    max_entries: int
    stacks: Literal["python", "all"]


class OomOptions(TypedDict, total=False):
    enabled: bool
    history: bool
    on_sigterm: bool


class TorchProfilerOptions(TypedDict, total=False):
    enabled: bool
    activities: (
        Literal["cpu", "cuda", "xpu", "mtia", "hpu", "privateuse1"]
        | Sequence[Literal["cpu", "cuda", "xpu", "mtia", "hpu", "privateuse1"]]
    )
    record_shapes: bool
    profile_memory: bool
    with_stack: bool
    with_flops: bool
    folder: str | os.PathLike[str]
    filename: str | os.PathLike[str]
    num_traces_to_keep: int
    post_process: Code | None
    stacks_filename: str | os.PathLike[str]
    stacks_metric: Literal["self_cpu", "self_device"]
    memory_filename: str | os.PathLike[str]


class RemoteOptions(TypedDict, total=False):
    url: str | os.PathLike[str]
    files: str | os.PathLike[str] | None
    traces: str | os.PathLike[str] | None
    stacks: str | os.PathLike[str] | None
    memory: str | os.PathLike[str] | None
    prune: bool
    close_seconds: float
    storage_options: Mapping[str, Any]


class RecordOptions(TypedDict, total=False):
    enabled: bool
    rank: int | None
    local_rank: int | None
    world_size: int | None
    flush_seconds: float
    max_file_bytes: int
    scalars: Literal["composer"] | bool
    device: Literal["auto", "off"] | int
    device_peaks: Literal["step", "run"]
    gpu: float | bool
    process: float | bool
    host: float | bool
    functions: FunctionsConfig | FunctionsOptions | bool | None
    schedule: ScheduleConfig | ScheduleOptions | None
    spans: SpansConfig | SpansOptions | bool | None
    flops: FlopsConfig | FlopsOptions | None
    hooks: HooksConfig | HooksOptions | bool | None
    activations: ActivationsConfig | ActivationsOptions | bool | None
    modules: ModulesConfig | ModulesOptions | bool | None
    history: HistoryConfig | HistoryOptions | bool | None
    oom: OomConfig | OomOptions | bool | None
    torch_profiler: TorchProfilerConfig | TorchProfilerOptions | bool | None
    clock: Literal["auto", "distributed", "off"]
    merge_on_close: bool
    dumps: (
        Literal["yaml", "modules", "history"]
        | Sequence[Literal["yaml", "modules", "history"]]
    )
    dumps_dir: str | os.PathLike[str]
    segments: bool
    remote: RemoteConfig | RemoteOptions | str | Literal[False] | None
