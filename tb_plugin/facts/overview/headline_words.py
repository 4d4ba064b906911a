"""The words of the headline numbers: titles, meanings and caveats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

HeadlineKey: TypeAlias = Literal[
    "peak_allocated",
    "peak_reserved",
    "headroom",
    "fragmentation",
    "non_torch",
    "growth",
    "rss_peak",
    "rss_headroom",
    "rss_growth",
    "step_time",
    "cpu",
    "workers_rss",
]

WORDS: Final[Mapping[HeadlineKey, tuple[str, str]]] = {
    "peak_allocated": (
        "Peak allocated",
        "The most bytes live tensors held at once, on the rank that held most.",
    ),
    "peak_reserved": (
        "Peak reserved",
        "Highest reserved memory: bytes that PyTorch's allocator took from the device, on the worst rank.",
    ),
    "headroom": (
        "Headroom",
        "What was left of the device at the fullest moment, on the fullest rank.",
    ),
    "fragmentation": (
        "Fragmentation",
        "Reserved minus allocated at the peak: reserved bytes that no tensor uses.",
    ),
    "non_torch": (
        "Outside PyTorch",
        "Device bytes not of PyTorch's allocator: contexts, NCCL, other processes.",
    ),
    "growth": (
        "Growth",
        "How much the fastest growing rank grows with each step, after warm-up.",
    ),
    "rss_peak": (
        "Peak RSS",
        "The most physical memory one training process held.",
    ),
    "rss_headroom": (
        "Memory headroom",
        "What was left of the memory limit at the fullest moment.",
    ),
    "rss_growth": (
        "RSS growth",
        "How much the fastest growing training process grows with each step.",
    ),
    "step_time": (
        "Step time",
        "The median time of one training step, on the slowest rank, without the profiler's own.",
    ),
    "cpu": ("CPU", "How busy the busiest host's processors were."),
    "workers_rss": (
        "Dataloader workers",
        "The physical memory of one rank's dataloader workers together.",
    ),
}
LINES: Final = {"growth": "allocated memory", "rss_growth": "RSS"}
"""Contents of sparklines, where they are not the number itself."""
CAVEATS: Final = {
    "sampled": "sampled at intervals: a shorter peak may have been missed",
    "estimated": "estimated from other numbers, not measured",
    "cumulative_peak": (
        "the peak counter was not reset each step, so this is the peak since the start"
    ),
    "no_limit": "no memory limit was recorded",
    "few_steps": "few steps so far: this will settle with more of them",
    "after_warmup": "without the steps of the warm-up",
    "one_host": "measured on one host and taken for all",
}
