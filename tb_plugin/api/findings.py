"""Response about findings: what is wrong with a run, why, and what to try."""

from __future__ import annotations

from msgspec import Struct

from tb_plugin.analysis.findings.finding import Finding
from tb_plugin.api.base import Problem, RunSummary


class FindingsResponse(Struct, frozen=True):
    """Route `/findings` (run, rank): all that was found, the worst first.

    Of out-of-memory errors the one that ended a rank comes first, of several ranks the
    earliest; errors that a program survived follow, and other ends last.
    """

    run: RunSummary
    findings: tuple[Finding, ...]
    """At most 20 of them are out-of-memory errors."""
    num_errors: int
    """All out-of-memory errors that are known."""
    still_reading: bool
    """Histories are being read: ask again."""
    problems: tuple[Problem, ...]
    """Histories that could not be read."""
