"""A verdict in words: one sentence of why, and one of who held the memory.

Sizes are in the unit that fits, to three significant digits, as on the page.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tb_plugin.analysis.oom.cards import likely_card
from tb_plugin.analysis.oom.verdict import (
    FULL,
    above_peers_bytes,
    excess_non_torch_bytes,
    full_share,
    median_peer_bytes,
    wanted_share,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tb_plugin import api
    from tb_plugin.analysis.oom.error import OomFacts, Place
    from tb_plugin.analysis.oom.verdict import Cause

CAUSE_WORDS: Final[dict[Cause, str]] = {
    "really_full": "really full",
    "fragmented": "fragmented",
    "growth": "memory retained across steps",
    "single_giant": "a single giant request",
    "imbalance": "this rank holds more than the others",
    "non_torch": "memory outside torch",
    "fitting_block_free": "a fitting block was free",
    "private_pools": "free memory belongs to private pools",
    "pending_free": "freed memory waited for another stream",
    "process_limit": "a limit on this process",
    "unsure": "unsure",
}

MOST: Final = 0.9
"""The lines that are named hold this share of what was live, where five can."""
MAX_LINES: Final = 5

GOES_ON: Final = 20
"""Allocations behind an error from which on a program has survived it: unwinding makes
none, and a handler few."""

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
    if cause in ("really_full", "process_limit") and (who := _who(holders, live_bytes)):
        told = f"{told.removesuffix('.')}; {_briefly(who)}."
    return asked + told if asked else told[0].upper() + told[1:]


def earlier_words(num_earlier: int, num_later: int) -> str:
    """How many errors the program survived before this one, and whether it went on."""
    words = ""
    if num_earlier == 1:
        words = " The program had survived one out-of-memory error before it."
    elif num_earlier:
        words = (
            f" The program had survived {num_earlier:,} out-of-memory errors before it."
        )
    if num_later >= GOES_ON:
        words += f" It went on after this one too: {num_later:,} allocations followed."
    return words


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
    """What failed; a limit that is in force comes first."""
    asked, free = facts.requested_bytes, facts.device_free_bytes
    if asked is None:
        return ""
    failed = f"n allocation of {size_words(asked)}"
    if free is None:
        return f"A{failed} failed: "
    if not facts.is_limited:
        return f"A{failed} failed with {size_words(free)} free on the device: "
    if facts.limit_bytes is None:
        return (
            f"A{failed} failed though the device had {size_words(free)} free, so a limit"
            f" on this process refused it ({_LIMIT}): "
        )
    return (
        f"A limit of {size_words(facts.limit_bytes)} on this process ({_LIMIT}) refused"
        f" a{failed}, though the device had {size_words(free)} free: "
    )


_LIMIT: Final = "torch.cuda.set_per_process_memory_fraction"


def _really_full(facts: OomFacts) -> str:
    held, share, room = facts.held_bytes, full_share(facts), facts.room_bytes
    if held is None or share is None or room is None:
        return "what was live filled the device."
    wanted = wanted_share(facts)
    if share < FULL and wanted is not None and facts.requested_bytes is not None:
        # Live memory alone does not fill it: the request is part of what does.
        return _full_with(facts, held + facts.requested_bytes, room, wanted)
    of = share_words(min(share, 1.0))
    if facts.capacity_bytes is not None or facts.limit_bytes is not None:
        return (
            f"it was really full, {size_words(held)} were live, {of} of what torch could"
            " have."
        )
    return (
        f"it was full, if this is all the device had; {size_words(held)} were live, {of}"
        f" of the {size_words(room)} that torch had or could get{_card(room)}."
    )


def _full_with(facts: OomFacts, wanted: int, room: int, share: float) -> str:
    """Where what was live and the request together did not fit."""
    held = size_words(facts.held_bytes or 0)
    is_known = facts.capacity_bytes is not None or facts.limit_bytes is not None
    full = "" if is_known else "it was full, if this is all the device had; "
    card = "" if is_known else _card(room)
    return (
        f"{full}{held} were live, and with this request it would be {size_words(wanted)},"
        f" {share_words(share)} of the {size_words(room)} that torch could have{card};"
        " the step needs more memory than there is in pieces of that size."
    )


def _card(room: int) -> str:
    """Which card that may be, as a guess; else what the rest may be."""
    card = likely_card(room)
    if card is None:
        return ", which is no common card's size: name the device's with --capacity"
    return f" (a guess: a card of {card} GB)"


def _process_limit(facts: OomFacts) -> str:
    held, room = facts.held_bytes, facts.room_bytes
    if held is None or room is None:
        return "what this process may take was used up."
    about = "" if facts.limit_bytes is not None else "about "
    return f"{size_words(held)} were live of the {about}{size_words(room)} it may take."


def _private_pools(facts: OomFacts) -> str:
    num = facts.num_private_pools
    pools = "one private memory pool" if num == 1 else f"{num:,} private memory pools"
    return (
        f"{size_words(facts.private_free_bytes or 0)} was free in {pools}, as CUDA graphs"
        " and torch.cuda.MemPool make them, and this request may not be served from"
        " there."
    )


def _pending_free(facts: OomFacts) -> str:
    pending = facts.pending
    size = size_words(facts.pending_bytes or 0)
    words = f"{size} had been freed, but was still pending and not to be reused yet"
    if pending is None:
        return (
            f"{words}: it waited for another stream that had used it (record_stream)."
        )
    streams = _joined([name for name, _ in pending.streams])
    lines = f" by {lines_words(pending.lines)}" if pending.lines else ""
    return (
        f"{words}, because its blocks, allocated on {streams}{lines}, waited for another"
        " stream that had used them (record_stream)."
    )


def _fragmented(facts: OomFacts) -> str:
    free = facts.free
    if free is None:
        return (
            f"{size_words(facts.unused_bytes or 0)} was reserved and not in use, in pieces that did not"
            " fit or belonged elsewhere."
        )
    pieces = f"{free.num_blocks:,} piece{'' if free.num_blocks == 1 else 's'}"
    return (
        f"the memory was fragmented, {size_words(free.num_bytes)} was free in {pieces},"
        f" the largest {size_words(free.largest_bytes)}."
    )


def _growth(facts: OomFacts) -> str:
    growth, rounds = facts.growth, rounds_words(facts)
    what = "what it allows" if facts.is_limited else "the GPU"
    words = f"memory retained across {rounds} filled {what}"
    if growth is None:
        return f"{words}."
    by = f" by {lines_words(growth.lines)}" if growth.lines else ""
    rate = f"{size_words(growth.bytes_per_round)} per {rounds.removesuffix('s')}"
    late = growth.late_bytes_per_round
    if late is not None and late > 0:
        rate += f", and {size_words(late)} in the last third of them"
    elif late is not None:
        rate += ", though no more in the last third of them"
    return f"{words}, {size_words(growth.num_bytes)}{by}, growing {rate}."


def rounds_words(facts: OomFacts) -> str:
    """What memory grew over: `steps`, or `rounds` where nothing marks them as steps."""
    unmarked = facts.growth is not None and facts.growth.by in ("stacks", "memory")
    return "rounds" if unmarked else "steps"


def _single_giant(facts: OomFacts) -> str:
    before, held = facts.largest_before_bytes, facts.held_bytes
    words = "this one allocation is the cause"
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
            f"at least {size_words(beyond)} that torch had reserved before was used by"
            " something else."
        )
    return "memory outside torch's allocator filled the device."


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
    "private_pools": _private_pools,
    "pending_free": _pending_free,
    "process_limit": _process_limit,
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
