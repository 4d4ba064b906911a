"""Texts of throughputs: titles, help, and each in one short text."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from memboard.tb_plugin.api.time.steps import StepFlops, StepRate

_TITLES: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "tokens": (
            "Tokens/s",
            "Tokens of rec.step(tokens=…) ÷ the time that passed; over all ranks, the sum.",
        ),
        "samples": (
            "Samples/s",
            "Samples of rec.step(samples=…) ÷ the time that passed; over all ranks, the sum.",
        ),
        "mfu": ("MFU", ""),
        "steps": (
            "Steps/s, with pauses",
            "Steps ÷ all the time that passed, with whatever lies between two steps.",
        ),
        "flops": ("FLOP/s", ""),
    }
)
"""The most telling one first."""
_FORMS: Final = {"mfu": "MFU {}", "steps": "{} with pauses"}
"""How a rate stands beside a step's time."""
_PREFIXES: Final = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"))


def worded(
    rates: Iterable[StepRate], flops: StepFlops, rank: int, num_summed: int
) -> tuple[StepRate, ...]:
    """Rates with their words, the most telling one first."""
    flops_sentence = flops_text(flops)
    by_key = {rate.key: rate for rate in rates}
    return tuple(
        _worded(
            by_key[key],
            title,
            help_ or flops_sentence,
            flops_sentence,
            rank,
            num_summed,
        )
        for key, (title, help_) in _TITLES.items()
        if key in by_key
    )


def _worded(
    rate: StepRate, title: str, help_text: str, flops: str, rank: int, num_summed: int
) -> StepRate:
    value = rate.median if rate.summed_median is None else rate.summed_median
    text, whose = rate_text(value, rate.key), f"Rank {rank}"
    if rate.summed_median is not None:
        kind = "Mean" if rate.key == "mfu" else "Sum"
        own = rate_text(rate.median, rate.key)
        whose = f"{kind} of {num_summed:,} ranks; rank {rank}: {own}"
    exact = "Not known."
    if value is not None:
        digits = f"{value:,.6f}".rstrip("0").rstrip(".")
        exact = f"In full: {digits} {_unit(rate.key)}."
    note = flops if flops.startswith("MFU is not known") and help_text != flops else ""
    return replace(
        rate,
        title=title,
        help=f"{help_text} {note}".strip(),
        text=_FORMS.get(rate.key, "{}").format(text),
        hint=f"{help_text} Median over the steps. {whose}. {exact}",
    )


def rate_text(value: float | None, key: str) -> str:
    """`1.77 Mtokens/s`; large rates keep three digits with a prefix."""
    if value is None:
        return "–"  # noqa: RUF001
    if key == "mfu":
        return f"{_digits(value)} %"
    by, prefix = next(
        (prefix_pair for prefix_pair in _PREFIXES if value >= prefix_pair[0]), (1.0, "")
    )
    return f"{_digits(value / by)} {prefix}{_unit(key)}"


def _unit(key: str) -> str:
    if key == "mfu":
        return "%"
    return f"{'FLOP' if key == 'flops' else key}/s"


def _digits(number: float) -> str:
    digits = 0 if number >= 100 else 1 if number >= 10 else 2
    return f"{number:,.{digits}f}"


def flops_text(flops: StepFlops) -> str:
    """Which number of operations the MFU rests on, and the formula; or what is missing."""
    if flops.missing:
        return f"MFU is not known without {flops.missing}."
    source = (
        "the flops settings of the recording"
        if flops.origin == "settings"
        else "what torch's profiler counted in a trace"
    )
    per_step = rate_text(flops.per_step, "flops").removesuffix("/s")
    return (
        "MFU = floating point operations per second ÷ device_peak, by the time from step "
        f"to step. Operations from {source}: {per_step} per step; device_peak "
        f"{rate_text(flops.device_peak, 'flops')}."
    )
