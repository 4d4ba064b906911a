"""What the page says about the kind `modules`."""

from __future__ import annotations

from typing import Final

from collector.sources.contract import SourceInfo

INFO: Final = SourceInfo(
    name="modules", cost="about 6 us per operator, in collected calls only"
)
