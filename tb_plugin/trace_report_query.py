"""Parameters of the routes about reports of traces, checked once."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tb_plugin.parameters import bad, text_of
from tb_plugin.query import RankSet, parse_query

if TYPE_CHECKING:
    from collections.abc import Mapping

_ID: Final = re.compile(r"\d{1,9}-[A-Za-z0-9_-]{1,80}-\d{1,19}")


@dataclass(frozen=True, slots=True)
class ReportQuery:
    """What is to be shown; see `api.trace_reports`."""

    run: str
    rank: int | None
    ranks: RankSet | None
    report: str | None
    device: str | None
    x0: float | None
    """Microseconds since the trace began; likewise x1."""
    x1: float | None
    px: int


def parse_report_query(args: Mapping[str, str]) -> ReportQuery:
    """Check the parameters of a request.

    Raises:
        BadRequestError: one of them means nothing; names it.
    """
    common = parse_query(args)
    report = text_of(args, "report")
    if report is not None and not _ID.fullmatch(report):
        raise bad("report", report, "the id of a report")
    return ReportQuery(
        run=common.run,
        rank=common.rank,
        ranks=common.ranks,
        report=report,
        device=text_of(args, "device"),
        x0=common.x0,
        x1=common.x1,
        px=common.px,
    )
