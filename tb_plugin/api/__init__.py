"""The HTTP contract: one frozen dataclass per response, spoken by both ends.

Both ends ship together, so this contract lives one release only. It imports nothing
but the standard library; `tb_plugin/typescript.py` generates
`frontend/src/api/types.gen.ts` from its modules, and a test fails when the two differ.

On the wire a response is one binary body (`application/octet-stream`)::

    u32 LE  header length in bytes, padding included
    ...     UTF-8 JSON: {"api_version", "response": class name, "data": {...},
            "columns": [{"dtype", "offset", "length"}, ...]}, padded with spaces
    ...     columns, each starting at a multiple of 8 bytes counted from the body's
            start; `offset` counts from the body's start, `length` is in elements

A column stands in `data` as `{"$column": index}`. Numbers are little-endian. In f64
columns NaN means "not recorded": absence is never zero. Times are milliseconds since
the epoch; sizes are bytes (an f64 holds bytes exactly up to 9 PB).

Requests are GET with these parameters (all optional unless the route says so)::

    run     RunSummary.id, from our own index, never a path
    rank    one rank: narrows the view to it
    ranks   "0-7,64": the ranks to draw; absent means all
    pinned  "12,40": ranks drawn as lines even where bands are drawn
    series  SeriesInfo.key
    x       "step" | "relative" | "wall"
    x0, x1  visible range in units of x
    px      width in pixels the answer will be drawn on
    rows    height in pixels (heatmap)
    phase   name of the phase whose steps are drawn (default: the training phase)
    window  ModuleWindow.id
    module  a module's fqn
    state   ModuleState; call: which of a module's calls, from 0; device: by its name
    measure "total" | "own"
    against "state" | "window" | "rank" | "median": what is compared with, chosen by
            against_state, against_window, against_rank
    axis    "time" | "event" (module timeline)
    function, iteration, attempt  one collected call (with phase and rank)
    stat    FunctionStat.name

Errors are JSON (`application/json`, HTTP 4xx/5xx) of the shape of `ErrorResponse`.
Every data route answers `ETag`; a poll with `If-None-Match` costs a 304.
"""

from __future__ import annotations

from tb_plugin.api.base import (
    CapacityKind,
    ErrorResponse,
    F64Column,
    ForeignFiles,
    I32Column,
    Problem,
    RunsResponse,
    RunSummary,
    U8Column,
    U16Column,
    Unit,
    XKind,
)
from tb_plugin.api.functions import (
    CollectedFunction,
    FunctionCalls,
    FunctionGroup,
    FunctionKind,
    FunctionOverRanks,
    FunctionsResponse,
    FunctionStat,
    HistoryReference,
    HookAttribute,
    HookValues,
    ModuleNames,
    SavedActivations,
)
from tb_plugin.api.modules import (
    CategoryGroup,
    ModuleBaseline,
    ModuleCategory,
    ModuleFacts,
    ModuleMark,
    ModuleMeasure,
    ModuleMoments,
    ModuleOverRanks,
    ModuleOverWindows,
    ModuleResponse,
    ModuleSeries,
    ModuleSpans,
    ModulesResponse,
    ModuleState,
    ModuleTimelineResponse,
    ModuleTree,
    ModuleWindow,
)
from tb_plugin.api.series import (
    AbsentSeries,
    Attempt,
    Headline,
    HeatmapResponse,
    HostLine,
    HostResponse,
    HostTrack,
    Mark,
    OverviewResponse,
    RankBand,
    RankLine,
    RankStrip,
    Recorded,
    RunFact,
    SeriesInfo,
    TimelineResponse,
)

__all__ = [
    "API_VERSION",
    "AbsentSeries",
    "Attempt",
    "CapacityKind",
    "CategoryGroup",
    "CollectedFunction",
    "ErrorResponse",
    "F64Column",
    "ForeignFiles",
    "FunctionCalls",
    "FunctionGroup",
    "FunctionKind",
    "FunctionOverRanks",
    "FunctionStat",
    "FunctionsResponse",
    "Headline",
    "HeatmapResponse",
    "HistoryReference",
    "HookAttribute",
    "HookValues",
    "HostLine",
    "HostResponse",
    "HostTrack",
    "I32Column",
    "Mark",
    "ModuleBaseline",
    "ModuleCategory",
    "ModuleFacts",
    "ModuleMark",
    "ModuleMeasure",
    "ModuleMoments",
    "ModuleNames",
    "ModuleOverRanks",
    "ModuleOverWindows",
    "ModuleResponse",
    "ModuleSeries",
    "ModuleSpans",
    "ModuleState",
    "ModuleTimelineResponse",
    "ModuleTree",
    "ModuleWindow",
    "ModulesResponse",
    "OverviewResponse",
    "Problem",
    "RankBand",
    "RankLine",
    "RankStrip",
    "Recorded",
    "RunFact",
    "RunSummary",
    "RunsResponse",
    "SavedActivations",
    "SeriesInfo",
    "TimelineResponse",
    "U8Column",
    "U16Column",
    "Unit",
    "XKind",
]

API_VERSION = 1
"""Raised whenever a response changes shape; the page asks for a reload on mismatch."""
