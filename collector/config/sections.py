"""The sections of the settings, each a struct, and each of its fields a setting.

Name, type, range, default and meaning are declared here and once; the docstring under a
field is what it means, for editors, the documentation's table and YAML files.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta

from memboard.collector.config.keywords import StructKeywords
from memboard.collector.config.values import (
    Code,
    Names,
    Options,
    Setting,
    checked,
    describe,
)
from memboard.collector.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

SpanState: TypeAlias = Literal["skip", "warmup", "active", "active_and_save"]
"""Action of the schedule at a step."""

ClockMethod: TypeAlias = Literal["auto", "distributed", "off"]
"""Ways to compare clocks."""

Dump: TypeAlias = Literal["yaml", "modules", "history"]
"""Files for other tools."""

Activity: TypeAlias = Literal["cpu", "cuda", "xpu", "mtia", "hpu", "privateuse1"]

Pace: TypeAlias = Annotated[float, Meta(ge=0.05, le=86400)] | bool
"""Seconds between two samples; true: the default, false: none."""


class Section(msgspec.Struct, metaclass=StructKeywords, frozen=True, kw_only=True):
    """Settings that belong together: immutable, and checked when they are made."""

    def __post_init__(self) -> None:
        place = f"{type(self).__name__}()"
        for field, hint in fields_of(type(self)).items():
            value = getattr(self, field)
            if isinstance(hint, Setting):
                msgspec.structs.force_setattr(self, field, checked(hint, value, place))
            elif not issubclass(type(value), hint):  # an instance may claim any class
                raise ConfigError(
                    f"'{field}' in {place} must be a {hint.__name__}, got"
                    f" {describe(value)}. Write {field}=collector.{hint.__name__}(...),"
                    " or use mb.load, which takes the short forms."
                )


@cache
def fields_of(owner: type[Section]) -> Mapping[str, Setting | type[Section]]:
    """What each field of a struct may be."""
    return {
        item.name: item.type
        if isinstance(item.type, type) and issubclass(item.type, Section)
        else Setting(item.name, item.type, item.default)
        for item in msgspec.structs.fields(owner)
    }


class FunctionsConfig(Section, frozen=True, kw_only=True):
    """Which profiled functions each kind collects.

    A name is that of the decorated function or of the span; `*` stands for all of them,
    `step` for everything between two calls of `rec.step()`.
    """

    enabled: bool = True
    """False: decorated functions and memory spans run straight through."""

    default: Names = ("*",)
    """Functions whose device and host memory is measured. Of these and of the next three
    settings' the hooks are read and the saved tensors counted."""

    device: Names = ()
    """More functions whose device statistics are recorded, without rss and vms."""

    host: Names = ()
    """More functions whose rss and vms are recorded, without the device's statistics."""

    history: Names = ("step",)
    """Functions at whose start and end the allocator is captured, where `history` is on."""

    modules: Names = ("step",)
    """Functions through which module memory is tracked, where `modules` is on."""


class ScheduleConfig(Section, frozen=True, kw_only=True):
    """Which steps and calls are collected, in cycles of wait, warmup and active ones.

    Each function and phase counts its own calls.
    """

    skip_first: Annotated[int, Meta(ge=0)] = 0
    """Calls before the first cycle, once per recording or epoch."""

    wait: Annotated[int, Meta(ge=0)] = 0
    """Calls of a cycle that pass by."""

    warmup: Annotated[int, Meta(ge=0)] = 1
    """Calls of a cycle that warm up after those."""

    active: Annotated[int, Meta(ge=0)] = 1
    """Collected calls of a cycle after those. 0: all that follow, without an end."""

    repeat: Annotated[int, Meta(ge=0)] = 1
    """Number of cycles, each wait, warmup and active: 1 is one window; 0: no end."""

    per_epoch: bool = False
    """Whether counting begins anew with each epoch (`rec.epoch`): every epoch then has its
    own `skip_first` and its own cycles. Of no effect where epochs are counted."""

    unit: Literal["call", "step", "sample", "token", "epoch"] = "call"
    """What is counted: the function's calls, or how far training is."""

    resume: Annotated[int, Meta(ge=0)] = 0
    """Where counting starts, for a training that was resumed: added to `skip_first`.
    With `per_epoch`: in the first epoch of this start alone."""

    choose: Code | None = None
    """Your own: a callable that is given the number of the call, from 0, and returns
    whether to collect it (or a `memboard.Action`). It replaces the counts above."""


