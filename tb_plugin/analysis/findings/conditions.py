"""Conditions on how a process ran under which an advice helps.

An advice is given where its condition is known to be true: what is on already, cannot
work here or may not work is not advised.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Final

from memboard.tb_plugin.api.findings import Advice

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_RENAMED_IN: Final = (2, 9)
"""Torch's release in which `PYTORCH_CUDA_ALLOC_CONF` became `PYTORCH_ALLOC_CONF`."""

_VERSION: Final = re.compile(r"(\d{1,4})\.(\d{1,4})")
_FRACTION: Final = re.compile(r"\bper_process_memory_fraction\s*:\s*(\d?\.?\d{1,12})\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """How a process ran, as far as advice depends on it; None: not known."""

    expandable: bool | None = None
    other_allocator: bool | None = None
    """Whether a part of the memory comes from another allocator than torch's own: from
    a pluggable one, or from a pool of an inference engine. Torch cannot expand that."""
    torch_version: tuple[int, int] | None = None
    is_rocm: bool | None = None
    on_gpu: bool | None = None
    """False: a CPU has no allocator's history."""
    records_history: bool | None = None
    """Whether captures of the allocator's history are switched on."""
    keeps_stacks: bool | None = None
    """Whether the history is kept for reports of errors."""
    recomputes: bool | None = None
    """Whether activations are recomputed, at least some of them."""
    has_small_states: bool | None = None
    """Whether the optimizer's state is quantised or paged already."""
    memory_fraction: float | None = None
    """Of the device's memory that this process may take, where the allocator's settings
    say so (per_process_memory_fraction, since torch 2.10)."""
    is_rejected: bool = False
    """The error's text says that torch refused the request by the limit on this process,
    without asking the device (throw_on_cudamalloc_oom, since torch 2.13)."""

    @property
    def can_expand(self) -> bool:
        """Expandable segments are off, and can be switched on."""
        is_off = self.expandable is False and self.other_allocator is False
        return is_off and not self.is_rocm

    @property
    def can_record_history(self) -> bool:
        """Captures of the history are off, and can be switched on."""
        return self.on_gpu is True and self.records_history is False

    @property
    def can_keep_stacks(self) -> bool:
        """The history of errors is off, and can be switched on."""
        return self.on_gpu is True and self.keeps_stacks is False

    @property
    def no_history_remedy(self) -> str:
        """What brings a history of the allocator to a run that has none."""
        put = "put a pickle of torch.cuda.memory._dump_snapshot into the log directory."
        if self.on_gpu is False:
            return f"On a CPU, PyTorch keeps none; for a run on a GPU, {put}"
        if self.records_history:
            return (
                f"history=True was set, but nothing was captured: call"
                f" rec.snapshot(name), or {put}"
            )
        return f"Pass history=True to mb.record, call rec.snapshot(name), or {put}"

    def allocator_variable(self, setting: str) -> str:
        """What sets something of torch's allocator before the process starts.

        Under both names where torch's release is not known: each reads its own.
        """
        old = f"PYTORCH_CUDA_ALLOC_CONF={setting}"
        new = f"PYTORCH_ALLOC_CONF={setting}"
        if self.torch_version is None:
            return f"{new} {old}"
        return new if self.torch_version >= _RENAMED_IN else old

    @property
    def limited_by(self) -> str:
        """What limits the memory of this process, where something does."""
        if self.memory_fraction is None:
            return "torch.cuda.set_per_process_memory_fraction"
        setting = "per_process_memory_fraction"
        return f"{setting}:{self.memory_fraction:g} in the allocator's settings"

    @property
    def device_tool(self) -> str:
        """The command that lists the processes on a device."""
        if self.is_rocm is None:
            return "nvidia-smi, or rocm-smi"
        return "rocm-smi" if self.is_rocm else "nvidia-smi"

    @property
    def variables_text(self) -> str:
        """Which release reads which name, where both are given; else nothing."""
        if self.torch_version is not None:
            return ""
        return (
            " Torch 2.9 and newer read PYTORCH_ALLOC_CONF, older ones"
            " PYTORCH_CUDA_ALLOC_CONF."
        )

    def filled(self, more: Setup) -> Setup:
        """This, with what only the other knows."""
        missing = {
            field.name: getattr(more, field.name)
            for field in fields(Setup)
            if getattr(self, field.name) is None
        }
        return replace(
            self, **missing, is_rejected=self.is_rejected or more.is_rejected
        )


def recorded_setup(
    device_type: str, versions: Mapping[str, str], config: Mapping[str, Any]
) -> Setup:
    """What the header of a recording says: its device, versions and settings."""
    version = _VERSION.match(versions.get("torch", ""))
    return Setup(
        torch_version=(int(version[1]), int(version[2])) if version else None,
        is_rocm="hip" in versions if version else None,
        on_gpu=device_type != "cpu" if device_type else None,
        records_history=_switch(config, "history", "enabled"),
        keeps_stacks=_switch(config, "oom", "history"),
    )


def memory_fraction_in(settings: Iterable[str]) -> float | None:
    """The fraction that the allocator's settings name; None: none below 1."""
    for text in settings:
        named = _FRACTION.search(text)
        if named is not None and 0 < float(named[1]) < 1:
            return float(named[1])
    return None


def is_rejected_in(message: str) -> bool:
    """Whether an error's text says that a limit refused it before the device was asked."""
    return "would exceed per_process_memory_fraction limit" in message


def _switch(config: Mapping[str, Any], section: str, key: str) -> bool | None:
    settings = config.get(section)
    value = settings.get(key) if isinstance(settings, dict) else None
    return value if isinstance(value, bool) else None


def advice_of(
    text: str, num_bytes: float | None, *because: str, setting: str = ""
) -> Advice:
    """Something to try that saves so many bytes at most; None: that cannot be told.

    Its condition is the rule that gives it. `because`: keys of the evidence.
    """
    gain = None if num_bytes is None else float(num_bytes)
    return Advice(text, gain, "bytes", because, setting)


def unknown_line_advice(setup: Setup, *, replayed: bool) -> Iterator[Advice]:
    """What to record where memory is retained and no line is known that does so.

    `replayed`: a history says so; else steps' numbers alone.
    """
    see = "To see which line retains it,"
    yield from advice_if(
        replayed,
        f'{see} record stacks with the history, C++ frames too (stacks="all"): those of'
        " what is retained name no line.",
        None,
    )
    yield from advice_if(
        not replayed and setup.can_record_history,
        f"{see} record the allocator's history: history=True.",
        None,
    )
    yield from advice_if(
        not replayed and setup.on_gpu is True and setup.records_history is not False,
        f"{see} capture the allocator's history twice, some hundred steps apart:"
        " rec.snapshot(name) where the history is recorded; else"
        " torch.cuda.memory._record_memory_history(), and pickles of"
        " torch.cuda.memory._dump_snapshot in the log directory.",
        None,
    )


def advice_if(
    condition: bool,
    text: str,
    num_bytes: float | None,
    *because: str,
    setting: str = "",
) -> tuple[Advice, ...]:
    """The same, where more has to be true than the rule that gives it; else nothing."""
    if not condition:
        return ()
    return (advice_of(text, num_bytes, *because, setting=setting),)
