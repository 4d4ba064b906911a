"""Frames and stacks that requests come from, each kept once, by number."""

from __future__ import annotations

from typing import NamedTuple

from tests.simulate.allocator.blocks import NO_SITE

NO_COMPILE_CONTEXT = "N/A"
"""As torch writes it outside `torch.compile`."""


class Frame(NamedTuple):
    """One line of a stack. C++ frames without debug information have line 0."""

    name: str
    filename: str
    line: int


class Site(NamedTuple):
    """What an entry of a history says of its origin."""

    frames: tuple[Frame, ...]
    """Innermost first."""
    user_metadata: str = ""
    """As set by `_set_memory_metadata`."""
    compile_context: str = NO_COMPILE_CONTEXT


class Sites:
    """Numbers sites; equal ones have one number."""

    def __init__(self) -> None:
        self._numbers: dict[Site, int] = {}
        self._sites: list[Site] = []

    def number(self, site: Site) -> int:
        """The number to set as `History.site`."""
        found = self._numbers.get(site)
        if found is None:
            found = self._numbers[site] = len(self._sites)
            self._sites.append(site)
        return found

    def __getitem__(self, number: int) -> Site:
        """The site of a number; without frames for `NO_SITE`."""
        return _NOWHERE if number == NO_SITE else self._sites[number]

    def __len__(self) -> int:
        """How many there are."""
        return len(self._sites)


_NOWHERE = Site(())
