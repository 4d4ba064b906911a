"""The settings of what is collected around functions: one dataclass per section.

Lists may be given as one text in a file or variable (`modules: step` is `[step]`).
Where code is named, a dotted name is imported (`package.module.function`), and keywords
may hold the callable itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from collector.config_checks import check_fields

Names: TypeAlias = tuple[str, ...]

Code: TypeAlias = str | Callable[..., Any]
"""A dotted name or the callable itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionsConfig:
    """Which profiled functions each kind collects.

    A name is that of the decorated function or of the span; `*` stands for all of them,
    `step` for everything between two calls of `rec.step()`.
    """

    enabled: bool = True
    """False: decorated functions and memory spans run straight through."""

    default: Names = ("*",)
    """Functions whose device and host memory is snapped, and whose hooks are read."""

    device: Names = ()
    """More functions for device statistics alone."""

    host: Names = ()
    """More functions for rss and vms alone."""

    history: Names = ("step",)
    """Functions at whose start and end the allocator is captured, where `history` is on."""

    modules: Names = ("step",)
    """Functions through which module memory is tracked, where `modules` is on."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleConfig:
    """Which calls of a function are collected; each function and phase counts its own.

    Without `active`: those after `warmup_iters` up to `max_iter`. With it: cycles of
    wait, warmup and active calls.
    """

    warmup_iters: int = field(default=1, metadata={"least": 0})
    """Calls that pass before the first collected one."""

    max_iter: int | None = field(default=None, metadata={"least": 0})
    """Number of the last collected call. None: one more than `warmup_iters`; 0: no end."""

    skip_first: int = field(default=0, metadata={"least": 0})
    """With `active`: calls before the first cycle, once per recording."""

    wait: int = field(default=0, metadata={"least": 0})
    """With `active`: calls of a cycle that pass by."""

    warmup: int = field(default=1, metadata={"least": 0})
    """With `active`: calls of a cycle that warm up after those."""

    active: int | None = field(default=None, metadata={"least": 1})
    """Collected calls of a cycle. None: no cycles."""

    repeat: int = field(default=1, metadata={"least": 0})
    """Number of cycles; 0: no end."""

    unit: Literal["call", "step", "sample", "token", "epoch"] = "call"
    """What is counted: the function's calls, or how far training is."""

    resume: int = field(default=0, metadata={"least": 0})
    """Where counting starts, for a training that was resumed: added to `skip_first`, or
    to `warmup_iters` and `max_iter`."""

    choose: Code | None = None
    """Your own: a callable that is given the number of the call, from 0, and returns
    whether to collect it (or a `collector.schedule.Action`). It replaces all above."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class HooksConfig:
    """Your functions around the forward and backward of every module."""

    enabled: bool = True
    """False: no hook is installed."""

    pre_forward: tuple[Code, ...] = ()
    """Called as `hook(module, inputs)`; what it returns is ignored."""

    post_forward: tuple[Code, ...] = ()
    """Called as `hook(module, inputs, outputs)`."""

    pre_backward: tuple[Code, ...] = ()
    """Called as `hook(module, grad_outputs)`."""

    post_backward: tuple[Code, ...] = ()
    """Called as `hook(module, grad_inputs, grad_outputs)`."""

    reset: tuple[Code, ...] = ()
    """Called as `hook(module)` after each collected call, to start from zero."""

    rss: bool = True
    """Resident memory before and after each module's forward, and the difference."""

    save_attrs: Names = ()
    """Attributes that your hooks set on modules, to be kept as numbers."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivationsConfig:
    """Bytes that autograd saves for backward, by step, module and dtype."""

    enabled: bool = True
    """Whether saved tensors are counted in collected calls."""

    functions: tuple[Code, ...] = ()
    """Your own pack and unpack functions (two), called around our counting."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModulesConfig:
    """Memory by module and category through a whole step, FSDP or not."""

    enabled: bool = False
    """Whether modules are tracked in collected calls: a few times a bare step's cost."""

    root: str = ""
    """Path of the module to track, below the attached model; empty: the model."""

    compiled: Literal["estimate", "refuse"] = "estimate"
    """Of a compiled model: track it eagerly and say so, or do not track it."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryConfig:
    """Captures of the allocator: segments, blocks and what happened to them."""

    enabled: bool = False
    """Whether torch keeps the history, and captures are taken."""

    max_entries: int = field(default=100_000, metadata={"least": 1, "most": 2**31 - 1})
    """Events that torch keeps; older ones are forgotten."""

    stacks: Literal["python", "all"] = "python"
    """Stacks of Python alone, or of C++ too: a capture then takes a hundred times longer."""

    keep_pickle: bool = False
    """Also leave each capture as torch's own pickle, for other viewers."""

    metadata: bool = True
    """Tag events with step and phase, where torch can (2.10 and newer)."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpsConfig:
    """Files for other tools, written when the recording closes; see `memboard export`."""

    yaml: bool = False
    """`rank_R_memory_stats.yaml` and `rank_R_fsdp_memory_stats.yaml`."""

    pickle: bool = False
    """`rank_R_memory_stats.pickle`."""

    fsdp_report: bool = False
    """`fsdp_mem_rank_R_FUNCTION_ITER.log`."""

    history: bool = False
    """`cuda_alloc_rank_R.FUNCTION.ITER.start|end.pickle`."""

    depth: int = field(default=2, metadata={"least": 1, "most": 1000})
    """Of the FSDP report: how deep modules are listed."""

    units: Literal["B", "KiB", "MiB", "GiB"] = "MiB"
    """Of the FSDP report: the unit of its bytes."""

    tabulate: bool = False
    """Of the FSDP report: tables instead of lines."""

    dir: str = ""
    """Where the files go; empty: `memprofiler` in the run's directory."""

    def __post_init__(self) -> None:
        check_fields(self)
