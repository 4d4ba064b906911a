"""What others say of a mirror, and what it says of itself."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from collector.sources.contract import SourceInfo

Kind: TypeAlias = Literal["events", "traces", "snapshots", "dumps", "merged"]

REMOTE: Final = SourceInfo(
    name="remote", cost="uploads on threads of their own; some microseconds per file"
)
"""What the page says about a mirror that was asked for."""
