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

SpanState: TypeAlias = Literal["skip", "warmup", "active", "active_and_save"]
"""What the schedule says of a step."""


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
    """Which steps and calls are collected; each function and phase counts its own calls.

    Without `active`: those after `warmup_iters` up to `max_iter`. With it: cycles of
    wait, warmup and active calls.
    """

    warmup_iters: int = field(default=1, metadata={"least": 0})
    """Calls that pass before the first collected one."""

    max_iter: int | None = field(default=None, metadata={"least": 0})
    """Number of the last collected call. None: one more than `warmup_iters`; 0: no end."""

    skip_first: int = field(default=0, metadata={"least": 0})
    """With `active`: calls before the first cycle, once per recording or epoch."""

    wait: int = field(default=0, metadata={"least": 0})
    """With `active`: calls of a cycle that pass by."""

    warmup: int = field(default=1, metadata={"least": 0})
    """With `active`: calls of a cycle that warm up after those."""

    active: int | None = field(default=None, metadata={"least": 1})
    """Collected calls of a cycle. None: no cycles."""

    repeat: int = field(default=1, metadata={"least": 0})
    """Number of cycles, each wait, warmup and active: 1 is one window; 0: no end."""

    per_epoch: bool = False
    """Whether counting begins anew with each epoch (`rec.epoch`): every epoch then has its
    own `skip_first` and its own cycles. Of no effect where epochs are counted."""

    unit: Literal["call", "step", "sample", "token", "epoch"] = "call"
    """What is counted: the function's calls, or how far training is."""

    resume: int = field(default=0, metadata={"least": 0})
    """Where counting starts, for a training that was resumed: added to `skip_first`, or
    to `warmup_iters` and `max_iter`. With `per_epoch`: in the
    first epoch of this start alone."""

    choose: Code | None = None
    """Your own: a callable that is given the number of the call, from 0, and returns
    whether to collect it (or a `collector.Action`). It replaces the counts above."""

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
class OomConfig:
    """Reports of out-of-memory errors and other ends, with the allocator as it was."""

    enabled: bool = True
    """Whether an out-of-memory error leaves a report, and a snapshot of the allocator."""

    history: bool = True
    """Have torch record the Python stack of every allocation from the start, without
    which nobody can say who held the memory: 2 us per allocation, and up to some hundred
    MB of host memory. A recording of your own is never changed."""

    history_pct: float = field(default=5.0, metadata={"least": 0, "most": 100})
    """Where allocations come so often that their stacks would take more of a processor
    than this, events are recorded without them, and a note says so."""

    max_entries: int = field(default=100_000, metadata={"least": 1, "most": 2**31 - 1})
    """Events that torch keeps; older ones are forgotten."""

    per_hour: int = field(default=3, metadata={"least": 0, "most": 1000})
    """Reports in an hour; errors beyond that, which the program caught, are counted. One
    that ends the program is always reported."""

    snapshot_seconds: float = field(default=5.0, metadata={"least": 0, "most": 3600})
    """What would hold the error up for longer is left out of the snapshot: its events."""

    exceptions: bool = True
    """Also report other exceptions that nobody caught."""

    on_sigterm: bool = False
    """Also report when SIGTERM comes; the handler that was there runs afterwards."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpansConfig:
    """Spans, instants and counters, kept one by one; and those that come by themselves."""

    enabled: bool = True
    """False: spans are summed up per name alone, and none comes by itself."""

    automatic: bool = True
    """Time the parts of each step: dataloader, forward, backward, optimizer, zero_grad,
    checkpoint, evaluation, communication. Functions of torch are wrapped meanwhile."""

    states: tuple[SpanState, ...] = ("warmup", "active", "active_and_save")
    """In which steps of the schedule they are kept one by one, unless a span says so
    itself: skip, warmup, active and active_and_save, a cycle's last one."""

    per_second: int = field(default=10_000, metadata={"least": 1, "most": 10**6})
    """What comes faster than this for longer than a moment is dropped and counted."""

    max_bytes: int = field(default=2**30, metadata={"least": 0, "most": 2**50})
    """Disk that one rank's spans may take, about; from there on they are summed up per
    name alone. 0: no bound but `max_file_bytes`."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class FlopsConfig:
    """How many floating point operations training needs, to say how busy a device is.

    Forward and backward together, on one rank. What is known of a step is added up.
    """

    per_step: float | None = field(default=None, metadata={"least": 0})
    """Of one training step."""

    per_sample: float | None = field(default=None, metadata={"least": 0})
    """Of one sample, times the samples that `rec.step(samples=)` reports."""

    per_token: float | None = field(default=None, metadata={"least": 0})
    """Of one token, times the tokens that `rec.step(tokens=)` reports; 6 times the number
    of parameters is a usual estimate."""

    device_peak: float | None = field(default=None, metadata={"least": 0})
    """What the device could do in a second, at the precision that is used."""

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
