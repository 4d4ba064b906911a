"""Parameters of the routes about traces, checked once."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tb_plugin.parameters import bad, integer_of, pixels_of, text_of, word_of

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_PX: Final = 1_600
MAX_TRACKS: Final = 4_000
_MAX_INDEX: Final = 1_000_000
_MAX_RANK: Final = 10_000_000
_MAX_ROW: Final = 2**31 - 1
_TIME: Final = re.compile(r"-?\d{1,19}")
_MOST_NS: Final = 2**62
_ID: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_SPAN: Final = re.compile(r"(\d{1,7})(?:-(\d{1,7}))?")


@dataclass(frozen=True, slots=True)
class TraceQuery:
    """What is to be shown; see `api.trace` for the meaning of each."""

    run: str = ""
    rank: int | None = None
    ranks: frozenset[int] | None = None
    cycle: int | None = None
    source: str | None = None
    tracks: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """By source: indices of its tracks."""
    t0: int | None = None
    """Nanoseconds since 1970; likewise t1."""
    t1: int | None = None
    px: int = DEFAULT_PX
    row: int | None = None
    text: str | None = None
    only_instants: bool = False


def parse_trace_query(args: Mapping[str, str]) -> TraceQuery:
    """Check the parameters of a request.

    Raises:
        BadRequestError: one of them means nothing; names it.
    """
    t0, t1 = _time(args, "t0"), _time(args, "t1")
    if t0 is not None and t1 is not None and t1 < t0:
        t0, t1 = t1, t0
    return TraceQuery(
        run=text_of(args, "run") or "",
        rank=integer_of(args, "rank", _MAX_RANK),
        ranks=_ranks(args),
        cycle=integer_of(args, "cycle", _MAX_ROW),
        source=_source(args),
        tracks=_tracks(args),
        t0=t0,
        t1=t1,
        px=pixels_of(args, "px", DEFAULT_PX),
        row=integer_of(args, "row", _MAX_ROW),
        text=text_of(args, "text"),
        only_instants=word_of(args, "only", ("instants",)) is not None,
    )


def _time(args: Mapping[str, str], name: str) -> int | None:
    text = args.get(name) or None
    if text is None:
        return None
    if not (text.isascii() and _TIME.fullmatch(text)):
        raise bad(name, text, "whole nanoseconds")
    return max(-_MOST_NS, min(int(text), _MOST_NS))


def _source(args: Mapping[str, str]) -> str | None:
    text = text_of(args, "source")
    if text is not None and not _ID.fullmatch(text):
        raise bad("source", text, "the id of a trace")
    return text


def _ranks(args: Mapping[str, str]) -> frozenset[int] | None:
    text = text_of(args, "ranks")
    if text is None:
        return None
    return frozenset(_numbers("ranks", text, _MAX_RANK))


def _tracks(args: Mapping[str, str]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """`ab12:0-4,7;cd34:1`."""
    text = text_of(args, "tracks")
    found = []
    for part in filter(None, (text or "").split(";")):
        name, _, rows = part.partition(":")
        if not _ID.fullmatch(name):
            raise bad("tracks", part, "like id:0-4,7;id:1")
        found.append((name, tuple(_numbers("tracks", rows, _MAX_INDEX))))
    if sum(len(rows) for _, rows in found) > MAX_TRACKS:
        raise bad("tracks", text or "", f"at most {MAX_TRACKS} tracks")
    return tuple(found)


def _numbers(name: str, text: str, most: int) -> list[int]:
    found: list[int] = []
    for part in filter(None, text.split(",")):
        match = _SPAN.fullmatch(part.strip()) if part.isascii() else None
        if match is None:
            raise bad(name, text, "numbers like 0-4,7")
        low = int(match[1])
        high = int(match[2] or low)
        if high < low or high > most or high - low > MAX_TRACKS * 16:
            raise bad(name, text, "numbers like 0-4,7")
        found += range(low, high + 1)
        if len(found) > MAX_TRACKS * 16:
            raise bad(name, text, "fewer numbers")
    return found
