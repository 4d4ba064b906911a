"""The parameters of the routes about profiled traces, checked once."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, get_args

from tb_plugin import api
from tb_plugin.parameters import bad, integer_of, pixels_of, text_of, word_of

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_TOP: Final = 500
MAX_TOP: Final = 2_000
_DEFAULT_ROWS: Final = 800
_DEFAULT_PX: Final = 1_200
_MAX_NUMBER: Final = 10**12
_ID: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_DEVICE: Final = re.compile(r"(-?\d{1,19}):(-?\d{1,19})")
"""As traces number them, which is any way at all."""
_COLUMN: Final = re.compile(r"-?[a-z_]{1,40}")
"""A column to sort by, the largest first; with a minus the smallest."""
_RANKS: Final = re.compile(r"\d{1,7}(?:-\d{1,7})?(?:,\d{1,7}(?:-\d{1,7})?)*")


@dataclass(frozen=True, slots=True)
class ProfileQuery:
    """What is to be shown; see `api.profile`, `api.operators` and `api.distributed`."""

    run: str = ""
    source: str | None = None
    rank: int | None = None
    """Whose newest trace is shown where no source is named."""
    by: str | None = None
    sort: str | None = None
    text: str | None = None
    top: int = DEFAULT_TOP
    name: str | None = None
    shapes: str | None = None
    device: tuple[int, int] | None = None
    """Device type and index."""
    charge: api.OperatorCharge = "allocating"
    t0: float | None = None
    """Milliseconds since the trace's start; likewise t1."""
    t1: float | None = None
    px: int = _DEFAULT_PX
    cycle: int | None = None
    step: int | None = None
    x0: float | None = None
    """Step, likewise x1: what of the heatmap is shown."""
    x1: float | None = None
    rows: int = _DEFAULT_ROWS
    """Height in pixels of the heatmap."""
    part: api.DistributedPart = "communication"
    ranks: tuple[tuple[int, int], ...] | None = None
    """Ranges of ranks, ends included."""

    def has_rank(self, rank: int) -> bool:
        """Whether a rank is asked for."""
        return self.ranks is None or any(
            first <= rank <= last for first, last in self.ranks
        )


def parse_profile_query(args: Mapping[str, str]) -> ProfileQuery:
    """Check the parameters of a request.

    Raises:
        BadRequestError: one of them means nothing; names it.
    """
    t0, t1 = _range(args, "t0", "t1", "a number of milliseconds")
    x0, x1 = _range(args, "x0", "x1", "a step")
    part = word_of(args, "part", get_args(api.DistributedPart))
    charge = word_of(args, "charge", get_args(api.OperatorCharge))
    return ProfileQuery(
        run=text_of(args, "run") or "",
        source=_matching(args, "source", _ID, "the id of a trace"),
        rank=integer_of(args, "rank", _MAX_NUMBER),
        by=word_of(args, "by", ("name", "shapes", "properties")),
        sort=_matching(args, "sort", _COLUMN, "the name of a column"),
        text=text_of(args, "text"),
        top=max(1, integer_of(args, "top", MAX_TOP) or DEFAULT_TOP),
        name=text_of(args, "name"),
        shapes=text_of(args, "shapes"),
        device=_device(args),
        charge=charge or "allocating",  # type: ignore[arg-type]
        t0=t0,
        t1=t1,
        px=pixels_of(args, "px", _DEFAULT_PX),
        cycle=integer_of(args, "cycle", _MAX_NUMBER),
        step=integer_of(args, "step", _MAX_NUMBER),
        x0=x0,
        x1=x1,
        rows=pixels_of(args, "rows", _DEFAULT_ROWS),
        part=part or "communication",  # type: ignore[arg-type]
        ranks=_ranks(args),
    )


def _matching(
    args: Mapping[str, str], name: str, pattern: re.Pattern[str], expected: str
) -> str | None:
    text = text_of(args, name)
    if text is not None and not pattern.fullmatch(text):
        raise bad(name, text, expected)
    return text


def _device(args: Mapping[str, str]) -> tuple[int, int] | None:
    text = text_of(args, "device")
    if text is None:
        return None
    found = _DEVICE.fullmatch(text) if text.isascii() else None
    if found is None:
        raise bad("device", text, "a device as `type:index`")
    return int(found[1]), int(found[2])


def _range(
    args: Mapping[str, str], low: str, high: str, expected: str
) -> tuple[float | None, float | None]:
    """Two numbers, either of which may be missing, the lower one first."""
    first, last = _number(args, low, expected), _number(args, high, expected)
    if first is not None and last is not None and last < first:
        return last, first
    return first, last


def _number(args: Mapping[str, str], name: str, expected: str) -> float | None:
    text = text_of(args, name)
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        raise bad(name, text, expected) from None
    if not math.isfinite(value) or abs(value) > _MAX_NUMBER:
        raise bad(name, text, expected)
    return value


def _ranks(args: Mapping[str, str]) -> tuple[tuple[int, int], ...] | None:
    text = text_of(args, "ranks")
    if text is None:
        return None
    plain = text.replace(" ", "")
    if not (plain.isascii() and _RANKS.fullmatch(plain)):
        raise bad("ranks", text, "ranks as in `0-7,64`")
    found = []
    for part in plain.split(","):
        first, _, last = part.partition("-")
        ends = int(first), int(last or first)
        found.append((min(ends), max(ends)))
    return tuple(found)
