"""A verdict in words: one sentence of why, and one of who held the memory.

Sizes are in the unit that fits, to three significant digits, as on the page.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tb_plugin.analysis.verdict import (
    above_peers_bytes,
    excess_non_torch_bytes,
    full_share,
    median_peer_bytes,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tb_plugin import api
    from tb_plugin.analysis.oom import OomFacts, Place
    from tb_plugin.analysis.verdict import Cause

CAUSE_WORDS: Final[dict[Cause, str]] = {
    "really_full": "really full",
    "fragmented": "fragmented",
    "growth": "memory grew from step to step",
    "single_giant": "a single giant request",
    "imbalance": "this rank holds more than the others",
    "non_torch": "memory outside torch",
    "fitting_block_free": "a fitting block was free",
    "unsure": "unsure",
}

MOST: Final = 0.9
"""The lines that are named hold this share of what was live, where five can."""
MAX_LINES: Final = 5

_LABEL: Final = re.compile(r"(.+):(\d+) (\S.*)")
"""A line as `analysis.frames` writes it."""

_NUMBERS: Final = ("no", "one", "two", "three", "four", "five", "six")


def size_words(num_bytes: float) -> str:
    """A size in the unit that fits: `78.3 GiB`, `512 B`."""
    size = abs(num_bytes)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if size < 999.5 or unit == "TiB":
            break
        size /= 1024
    digits = 0 if unit == "B" else max(0, 3 - len(str(int(size))))
    # Halves go up, as on the page.
    return f"{'-' if num_bytes < 0 else ''}{size + 1e-9:.{digits}f} {unit}"


def share_words(share: float) -> str:
    """A share in per cent: `94.8 %`; never 100 where something is missing."""
    pct = 100 * share
    if 99.95 <= pct < 100:
        return "99.9 %"
    return f"{pct:.0f} %" if pct >= 99.95 else f"{pct:.1f} %"


def sentence_of(
    facts: OomFacts,
    cause: Cause,
    holders: Sequence[api.VerdictHolder] = (),
    live_bytes: float | None = None,
) -> str:
    """Why, in one sentence: what was asked, what was free, the cause.

    Where the cause is what was live, also who held that.
    """
    asked, told = _asked(facts), _WHY[cause](facts)
    if cause == "really_full" and (who := _who(holders, live_bytes)):
        told = f"{told.removesuffix('.')}; {_briefly(who)}."
    return asked + told if asked else told[0].upper() + told[1:]


def ended_sentence_of(facts: OomFacts, message: str) -> str:
    """What was held when a process ended otherwise; `message`: how it ended."""
    held, share = facts.held_bytes, full_share(facts)
    how = message.strip().splitlines()[0][:200] if message.strip() else "not known how"
    words = f"The process ended ({how})"
    if held is None:
        return f"{words}; how much memory it held was not recorded."
    of = ""
    if share is not None and facts.room_bytes is not None:
        of = f" of the {size_words(facts.room_bytes)} that torch could have"
    return f"{words} while {size_words(held)} were live{of}."


def _briefly(who: str) -> str:
    """Behind a sentence that has said how much was live."""
    return re.sub(r" of the .* that were live", " of that", who)


def held_sentence_of(
    holders: Sequence[api.VerdictHolder], live_bytes: float | None
) -> str:
    """Who held the memory: the fewest lines that hold most of it."""
    named = _named(holders)
    who = _who(holders, live_bytes)
    if not who:
        return ""
    return f"{who[0].upper()}{who[1:]}: {lines_words([one.label for one in named])}."


def _named(holders: Sequence[api.VerdictHolder]) -> list[api.VerdictHolder]:
    """The lines that are named."""
    share, named = 0.0, []
    for holder in [holder for holder in holders if holder.label][:MAX_LINES]:
        named.append(holder)
        share += holder.share
        if share >= MOST:
            break
    return named


def _who(holders: Sequence[api.VerdictHolder], live_bytes: float | None) -> str:
    """`94.7 % of the 78.3 GiB that were live came from four source lines`."""
    named = _named(holders)
    if not named or not live_bytes:
        return ""
    count = len(named)
    number = _NUMBERS[count] if count < len(_NUMBERS) else str(count)
    lines = f"{number} source line{'' if count == 1 else 's'}"
    share = share_words(sum(one.share for one in named))
    return f"{share} of the {size_words(live_bytes)} that were live came from {lines}"


def _asked(facts: OomFacts) -> str:
    asked, free = facts.requested_bytes, facts.device_free_bytes
    if asked is None:
        return ""
    words = f"{size_words(asked)} was asked for"
    if free is not None:
        words += f" and {size_words(free)} was free on the device"
    return f"{words}: "


def _really_full(facts: OomFacts) -> str:
    held, share = facts.held_bytes, full_share(facts)
    if held is None or share is None:
        return "what was live filled the device."
    return (
        f"it was really full, {size_words(held)} were live,"
        f" {share_words(min(share, 1.0))} of what torch could have."
    )


def _fragmented(facts: OomFacts) -> str:
    free = facts.free
    if free is None:
        unused = (facts.reserved_bytes or 0) - (facts.held_bytes or 0)
        return (
            f"{size_words(unused)} was reserved and not in use, in pieces that did not"
            " fit or belonged elsewhere."
        )
    pieces = f"{free.num_blocks:,} piece{'' if free.num_blocks == 1 else 's'}"
    return (
        f"the memory was fragmented, {size_words(free.num_bytes)} was free in {pieces},"
        f" the largest {size_words(free.largest_bytes)}."
    )


def _growth(facts: OomFacts) -> str:
    growth = facts.growth
    if growth is None:
        return "memory grew from step to step."
    what = f"{size_words(growth.num_bytes)} was kept from earlier {rounds_words(facts)}"
    by = f" by {lines_words(growth.lines)}" if growth.lines else ""
    rate = f"{size_words(growth.bytes_per_round)} more in each"
    return f"{what}{by}, {rate}."


def rounds_words(facts: OomFacts) -> str:
    """What memory grew over: `steps`, or `rounds` where nothing says what they are."""
    by_memory = facts.growth is not None and facts.growth.by == "memory"
    return "rounds" if by_memory else "steps"


def _single_giant(facts: OomFacts) -> str:
    before, held = facts.largest_before_bytes, facts.held_bytes
    words = "this one request is the cause"
    if before:
        times = (facts.requested_bytes or 0) / before
        words += f", {times:,.1f} times the largest before it ({size_words(before)})"
    if held is not None and facts.room_bytes:
        words += f"; {size_words(held)} was live"
    return words + "."


def _imbalance(facts: OomFacts) -> str:
    above, median = above_peers_bytes(facts), median_peer_bytes(facts)
    if above is None or median is None:
        return "this rank holds much more than the others."
    return (
        f"this rank held {size_words(above)} more than the median peak of its"
        f" {_peers(len(facts.peers_peak_bytes))}, {size_words(median)}."
    )


def _peers(count: int) -> str:
    return "one peer" if count == 1 else f"{count:,} peers"


def _non_torch(facts: OomFacts) -> str:
    used, beyond = facts.non_torch_bytes, excess_non_torch_bytes(facts)
    if used is not None and facts.capacity_bytes is not None:
        return (
            f"{size_words(used)} of the device's {size_words(facts.capacity_bytes)}"
            " was used outside torch's allocator."
        )
    if beyond is not None:
        return (
            f"at least {size_words(beyond)} that torch had reserved before was taken"
            " by something else."
        )
    return "memory outside torch's allocator took the room."


def _fitting(facts: OomFacts) -> str:
    elsewhere = facts.elsewhere
    if elsewhere is None:
        return "a free block would have fitted, where the request may not take it."
    return (
        f"a free block of {size_words(elsewhere.largest_bytes)} would have fitted, but"
        f" {_KEPT[elsewhere.place]}."
    )


_KEPT: Final[dict[Place, str]] = {
    "stream": "belongs to another stream",
    "pool": "belongs to another memory pool",
    "split": "is kept whole by max_split_size_mb",
}


def _unsure(facts: OomFacts) -> str:
    share = full_share(facts)
    if share is None:
        return "what was recorded does not tell why that failed."
    return (
        f"only {share_words(share)} of what torch could have was live, and nothing that"
        " was recorded tells why the request failed."
    )


_WHY: Final = {
    "really_full": _really_full,
    "fragmented": _fragmented,
    "growth": _growth,
    "single_giant": _single_giant,
    "imbalance": _imbalance,
    "non_torch": _non_torch,
    "fitting_block_free": _fitting,
    "unsure": _unsure,
}


def lines_words(labels: Sequence[str]) -> str:
    """Lines in short: those of one function together, in the order they come."""
    together: dict[tuple[str, str], list[str]] = {}
    for label in labels:
        match = _LABEL.fullmatch(label)
        key = (match[1], match[3]) if match else (label, "")
        together.setdefault(key, []).append(match[2] if match else "")
    words = []
    for (file, function), lines in together.items():
        if not function:
            words.append(file)
        elif len(lines) == 1:
            words.append(f"{file}:{lines[0]} {function}")
        else:
            words.append(f"{function} in {file}, lines {_joined(lines)}")
    return "; ".join(words) if len(words) != len(labels) else _joined(words)


def _joined(labels: Sequence[str]) -> str:
    if len(labels) < 2:
        return "".join(labels)
    return f"{', '.join(labels[:-1])} and {labels[-1]}"
