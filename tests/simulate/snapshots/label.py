"""The truth about a simulated out-of-memory error, and whether it is unambiguous."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

OomCause: TypeAlias = Literal[
    "really_full",
    "fragmented",
    "growth",
    "single_giant",
    "imbalance",
    "non_torch",
    "fitting_block_free",
]
OOM_CAUSES: Final[tuple[OomCause, ...]] = get_args(OomCause)


@dataclass(frozen=True, slots=True, kw_only=True)
class OomLabel:
    """The truth about one case, in bytes, at the moment of the error."""

    cause: OomCause
    also: tuple[OomCause, ...]
    """Planted beside it, with less than half of its bytes."""
    rank: int
    num_steps: int
    """Steps begun; the error came in the last one, or right behind it."""
    requested_bytes: int
    """After rounding, as the oom event shows it."""
    site: str
    """What asked for it, in the words of `snapshot_stacks`."""
    device_total_bytes: int
    device_free_bytes: int
    non_torch_bytes: int
    """Of them `context_bytes` were there from the start on every rank."""
    context_bytes: int
    reserved_bytes: int
    allocated_bytes: int
    active_bytes: int
    same_free_bytes: int
    """Free blocks of the request's pool and stream, all together."""
    same_largest_bytes: int
    other_largest_bytes: int
    """Largest free block of other streams and pools."""
    largest_earlier_bytes: int
    """Largest request that was served before."""
    peers_peak_bytes: tuple[int, ...]
    """Most active bytes of the other ranks so far."""
    planted_bytes: Mapping[str, int]
    """What each planted cause took."""
    holders: Mapping[str, int]
    """Live bytes, as requested, by what allocated them; largest first."""
    unwound: bool
    """The snapshot was taken after the exception had freed what the step held."""


def is_clear(label: OomLabel) -> bool:
    """Whether the state at the error shows the cause it was given, and no other."""
    return all(
        shows(label) if cause == label.cause else not hints(label)
        for cause, (shows, hints) in _SIGNS.items()
    )


def _takes(label: OomLabel, cause: str, share: float) -> bool:
    return label.planted_bytes.get(cause, 0) >= share * label.device_total_bytes


def _above_peers(label: OomLabel, factor: float) -> bool:
    peers = label.peers_peak_bytes
    return bool(peers) and label.active_bytes >= factor * float(np.median(peers))


_Sign: TypeAlias = "Callable[[OomLabel], bool]"

# By cause: what must hold where it is the cause, and what must not where it is not.
_SIGNS: Final[Mapping[str, tuple[_Sign, _Sign]]] = {
    "really_full": (
        lambda one: one.active_bytes >= 0.85 * one.device_total_bytes,
        lambda _: False,
    ),
    "growth": (
        lambda one: _takes(one, "growth", 0.12),
        lambda one: _takes(one, "growth", 0.07),
    ),
    "non_torch": (
        lambda one: _takes(one, "non_torch", 0.15),
        lambda one: _takes(one, "non_torch", 0.07),
    ),
    "fragmented": (
        lambda one: one.same_free_bytes >= 1.3 * one.requested_bytes,
        lambda one: one.same_free_bytes >= 0.7 * one.requested_bytes,
    ),
    "fitting_block_free": (
        lambda one: one.other_largest_bytes >= 1.1 * one.requested_bytes,
        lambda one: one.other_largest_bytes >= 0.7 * one.requested_bytes,
    ),
    "single_giant": (
        lambda one: one.requested_bytes >= 3 * one.largest_earlier_bytes,
        lambda one: one.requested_bytes >= 1.8 * one.largest_earlier_bytes,
    ),
    "imbalance": (
        lambda one: _above_peers(one, 1.25),
        lambda one: _above_peers(one, 1.15),
    ),
}
