"""Sentences about module memory: moments, tracked steps, the first one of the page."""

from __future__ import annotations

import re
from math import isfinite
from typing import TYPE_CHECKING, Final, NamedTuple

from memboard.collector.format.memory import NOUNS
from memboard.collector.format.sizes import agreeing, capitalized, counted, part_of
from memboard.tb_plugin.analysis.findings.text import duration_text, size_text
from memboard.tb_plugin.api.memory.modules import ModuleCaveat, ModuleLead, ModuleMoment
from memboard.tb_plugin.formats.recording.series import TRAIN_PHASE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from memboard.tb_plugin.api.memory.modules import (
        ModuleBaseline,
        ModuleSplit,
        ModuleWindow,
    )
    from memboard.tb_plugin.formats.recording.captures.modules import (
        CaptureFacts,
        WindowKey,
    )

_GROUPS: Final = (
    "Forward of each module",
    "Backward of each module",
    "Activation checkpointing",
    "One moment for all modules",
)
_STATES: Final = {
    "before_pre_forward": (0, "before pre-forward"),
    "after_pre_forward": (0, "after pre-forward"),
    "peak_forward": (0, "peak in forward"),
    "before_post_forward": (0, "before post-forward"),
    "after_post_forward": (0, "after post-forward"),
    "before_pre_backward": (1, "before pre-backward"),
    "after_pre_backward": (1, "after pre-backward"),
    "peak_backward": (1, "peak in backward"),
    "before_post_backward": (1, "before post-backward"),
    "after_post_backward": (1, "after post-backward"),
    "pre_forward_ac": (2, "before recomputed forward (AC)"),
    "post_forward_ac": (2, "after recomputed forward (AC)"),
    "window_start": (3, "start of the step"),
    "window_peak": (3, "peak of the step"),
    "before_optimizer": (3, "before the optimizer"),
    "after_optimizer": (3, "after the optimizer"),
    "window_end": (3, "end of the step"),
}
"""By state, in order of time: its group, and its words."""

_AT: Final = {
    "window_start": "at the start of",
    "window_peak": "peak,",
    "before_optimizer": "before the optimizer in",
    "after_optimizer": "after the optimizer in",
    "window_end": "at the end of",
}
_MOST_NAMED: Final = 3
_INPUTS: Final = {
    "forward": "inputs from the root's forward",
    "given": "inputs as given",
    "none": "inputs not tracked",
}
_BACKENDS: Final = {"fsdp2": "FSDP2", "plain": "without FSDP"}


def state_words(state: str) -> str:
    # `after post-forward`
    return _STATES[state][1]


def moments_of(states: Sequence[str]) -> tuple[ModuleMoment, ...]:
    """The states there are, with their words."""
    return tuple(
        ModuleMoment(state, label, _GROUPS[group])  # type: ignore[arg-type]
        for state, (group, label) in _STATES.items()
        if state in states
    )


def call_words(key: WindowKey, step: int | None) -> str:
    """`step 100, iteration 3`, `train_batch, iteration 2, step 7`."""
    call = f"iteration {key.iteration:,}" if key.iteration else "taken by hand"
    if key.function == "step" and step is not None:
        return f"step {step:,}, {call}"
    at_step = "" if step is None else f", step {step:,}"
    return f"{key.function or 'by hand'}, {call}{at_step}"


def call_group(key: WindowKey, *, attempts: bool) -> str:
    """Calls that are listed together."""
    phase = "" if key.phase in (TRAIN_PHASE, "") else f" · {key.phase}"
    attempt = f" · attempt {key.attempt}" if attempts else ""
    return f"{key.function or 'by hand'}{phase}{attempt}"


def baseline_words(baseline: ModuleBaseline, window: ModuleWindow) -> str:
    """What differences are taken from."""
    if baseline.kind == "state":
        return state_words(baseline.state)
    if baseline.kind == "window":
        return window.words
    if baseline.kind == "rank":
        return f"rank {baseline.rank}"
    read, all_ = baseline.num_ranks, baseline.of_ranks
    every = "all " if read == all_ > 1 else ""
    return f"the median of {every}{part_of(read, all_, 'rank')}"


class Whole(NamedTuple):
    """All that a rank held at one moment, and whose it is first of all."""

    split: ModuleSplit
    unattributed: Sequence[tuple[str, float]]
    """What belongs to no module, by category, the largest first."""
    category: str
    """The one that takes most."""
    module: str | None
    """The lowest module, or row of equal layers, with most of it; None: it belongs to none."""
    num_bytes: float
    """Of that module and those below it."""