class HooksConfig(Section, frozen=True, kw_only=True):
    """Your functions around the forward and backward of every module."""

    enabled: bool = True
    """False: no hook is installed."""

    pre_forward: tuple[Code, ...] = ()
    """Called as `hook(module, inputs)`; what it returns is ignored."""

    post_forward: tuple[Code, ...] = ()
    """Called as `hook(module, inputs, outputs)`."""

    reset: tuple[Code, ...] = ()
    """Called as `hook(module)` after each collected call, to start from zero. One that
    needs two arguments, as MemProfiler's do, is called as `hook(model, attributes)` with
    the names in `save_attrs`, before the first collected call too."""

    save_attrs: Names = ()
    """Attributes that your hooks set on modules, recorded as numbers."""


class ActivationsConfig(Section, frozen=True, kw_only=True):
    """Bytes that autograd saves for backward, by step, module and dtype."""

    enabled: bool = True
    """Whether saved tensors are counted in collected calls."""

    functions: tuple[Code, ...] = ()
    """Your own pack and unpack functions (two), called around our counting."""


class ModulesConfig(Section, frozen=True, kw_only=True):
    """Memory by module and category through a whole step, FSDP or not."""

    enabled: bool = False
    """Whether modules are tracked in collected calls: a few times a bare step's cost."""

    root: str = ""
    """Path of the module to track, below the attached model; empty: the model."""

    table_depth: Annotated[int, Meta(ge=1, le=1000)] = 2
    """Depth of modules in the tables that `dumps` and `memboard export` write of each call,
    `fsdp_mem_rank_R_FUNCTION_ITER.log`; 1: the root alone."""

    table_units: Literal["B", "KiB", "MiB", "GiB"] = "MiB"
    """Units of the sizes in these tables."""


class HistoryConfig(Section, frozen=True, kw_only=True):
    """Captures of the allocator: segments, blocks and what happened to them."""

    enabled: bool = False
    """Whether torch records the allocator's history, and captures are taken. From 2.14 on
    pinned host memory is recorded too, and tensors are annotated in collected calls."""

    max_entries: Annotated[int, Meta(ge=1, le=2**31 - 1)] = 100_000
    """Events that torch retains; older ones are dropped."""

    stacks: Literal["python", "all"] = "python"
    """Stacks of Python alone, or of C++ too: a capture then takes a hundred times longer."""


class OomConfig(Section, frozen=True, kw_only=True):
    """Reports of out-of-memory errors and other ends, with the allocator as it was."""

    enabled: bool = True
    """Whether an out-of-memory error leaves a report, and a snapshot of the allocator."""

    history: bool = True
    """Have torch record the Python stack of every allocation from the start, without
    which nobody can say who held the memory: 2 us per allocation, and up to some hundred
    MB of host memory. Where allocations come so often that their stacks would take more
    than 5 % of a processor, events are recorded without them, and a note says so. A
    recording of your own is never changed."""

    on_sigterm: bool = False
    """Also report when SIGTERM comes; the handler that was there runs afterwards."""


class SpansConfig(Section, frozen=True, kw_only=True):
    """Spans, instants and counters, recorded one by one; and the parts of each step."""

    enabled: bool = True
    """False: spans are only summed up by name, and no part of a step is timed."""

    automatic: bool = True
    """Time the parts of each step: dataloader, forward, backward, optimizer, zero_grad,
    checkpoint, evaluation, communication. Functions of torch are wrapped meanwhile."""

    states: tuple[SpanState, ...] = ("warmup", "active", "active_and_save")
    """Steps of the schedule in which spans are recorded one by one, unless a span has
    states of its own: skip, warmup, active, and active_and_save, a cycle's last one."""


class FlopsConfig(Section, frozen=True, kw_only=True):
    """How many floating point operations training needs, to say how busy a device is.

    Forward and backward together, on one rank. What is known of a step is added up.
    """

    per_step: Annotated[float, Meta(ge=0)] | None = None
    """Of one training step."""

    per_sample: Annotated[float, Meta(ge=0)] | None = None
    """Of one sample, times the samples that `rec.step(samples=)` reports."""

    per_token: Annotated[float, Meta(ge=0)] | None = None
    """Of one token, times the tokens that `rec.step(tokens=)` reports; 6 times the number
    of parameters is a usual estimate."""

    device_peak: Annotated[float, Meta(ge=0)] | None = None
    """What the device could do in a second, at the precision that is used."""


