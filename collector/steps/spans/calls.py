"""The calls of a program for spans, instants and numbers, and what they accept."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from memboard.collector.core.compiling import nothing, traced_as
from memboard.collector.core.guard import guarded
from memboard.collector.core.plain import (
    MAX_ARGS,
    MAX_KEY,
    MAX_TEXT,
    NUMBERS,
    number_of,
    plain_args,
    text_of,
)
from memboard.collector.process import lifecycle
from memboard.collector.steps.spans.log import (
    PLAIN,
    SUMMED,
    USER,
    SpanOptions,
    states_mask,
)
from memboard.collector.steps.spans.span import (
    NoSpan,
    Span,
    tell,
    warn_once,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from memboard.collector.recording import Recording

    States: TypeAlias = str | Iterable[str] | None

_NOT_SUMMED: Final = frozenset({"callback", "event"})
"""Categories of a trainer's own spans: too many names for each to be summed up."""

_MAX_KNOWN: Final = 256
"""Categories are few; those of a program that makes them up are looked at each time."""

MAX_NUMBERS: Final = 1000
"""Numbers that one call logs: each takes microseconds of the training thread."""

known_options: Final[dict[str, SpanOptions]] = {USER: PLAIN}
"""By category, of spans of which nothing else is special: to be asked before `span_options`."""


def span_options(category: str, states: States, memory: bool) -> SpanOptions:
    """What `Recorder.span` was told; what makes no sense is told once and ignored."""
    from memboard.collector.steps.parts import INDEX  # imports msgspec

    is_usual = (
        states is None
        and not memory
        and type(category) is str
        and len(category) <= MAX_TEXT
    )
    category = text_of(category)
    options = SpanOptions(
        category=category,
        states=known_states(states),
        memory=memory,
        part=INDEX.get(category, -1),
        flags=0 if category in _NOT_SUMMED else SUMMED,
        is_special=memory or states is not None,
    )
    if is_usual and len(known_options) < _MAX_KNOWN:
        known_options[category] = options
    return options


def known_states(states: States) -> int | None:
    """Bits of states; None as it is, and for what is none, with a warning."""
    return None if states is None else _mask(states)


def _refused_states(_where: str, error: BaseException, *_: Any) -> None:
    warn_once("states", "states of a span: %s They are ignored.", text_of(error))


@guarded(_refused_states)
def _mask(states: str | Iterable[str]) -> int:
    return states_mask(states)


def known_args(args: Any) -> dict[str, Any] | None:
    """As `plain_args`; None for what cannot be read, with a warning."""
    if type(args) is dict and 0 < len(args) <= MAX_ARGS:
        for key, value in args.items():
            if type(value) not in NUMBERS or not (
                type(key) is str and len(key) <= MAX_KEY
            ):
                break
        else:  # as mostly: there is nothing to make short
            return args.copy()
    return _plain(args)


def _refused_args(_where: str, error: BaseException, *_: Any) -> None:
    warn_once(
        "args",
        "args of a span must be a dict with plain values; they are ignored.",
        error=error,
    )


@guarded(_refused_args)
def _plain(args: Any) -> dict[str, Any] | None:
    return plain_args(args)


def no_span(*_: Any, **__: Any) -> Span:
    """What is left of a span in compiled code."""
    return NoSpan()


def _plain_span(name: Any, sink: Recording | None, *_: Any) -> Span:
    return Span(name, sink)


@guarded(tell, instead=_plain_span)
def make_span(
    name: str,
    sink: Recording | None,
    category: str,
    states: States,
    args: dict[str, Any] | None,
    memory: bool,
) -> Span:
    """A span as `Recorder.span` and `span` describe it."""
    is_usual = (
        states is None
        and memory is False
        and type(category) is str
        and len(category) <= MAX_TEXT
    )
    options = known_options.get(category) if is_usual else None
    if options is None:
        options = span_options(category, states, memory)
    return Span(name, sink, options, None if args is None else known_args(args))


def span(
    name: str,
    *,
    category: str = USER,
    states: States = None,
    args: dict[str, Any] | None = None,
    memory: bool = False,
) -> Span:
    """A span of the active recorder; see `Recorder.span`.

    The recorder is looked up whenever the span begins, so a decorator may be applied
    before recording starts. Without a live recorder the code runs straight through, and
    so does code that torch.compile has compiled: put spans around it.
    """
    # Nothing is asked here of what may be anybody's object: that is done under a guard.
    if states is args is None and memory is False:
        if category is USER:
            return Span(name)
        # One of a million characters would be hashed here.
        if type(category) is str and len(category) <= MAX_TEXT:
            options = known_options.get(category)
            if options is not None:
                return Span(name, None, options)
    return make_span(name, None, category, states, args, memory)


traced_as(span, no_span)


@guarded(tell, traced=nothing)
def instant(name: str, *, states: States = None, **args: Any) -> None:
    """A moment of the active recorder; see `Recorder.instant`."""
    sink = active_sink()
    if sink is not None:
        put_instant(sink, name, states, args)


@guarded(tell, traced=nothing)
def log(values: Mapping[str, float], *, states: States = None) -> None:
    """Numbers of the active recorder; see `Recorder.log`."""
    sink = active_sink()
    if sink is not None:
        put_numbers(sink, values, states)


def put_instant(
    sink: Recording, name: str, states: States, args: dict[str, Any]
) -> None:
    """Of `sink`, where it is live."""
    log = sink.span_log
    if log is not None:
        mask = known_states(states)
        if log.kept(mask):
            log.add_instant(name, USER, known_args(args), mask)


def put_numbers(sink: Recording, values: Mapping[str, Any], states: States) -> None:
    """Of `sink`, where it is live; a value that is no number is refused with a word."""
    log = sink.span_log
    if log is None:
        return
    mask = known_states(states)
    for place, (name, value) in enumerate(islice(values.items(), MAX_NUMBERS + 1)):
        if place == MAX_NUMBERS:
            warn_once(
                "log many",
                "log takes %d numbers at once: the rest is ignored. Log fewer, or call it"
                " for each part.",
                MAX_NUMBERS,
            )
            return
        number = number_of(value)
        if number is None:
            warn_once(
                "log",
                "log takes numbers of 64 bits, got a %s for %s; it is ignored. Pass a"
                " Python number: a tensor would have to wait for the device.",
                type(value).__name__,
                text_of(name),
            )
        elif log.kept(mask):
            log.add_counter(text_of(name), number, mask)


def active_sink() -> Recording | None:
    """The active recorder as a taker of spans."""
    return lifecycle.newest()
