"""Causes where nothing was taken: the room was used up, or nothing tells why."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from memboard.collector.format.sizes import agreeing, capitalized
from memboard.tb_plugin.analysis.findings.conditions import advice_if, advice_of
from memboard.tb_plugin.analysis.findings.text import lines_text, share_text, size_text
from memboard.tb_plugin.analysis.oom.case import Suspect
from memboard.tb_plugin.analysis.oom.live_advice import holding_advice, live_advice

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from memboard.tb_plugin.analysis.oom.case import Case, OomFacts
    from memboard.tb_plugin.analysis.oom.holders import Holder
    from memboard.tb_plugin.api.findings import Advice

FULL: Final = 0.8
FULL_WITH: Final = 0.85
MOSTLY: Final = 0.5
"""Least live share: below it, the request itself is the larger part."""


def is_full(facts: OomFacts) -> bool:
    """Whether what is live fills what torch could have, or would with the request."""
    share, wanted = full_share(facts), wanted_share(facts)
    if share is None:
        return False
    fills_it = wanted is not None and wanted >= FULL_WITH and share >= MOSTLY
    return share >= FULL or fills_it


def knows_total(facts: OomFacts) -> bool:
    """Whether the device's size, or a limit, was recorded, or a common card has as much."""
    if facts.capacity_bytes is not None or facts.limit_bytes is not None:
        return True
    return facts.room_bytes is not None and likely_card(facts.room_bytes) is not None


def full_share(facts: OomFacts) -> float | None:
    """Live memory as a share of what torch could have."""
    room, live_bytes = facts.room_bytes, facts.held_bytes
    return None if not room or live_bytes is None else live_bytes / room


def wanted_share(facts: OomFacts) -> float | None:
    """Live memory and the request as a share of what torch could have."""
    share, asked = full_share(facts), facts.requested_bytes
    if share is None or asked is None or not facts.room_bytes:
        return None
    return share + asked / facts.room_bytes


def really_full(case: Case) -> Suspect:
    """Live memory takes the room, or would take it with the request."""
    return Suspect(
        "really_full",
        0,
        is_major=False,
        why=_with_holders(case, _full_text(case.facts)),
        rule=f"live memory takes {share_text(FULL)} of the memory available to torch,"
        f" or {share_text(FULL_WITH)} with the request, and no other cause is major",
        decisive=("held", "full"),
        advice=(*live_advice(case), *_longer(case), *_smaller(case)),
    )


def _full_text(facts: OomFacts) -> str:
    live_bytes, share, room = facts.held_bytes, full_share(facts), facts.room_bytes
    if live_bytes is None or share is None or room is None:
        return "live memory filled the device."
    wanted, asked = wanted_share(facts), facts.requested_bytes
    is_known = facts.capacity_bytes is not None or facts.limit_bytes is not None
    if_all = "" if is_known else "the device was full, if this was all of its memory; "
    card = "" if is_known else f" (a guess: a card of {likely_card(room)} GB)"
    if share < FULL and wanted is not None and asked is not None:
        # Live memory alone does not fill it: the request is part of what does.
        return (
            f"{if_all}{size_text(live_bytes)} was live, and with this request it would be"
            f" {size_text(live_bytes + asked)}, {share_text(wanted)} of the {size_text(room)}"
            f" available to torch{card}; the step needs more memory than is available"
            f" in blocks of that size."
        )
    of = share_text(min(share, 1.0))
    if is_known:
        return (
            f"the device was full, {size_text(live_bytes)} was live, {of} of the memory"
            f" available to torch."
        )
    return (
        f"{if_all}{size_text(live_bytes)} was live, {of} of the {size_text(room)} that torch"
        f" had or could get{card}."
    )


def _smaller(case: Case) -> Iterator[Advice]:
    """A smaller step, where the request is of one."""
    if case.makes_model:
        return
    missing = case.facts.missing_bytes
    least = f"; at least {size_text(missing)} was missing" if missing else ""
    because = ("requested", "device_free")
    yield from advice_if(
        not case.trains,
        f"Use a smaller batch or shorter sequences{least}.",
        None,
        *because,
    )
    yield from advice_if(
        case.trains is True and case.asked_in != "optimizer",
        f"Use a smaller batch with gradient accumulation, or shorter sequences{least}.",
        None,
        *because,
    )
    yield from advice_if(
        case.facts.capacity_bytes is None and knows_total(case.facts),
        f"Check whether other processes use the device ({case.setup.device_tool}): its size"
        " was not recorded, so they may hold part of it.",
        None,
        "full",
    )