class TorchProfilerConfig(Section, frozen=True, kw_only=True):
    """torch's profiler, in the steps that `schedule` picks.

    Of warmup it is made ready, in active steps it records, and after a cycle's last one
    the trace is saved.
    """

    enabled: bool = False
    """Whether torch's profiler runs."""

    activities: tuple[Activity, ...] = ()
    """What is recorded: cpu, cuda, xpu, mtia, hpu, privateuse1. Empty: the processor and
    the device that this rank uses."""

    record_shapes: bool = False
    """Shapes of every operator's inputs."""

    profile_memory: bool = True
    """Every allocation and release of tensors."""

    with_stack: bool = False
    """Python's calls: several times as many events, and steps that take as much longer."""

    with_flops: bool = True
    """Floating point operations of matrix products and convolutions, as torch counts."""

    folder: str = "torch_traces"
    """Where traces go, below the folder beside the rank's file, which each start has for
    itself; may hold the variables of `filename`: `{run_name}/torch_traces`. Empty: there."""

    filename: str = "rank{rank}.{batch}.pt.trace.json"
    """Name of a trace's file in `folder`. May hold variables: run_name, rank, local_rank,
    world_size, local_world_size, node_rank, epoch, batch (finished steps), batch_in_epoch,
    sample, sample_in_epoch, token, token_in_epoch, total_wct, epoch_wct, batch_wct. One that
    ends in `.gz` is compressed; a name that is taken is given a number."""

    num_traces_to_keep: Annotated[int, Meta(ge=-1)] = -1
    """The newest ones that stay on disk; -1: all, 0: none. One that is to be uploaded is
    deleted once the copy was read back, and stays where that does not succeed."""

    post_process: Code | None = None
    """Your own: called with the path of each finished trace, on a thread of its own."""

    stacks_filename: str = ""
    """Name of a file of folded stacks beside the trace, for flame graphs
    (`rank{rank}.{batch}.stacks`); needs with_stack. Empty: none."""

    stacks_metric: Literal["self_cpu", "self_device"] = "self_cpu"
    """What a stack weighs there: microseconds on the processor or on the device."""

    memory_filename: str = ""
    """Name of a file beside the trace of memory by category: one that ends in `.html` is a
    page with a picture of it, which needs nothing else (`rank{rank}.{batch}.memory.html`);
    any other, comma-separated values (`rank{rank}.{batch}.memory.csv`). It needs
    record_shapes, profile_memory, with_stack."""


class RemoteConfig(Section, frozen=True, kw_only=True):
    """Where finished files are copied to while training runs, and how."""

    url: str = ""
    """Where to, as fsspec writes it (s3://, gs://, abfs://, hdfs://, file:// ...), with
    `{run_name}`, `{rank}`, `{node_rank}` and the like in it. Empty: nowhere."""

    files: str | None = "{path}"
    """Key of recordings, dumps and the merged trace below the url; `{path}` is the path below
    the run's directory, `{name}` the file's name. null: they stay here."""

    traces: str | None = "{path}"
    """Key of the torch profiler's traces, which may hold Composer's variables: `{epoch}`,
    `{batch}` and so on. null: they stay here."""

    stacks: str | None = "{path}"
    """Key of the files that `torch_profiler.stacks_filename` names; as for `traces`."""

    memory: str | None = "{path}"
    """Key of the files that `torch_profiler.memory_filename` names; as for `traces`. It is
    Composer's `memory_remote_file_name`."""

    prune: bool = False
    """Delete a local file once its copy was verified; never the newest segment. Not with
    `merge_on_close` or `dumps`, which read what lies here."""

    close_seconds: Annotated[float, Meta(ge=0, le=86400)] = 30.0
    """The longest that the end of a recording waits for uploads; what is left then is
    named, and goes with the next start."""

    storage_options: Options = msgspec.field(default_factory=Options)
    """Given to fsspec's file system as they are (`{anon: true}`,
    `{client_kwargs: {endpoint_url: ...}}`); in a variable as JSON. Not recorded."""
