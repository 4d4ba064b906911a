"""The settings of torch's profiler."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from collector.config_checks import check_fields
from collector.config_sections import Code  # noqa: TC001  # read at run time
from collector.errors import ConfigError
from collector.remote.templates import IDENTITY, MOMENT, checked_names

if TYPE_CHECKING:
    from collections.abc import Callable

Activity: TypeAlias = Literal["cpu", "cuda", "xpu", "mtia", "hpu", "privateuse1"]

SortKey: TypeAlias = Literal[
    "self_cpu",
    "cpu",
    "self_device",
    "device",
    "self_cpu_memory",
    "cpu_memory",
    "self_device_memory",
    "device_memory",
    "calls",
    "flops",
]
"""A column of the operators that a summary may be sorted by."""

TEMPLATES: Final = ("folder", "filename", "stacks_filename", "memory_filename")

NEEDED_BY_MEMORY: Final = ("record_shapes", "profile_memory", "with_stack")
"""Without these, nobody can say what an allocation was for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchProfilerConfig:
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

    with_modules: bool = False
    """Modules of TorchScript; those of eager models come with stacks."""

    max_steps: int = field(default=100, metadata={"least": 1, "most": 10**6})
    """Steps of one trace; a longer cycle is saved as far as it is then."""

    max_seconds: float = field(default=300.0, metadata={"least": 1, "most": 86400})
    """Seconds of one trace; the cycle ends with the step during which they pass."""

    folder: str = "torch_traces"
    """Where traces go, below the folder beside the rank's file, which each start has for
    itself. May hold variables: run_name, rank, local_rank, world_size, local_world_size,
    node_rank, epoch, batch, batch_in_epoch, sample, sample_in_epoch, token,
    token_in_epoch, total_wct, epoch_wct, batch_wct."""

    filename: str = "rank{rank}.{batch}.pt.trace.json"
    """Name of a trace; may hold the same variables. `batch` counts finished steps."""

    gzip: bool = False
    """Compress traces; `.gz` is added to the name unless it is there."""

    overwrite: bool = False
    """Whether a trace may replace an earlier one of the same name. False: it is given a
    number. Of another start none is ever replaced."""

    num_traces_to_keep: int = field(default=-1, metadata={"least": -1})
    """The newest ones that stay on disk; -1: all, 0: none once they have been uploaded."""

    max_bytes: int = field(default=20 * 2**30, metadata={"least": 2**16, "most": 2**50})
    """Disk budget of one rank's traces and what belongs to them; no more is saved then."""

    post_process: Code | None = None
    """Your own: called with the path of each finished trace, on a thread of its own."""

    operators: bool = True
    """Sum up time, memory and flops per operator: a table of numbers and a summary."""

    sort_by: tuple[SortKey, ...] = ("self_cpu", "self_device")
    """The summary's tables, one for each: self_cpu, cpu, self_device, device,
    self_cpu_memory, cpu_memory, self_device_memory, device_memory, calls, flops."""

    row_limit: int = field(default=20, metadata={"least": 1, "most": 10_000})
    """Rows of each of the summary's tables."""

    name_width: int = field(default=55, metadata={"least": 8, "most": 1000})
    """Letters of an operator's name in the summary; longer ones are cut."""

    stacks_filename: str = ""
    """Name of a file of folded stacks beside the trace, for flame graphs
    (`rank{rank}.{batch}.stacks`); needs with_stack. Empty: none."""

    stacks_metric: Literal["self_cpu", "self_device"] = "self_cpu"
    """What a stack weighs there: microseconds on the processor or on the device."""

    memory_timeline: bool = True
    """Memory by category through the trace, where shapes, memory and stacks are recorded;
    torch's own analysis takes about 50 us for each event, beside training."""

    memory_filename: str = ""
    """Name of a page beside the trace that draws it, which needs nothing but a browser
    (`rank{rank}.{batch}.memory.html`); needs record_shapes, profile_memory, with_stack."""

    def __post_init__(self) -> None:
        check_fields(self)


def check_torch_profiler(
    value: Callable[[str], Any], place: Callable[[str], str]
) -> None:
    """Refuse what cannot be; see `config_rules.check_rules`.

    Raises:
        ConfigError: names the key, its place and the remedy.
    """
    for key in TEMPLATES:
        template = value(f"torch_profiler.{key}")
        if template:
            _check_template(f"torch_profiler.{key}", template, place)
    if not value("torch_profiler.enabled"):
        return
    _check_needed("memory_filename", NEEDED_BY_MEMORY, value, place)
    _check_needed("stacks_filename", ("with_stack",), value, place)


def _check_template(path: str, template: str, place: Callable[[str], str]) -> None:
    checked_names(template, IDENTITY + MOMENT, path, place)
    parts = template.replace("\\", "/").split("/")
    if ".." in parts:
        raise ConfigError(
            f"'{path}' in {place(path)} is {template!r}, which leaves the folder beside"
            " the rank's file. Remove '..'; to have traces elsewhere, set 'remote'."
        )
    if path != "torch_profiler.folder" and not parts[-1].strip(". "):
        raise ConfigError(
            f"'{path}' in {place(path)} is {template!r}, which names no file. Add a name."
        )


def _check_needed(
    key: str,
    needed: tuple[str, ...],
    value: Callable[[str], Any],
    place: Callable[[str], str],
) -> None:
    missing = [name for name in needed if not value(f"torch_profiler.{name}")]
    if value(f"torch_profiler.{key}") and missing:
        path = f"torch_profiler.{key}"
        named = " and ".join(f"torch_profiler.{name}" for name in missing)
        raise ConfigError(
            f"'{path}' in {place(path)} needs {named}, which"
            f" {'is' if len(missing) == 1 else 'are'} off. Set"
            f" {'it' if len(missing) == 1 else 'them'} to true, or remove {key}."
        )
