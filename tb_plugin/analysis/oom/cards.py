"""Sizes of cards, to guess one from what torch had and could have had.

CUDA reports a little less than a card's nominal size, and a context takes part of that.
"""

from __future__ import annotations

from typing import Final

GIB: Final = 1 << 30

CARDS: Final = (
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

MAX_BESIDE: Final = 2.5
"""GiB that contexts and communicators of one process take at most, roughly."""


def likely_card(room_bytes: float) -> int | None:
    """Nominal GB of the card that this much room suggests; None: of none."""
    room = room_bytes / GIB
    for nominal, least, most in CARDS:
        # What is reserved and free is the card's size less what is beside torch.
        if least - min(MAX_BESIDE, 0.05 * least) <= room <= most:
            return nominal
    return None