LONGER: Final = 1.25
"""Of the largest request of the same stack: lengths vary by less in most batches."""


def _longer(case: Case) -> Iterator[Advice]:
    """Where the line of the failed request never requested as much: the batch is the unusual thing."""
    asked, before = case.facts.requested_bytes, case.facts.largest_here_bytes
    if asked is None or not before or asked < LONGER * before:
        return
    where = f" at {case.asked_at}" if case.asked_at else ""
    yield advice_of(
        f"This batch is longer or larger than those before it: the request{where} is"
        f" {asked / before:,.1f} times the largest earlier one of the same call."
        " Limit the length of sequences, or group batches by their number of tokens.",
        float(asked - before),
        "requested",
    )


def process_limit(case: Case) -> Suspect:
    """The device had enough free: the recorded limit on this process refused it."""
    facts, limited_by = case.facts, case.setup.limited_by
    live_bytes, room, free = facts.held_bytes, facts.room_bytes, facts.device_free_bytes
    why = f"it would have exceeded the limit on this process ({limited_by})."
    fraction = case.setup.memory_fraction
    if facts.limit_bytes is None and fraction is not None:
        # Of a device whose size is not known.
        why = f"this process may take {share_text(fraction)} of the device ({limited_by})."
        if live_bytes is not None:
            why = f"{why[:-1]}; {size_text(live_bytes)} was live."
    elif live_bytes is not None and room is not None:
        why = f"{size_text(live_bytes)} was live of the {size_text(room)} it may allocate."
    had = "The device had free memory: raise" if facts.has_room else "Raise"
    raised = advice_of(
        f"{had} the limit on this process ({limited_by}), or remove it.",
        free,
        "device_free",
        "limit",
    )
    return Suspect(
        "process_limit",
        0,
        is_major=False,
        why=_with_holders(case, why),
        rule="the device had enough free, the recorded limit had not, and no other cause is"
        " major",
        decisive=("device_free", "limit", "held"),
        advice=(raised, *live_advice(case)),
        beside=(raised,),
    )


def refused(case: Case) -> Suspect:
    """The device had enough free, and nothing that was recorded refused the request."""
    live_bytes, reserved = case.facts.held_bytes, case.facts.reserved_bytes
    if _exceeds_fraction(case):
        return process_limit(case)
    why = "why it was refused was not recorded"
    if live_bytes is not None and reserved is not None:
        why += (
            f"; {size_text(live_bytes)} was live of the {size_text(reserved)} reserved"
        )
    return Suspect(
        "unsure",
        0,
        is_major=False,
        why=f"{why}.",
        rule="the device had enough free, and no limit of this process was recorded that"
        " the request would have exceeded",
        decisive=("device_free", "requested"),
        advice=(
            advice_of(
                "Look for what is known to refuse a request that the device has room for:"
                " a memory fraction that the program or a library sets"
                " (torch.cuda.set_per_process_memory_fraction; the error's text then says"
                ' "allowed"); a limit of the driver or of the system, such as the number of'
                " mappings (vm.max_map_count) where there are very many segments; other"
                " processes that held the memory and have ended since.",
                None,
                "device_free",
            ),
        ),
    )


def _exceeds_fraction(case: Case) -> bool:
    """Whether a recorded fraction of a device of unknown size may refuse the request."""
    facts, fraction = case.facts, case.setup.memory_fraction
    reserved, needed, room = facts.reserved_bytes, facts.segment_bytes, facts.room_bytes
    if facts.limit_bytes is not None or fraction is None:
        return False
    if reserved is None or needed is None or room is None:
        return False
    # The device has no less than what is reserved and free.
    return reserved + needed > fraction * room


