"""What is special about a span: found when it is made, so that its begin need not ask."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from collector.core.guard import say
from collector.core.plain import MAX_ARGS, MAX_KEY, NUMBERS, plain_args, text_of
from collector.core.warn_once import Troubles
from collector.steps.parts import INDEX
from collector.steps.spans.log import SUMMED, states_mask

if TYPE_CHECKING:
    from collections.abc import Iterable

    States: TypeAlias = str | Iterable[str] | None

USER: Final = "user"
"""The category of spans that say none."""

_NOT_SUMMED: Final = frozenset({"callback", "event"})
"""Categories of a trainer's own spans: too many names for each to be summed up."""

_MAX_KNOWN: Final = 256
"""Categories are few; those of a program that makes them up are looked at each time."""

troubles: Final = Troubles()
"""Of what spans, instants and counters are given: each is told once per process."""


def tell(where: str, error: Exception, *_: Any, **__: Any) -> None:
    """Tell what went wrong in a call that belongs to no recorder, or not yet."""
    say(troubles, where, error)


@dataclass(frozen=True, slots=True)
class How:
    """What is special about a span, besides its name and args."""

    category: str = USER
    states: int | None = None
    """Bits of the states in which it is kept; None: as the settings say."""
    memory: bool = False
    """Whether it is a profiled call too."""
    part: int = -1
    """Which part of a step it is; -1: none."""
    flags: int = SUMMED
    """Besides `span_log.KEPT`."""
    is_special: bool = False
    """Whether it has states of its own or is a profiled call."""


PLAIN: Final = How()

known_hows: Final[dict[str, How]] = {USER: PLAIN}
"""By category, of spans of which nothing else is special: to be asked before `how_of`."""


def how_of(category: str, states: States, memory: bool) -> How:
    """What `Recorder.span` was told; what makes no sense is told once and ignored."""
    is_usual = states is None and not memory and type(category) is str
    category = text_of(category)
    how = How(
        category=category,
        states=known_states(states),
        memory=memory,
        part=INDEX.get(category, -1),
        flags=0 if category in _NOT_SUMMED else SUMMED,
        is_special=memory or states is not None,
    )
    if is_usual and len(known_hows) < _MAX_KNOWN:
        known_hows[category] = how
    return how


def known_states(states: States) -> int | None:
    """Bits of states; None as it is, and for what is none, with a warning."""
    if states is None:
        return None
    try:
        return states_mask(states)
    except Exception as error:  # noqa: BLE001  # whatever a value of the user's raises
        troubles.tell(
            "states", "states of a span: %s They are ignored.", text_of(error)
        )
        return None


def known_args(args: Any) -> dict[str, Any] | None:
    """As `plain_args`; None for what cannot be read, with a warning."""
    try:
        if type(args) is dict and 0 < len(args) <= MAX_ARGS:
            for key, value in args.items():
                if type(value) not in NUMBERS or not (
                    type(key) is str and len(key) <= MAX_KEY
                ):
                    break
            else:  # as mostly: there is nothing to make short
                return args.copy()
        return plain_args(args)
    except Exception as error:  # noqa: BLE001  # whatever a value of the user's raises
        troubles.tell(
            "args",
            "args of a span must be a dict with plain values; they are ignored.",
            error=error,
        )
        return None