def lead_of(
    whole: Whole | None,
    state: str,
    window: ModuleWindow,
    rank: int,
    *,
    has_modules: bool,
    against: str,
) -> ModuleLead:
    """Whose bytes the total is made of first of all."""
    call = _short(window)
    against = f"Shown: the difference from {against}." if against else ""
    if whole is None or not has_modules:
        subject = "Memory of each module" if has_modules else "The rank's total"
        before = f"{subject}: {state_words(state)}, {call}, rank {rank}."
        return ModuleLead(before, None, "", against)
    split, rest = whole.split, whole.unattributed
    noun = _noun(whole.category)
    before = f"{capitalized(noun)} "
    before += "of " if whole.module else "outside all modules"
    after = (
        f" are {size_text(whole.num_bytes)} of the {size_text(split.total_bytes)}"
        f" {_AT[state]} {call}, rank {rank}."
    )
    named = [
        f"{_noun(category)} {size_text(num)}" for category, num in rest[:_MOST_NAMED]
    ]
    named += ["…"] if len(rest) > _MOST_NAMED else []
    none = ""
    if named:
        none = (
            f"; {size_text(split.unattributed_bytes)} belongs to no module"
            f" ({', '.join(named)})"
        )
    after_modules = f"Modules hold {size_text(split.held_bytes)}{none}. {against}"
    return ModuleLead(before, whole.module, after, after_modules.rstrip())


def _short(window: ModuleWindow) -> str:
    if window.function == "step" and window.step is not None:
        return f"step {window.step:,}"
    if not window.function:
        return "the tracked call"
    return f"{window.function}, call {window.iteration:,}"


def _noun(category: str) -> str:
    return NOUNS.get(category, category)


def fact_words(facts: CaptureFacts, peak: tuple[float, float] | None) -> Iterator[str]:
    """Short facts, in the order they matter; `peak`: bytes, and microseconds since then."""
    if peak is not None and isfinite(peak[0]):
        when = f" at {duration_text(peak[1] / 1e6)}" if isfinite(peak[1]) else ""
        yield f"peak of the step {size_text(peak[0])}{when}"
    if facts.root:
        yield f"root {facts.root}"
    if facts.backend:
        yield _BACKENDS.get(facts.backend, facts.backend)
    if facts.world:
        is_size = re.fullmatch(r"[0-9]+", facts.world)
        yield f"world size {facts.world}" if is_size else facts.world
    if facts.num_optimizers is not None:
        yield counted(facts.num_optimizers, "optimizer")
    if facts.inputs:
        yield _INPUTS.get(facts.inputs, facts.inputs)
    if facts.rounding_bytes is not None and facts.rounding_bytes > 1:
        yield f"sizes rounded up to {counted(facts.rounding_bytes, 'byte')}"
    if facts.num_events is not None:
        yield counted(facts.num_events, "event")
    if facts.torch_version and facts.source != "simulated":
        yield f"torch {facts.torch_version}"


def caveats_of(facts: CaptureFacts) -> Iterator[ModuleCaveat]:
    """What a reader must know before trusting the numbers."""
    if facts.estimate:
        yield ModuleCaveat(
            _sentence(facts.estimate),
            "These sizes are what the model would hold without torch.compile; the"
            " compiled model may allocate less, or other tensors.",
        )
    if facts.incomplete:
        yield ModuleCaveat(
            "Incomplete.",
            "Tracking ended before the step did, by an error or because the process"
            " died. The page shows what was recorded until then.",
        )
    if facts.num_events_dropped:
        yield ModuleCaveat(
            f"{counted(facts.num_events_dropped, 'event')}"
            f" {agreeing(facts.num_events_dropped, 'was', 'were')} dropped.",
            "Numbers after the first gap may be too high or too low.",
        )
    if facts.source == "imported":
        yield ModuleCaveat(
            "Imported report.",
            "It holds states only: there is no timeline of the step, and no moments"
            " between states.",
        )
    # Of a simulated run the page already says so above.
    if facts.reasons and facts.source != "simulated":
        yield ModuleCaveat("Note.", " ".join(map(_sentence, facts.reasons)))


def _sentence(text: str) -> str:
    text = text.strip()
    if not text:
        return ""
    return f"{capitalized(text)}{'' if text[-1] in '.!?' else '.'}"