def unknown_total(case: Case) -> Suspect:
    """Live memory takes all that could be had, and that is the size of no known card."""
    live_bytes, share = case.facts.held_bytes, full_share(case.facts)
    room = case.facts.room_bytes
    why = "the cause is not known."
    if live_bytes is not None and share is not None and room is not None:
        why = (
            f"the cause is not known: {size_text(live_bytes)} was live,"
            f" {share_text(min(share, 1.0))} of the {size_text(room)} that torch had or"
            " could get, and no common card has that size."
        )
    return Suspect(
        "unsure",
        0,
        is_major=False,
        why=why,
        rule=f"live memory takes {share_text(FULL)} of the memory available to torch,"
        f" or {share_text(FULL_WITH)} with the request; the device's size was not"
        " recorded, and no common card has as much",
        decisive=("held", "full"),
        advice=(
            advice_of(
                f"Check what else uses the device ({case.setup.device_tool}), and give its"
                " size with --capacity: that settles whether it was full.",
                None,
                "full",
            ),
            *live_advice(case),
            *_longer(case),
            *_smaller(case),
        ),
    )


def unsure(case: Case) -> Suspect:
    """Nothing that is known says why."""
    share = full_share(case.facts)
    why = "the recording does not show why."
    if share is not None:
        why = (
            f"only {share_text(share)} of the memory available to torch was live, and"
            " the recording does not show why the request failed."
        )
    record = advice_if(
        case.setup.can_keep_stacks,
        "Record the allocator's history: it shows free blocks, growth and which lines"
        " hold memory.",
        None,
    )
    return Suspect(
        "unsure",
        0,
        is_major=False,
        why=why,
        rule="no other rule applies, and the device was not full",
        advice=(*holding_advice(case), *record),
    )


MOST: Final = 0.9
"""The lines that are named hold this share of what was live, where five can."""
MAX_LINES: Final = 5
_NUMBERS: Final = ("no", "one", "two", "three", "four", "five")


def _with_holders(case: Case, why: str) -> str:
    """Where the cause is what was live: also how few lines hold most of it."""
    who = _who(case)
    if not who:
        return why
    base = size_text(case.live_bytes or 0)
    if case.shares_are_of != "live" or f"{base} was live" not in why:
        return f"{why.removesuffix('.')}; {who}."
    briefly = re.sub(r" of the .* that was live", " of that", who)
    return f"{why.removesuffix('.')}; {briefly}."


def held_text(case: Case) -> str:
    """What held the memory: the fewest lines that hold most of it."""
    who = _who(case)
    if not who:
        return ""
    lines = lines_text([holder.label for holder in _named(case.holders)])
    return f"{capitalized(who)}: {lines}."


def _named(holders: Sequence[Holder]) -> list[Holder]:
    share, named = 0.0, []
    for holder in [holder for holder in holders if holder.label][:MAX_LINES]:
        named.append(holder)
        share += holder.share
        if share >= MOST:
            break
    return named


def _who(case: Case) -> str:
    """`94.7 % of the 78.3 GiB that was live came from four source lines`."""
    named = _named(case.holders)
    if not named or not case.live_bytes:
        return ""
    lines = (
        f"{_NUMBERS[len(named)]} {agreeing(len(named), 'source line', 'source lines')}"
    )
    share = share_text(sum(holder.share for holder in named))
    base = f"{size_text(case.live_bytes)} that was {case.shares_are_of}"
    return f"{share} of the {base} came from {lines}"


_CARDS: Final = (
    (6, 5.6, 6.0),
    (8, 7.5, 8.0),
    (10, 9.5, 10.0),
    (11, 10.5, 11.0),
    (12, 11.5, 12.0),
    (16, 14.5, 16.0),
    (20, 19.4, 20.0),
    (24, 21.9, 24.0),
    (32, 31.3, 32.0),
    (40, 39.3, 40.0),
    (48, 44.3, 48.0),
    (64, 63.0, 64.0),
    (80, 79.0, 80.0),
    (96, 93.0, 96.0),
    (141, 139.5, 141.0),
    (192, 177.0, 192.0),
    (288, 267.0, 288.0),
)
"""Nominal GB, and GiB from and to which such cards report."""
_MAX_BESIDE: Final = 2.5
"""GiB that contexts and communicators of one process take at most, roughly."""


def likely_card(room_bytes: float) -> int | None:
    """Nominal GB of the card that this much room suggests; None: of none.

    CUDA reports a little less than the nominal size, and a context takes part of that.
    """
    room = room_bytes / (1 << 30)
    for nominal, least, most in _CARDS:
        if least - min(_MAX_BESIDE, 0.05 * least) <= room <= most:
            return nominal
    return None
