"""Files dropped onto the page."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class DropResponse(Struct, frozen=True):
    """Route `/drop` (POST; name): where a dropped file can be looked at now."""

    run: str
    """RunSummary.id of the run that dropped files make."""
    view: Literal["blocks", "trace"]
    """The page that shows it."""
    history: str
    """Names the file's allocator history in requests; empty for a trace."""
    name: str
    """As it was given, made fit to be shown; may hold any text."""
    rank: int | None
