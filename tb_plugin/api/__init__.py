"""The HTTP contract: one frozen dataclass per response, spoken by both ends.

Both ends ship together, so this contract lives one release only. It imports nothing
but the standard library; `tb_plugin/typescript.py` generates
`frontend/src/api/types.gen.ts` from its modules, and a test fails when the two differ.

On the wire a response is one binary body (`application/octet-stream`)::

    u32 LE  header length in bytes, padding included
    ...     UTF-8 JSON: {"api_version", "response": class name, "data": {...},
            "columns": [{"dtype", "offset", "length"}, ...]}, padded with spaces
    ...     columns, each starting at a multiple of 8 bytes counted from the body's
            start; `offset` counts from the body's start, `length` is in elements.
            A dtype `packed_...` has the first bytes of all elements before all second
            ones and so on; packed whole numbers are differences from the one before,
            modulo their width. Columns of 1,024 elements and more are packed: they
            deflate to a tenth, in a third of the time.

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
    measure "held" | "total"
    against "state" | "window" | "rank" | "median": what is compared with, chosen by
            against_state, against_window, against_rank
    axis    "time" | "event" (module timeline, allocations)
    function, iteration, attempt  one collected call (with phase and rank)
    stat    FunctionStat.name
    history HistoryReference.id; device: one of its devices
    moment, life, e0, e1, t0, t1, y0, y1, order, colour, stream, pool
            see `AllocationsResponse` and the routes beside it
    sort, size_class, request, count
            see `SegmentsResponse` and the routes beside it
    b_run, b_history, b_device, b_moment, match
            see `CompareResponse`
    of      StepsOf
    part    "step", a part of the step's time or "other": see `StepHeatmapResponse`
    step    one step
    cycle, source, tracks, row, text
            see `api.trace`, whose t0 and t1 are nanoseconds since 1970

Errors are JSON (`application/json`, HTTP 4xx/5xx) of the shape of `ErrorResponse`.
Every data route answers `ETag`; a poll with `If-None-Match` costs a 304.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tb_plugin.api.allocations import (
        AllocationBlockResponse,
        AllocationCategory,
        AllocationColour,
        AllocationColumns,
        AllocationGroup,
        AllocationHoldersResponse,
        AllocationLedger,
        AllocationLiveResponse,
        AllocationLives,
        AllocationMoment,
        AllocationOrder,
        AllocationRangeResponse,
        AllocationRuns,
        AllocationsResponse,
        LedgerEntry,
        StacksResponse,
    )
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
    from tb_plugin.api.compare import (
        CompareBy,
        CompareResponse,
        CompareSide,
        CompareStacks,
        CompareTable,
        RankHistoriesResponse,
        RankHistory,
        StackMatch,
    )
    from tb_plugin.api.distributed import (
        DistributedCollectives,
        DistributedGroups,
        DistributedHeatmapResponse,
        DistributedPart,
        DistributedResponse,
    )
    from tb_plugin.api.drop import DropResponse
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
    from tb_plugin.api.histories import (
        HistoriesResponse,
        HistoryChoice,
        HistoryCurve,
        HistoryDevice,
        HistoryFacts,
        HistoryLevel,
        HistoryMarkKind,
        HistoryMarks,
        HistoryOddity,
        HistoryOrigin,
        HistoryPeak,
        HistoryResponse,
        HistorySetting,
        HistoryState,
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
        ModuleSplit,
        ModulesResponse,
        ModuleState,
        ModuleTimelineResponse,
        ModuleTree,
        ModuleUnattributed,
        ModuleWindow,
    )
    from tb_plugin.api.operators import (
        KernelsResponse,
        OperatorCharge,
        OperatorMemoryResponse,
        OperatorMemoryRows,
        OperatorResponse,
        OperatorsBy,
        OperatorsResponse,
        OperatorStack,
        OperatorTotals,
        TraceAllocations,
        TraceDevice,
        TraceMemoryCategory,
        TraceMemoryCurve,
        TraceMemoryHolders,
        TraceMemoryPeak,
    )
    from tb_plugin.api.profile import (
        ModuleBackward,
        ModuleTimesResponse,
        ProfileChoice,
        ProfiledDevice,
        ProfiledTrace,
        ProfileFact,
        ProfileFinding,
        ProfilePart,
        ProfileResponse,
        ProfileRole,
    )
    from tb_plugin.api.segments import (
        AllocatorAction,
        AllocatorEventsResponse,
        FreeSizes,
        SegmentArenas,
        SegmentBlocks,
        SegmentPinners,
        SegmentPins,
        SegmentRequest,
        SegmentRows,
        SegmentSort,
        SegmentsResponse,
        SegmentTimelineResponse,
        SizeClass,
    )
    from tb_plugin.api.series import (
        AbsentSeries,
        Attempt,
        EndedHow,
        Estimate,
        Headline,
        HeadlineCaveat,
        HeadlineKey,
        HeatmapResponse,
        HostLine,
        HostResponse,
        HostTrack,
        Mark,
        OverviewResponse,
        PredictedDevice,
        Prediction,
        RankBand,
        RankEnding,
        RankEndings,
        RankLine,
        RankStrip,
        Recorded,
        RunFact,
        SeriesInfo,
        TimelineResponse,
    )
    from tb_plugin.api.steps import (
        AbsentPart,
        StepFinding,
        StepFlops,
        StepHeatmapResponse,
        StepPart,
        StepPartMean,
        StepRate,
        StepResponse,
        StepsOf,
        StepsResponse,
        StragglerRow,
        StragglersResponse,
    )
    from tb_plugin.api.trace import (
        TraceArg,
        TraceChoice,
        TraceClock,
        TraceFamily,
        TraceInstantKind,
        TraceInstantResponse,
        TraceInstants,
        TraceLane,
        TraceLine,
        TracePartner,
        TraceRangeResponse,
        TraceReduced,
        TraceResponse,
        TraceSearchResponse,
        TraceSliceResponse,
        TraceSlicesResponse,
        TraceSource,
        TraceSourceKind,
        TraceState,
        TraceSteps,
        TraceTrack,
        TraceTrackKind,
    )
    from tb_plugin.api.trace_reports import (
        TraceReport,
        TraceReportMemory,
        TraceReportOperators,
        TraceReportResponse,
        TraceReportsResponse,
    )
    from tb_plugin.api.traces import TraceFile, TraceFileState, TracesResponse
    from tb_plugin.api.verdict import (
        OomCause,
        OomOrigin,
        OomPeers,
        OutOfMemory,
        VerdictAdvice,
        VerdictEvidence,
        VerdictHolder,
        VerdictResponse,
    )

__all__ = [
    "API_VERSION",
    "AbsentPart",
    "AbsentSeries",
    "AllocationBlockResponse",
    "AllocationCategory",
    "AllocationColour",
    "AllocationColumns",
    "AllocationGroup",
    "AllocationHoldersResponse",
    "AllocationLedger",
    "AllocationLiveResponse",
    "AllocationLives",
    "AllocationMoment",
    "AllocationOrder",
    "AllocationRangeResponse",
    "AllocationRuns",
    "AllocationsResponse",
    "AllocatorAction",
    "AllocatorEventsResponse",
    "Attempt",
    "CapacityKind",
    "CategoryGroup",
    "CollectedFunction",
    "CompareBy",
    "CompareResponse",
    "CompareSide",
    "CompareStacks",
    "CompareTable",
    "DistributedCollectives",
    "DistributedGroups",
    "DistributedHeatmapResponse",
    "DistributedPart",
    "DistributedResponse",
    "DropResponse",
    "EndedHow",
    "ErrorResponse",
    "Estimate",
    "F64Column",
    "ForeignFiles",
    "FreeSizes",
    "FunctionCalls",
    "FunctionGroup",
    "FunctionKind",
    "FunctionOverRanks",
    "FunctionStat",
    "FunctionsResponse",
    "Headline",
    "HeadlineCaveat",
    "HeadlineKey",
    "HeatmapResponse",
    "HistoriesResponse",
    "HistoryChoice",
    "HistoryCurve",
    "HistoryDevice",
    "HistoryFacts",
    "HistoryLevel",
    "HistoryMarkKind",
    "HistoryMarks",
    "HistoryOddity",
    "HistoryOrigin",
    "HistoryPeak",
    "HistoryReference",
    "HistoryResponse",
    "HistorySetting",
    "HistoryState",
    "HookAttribute",
    "HookValues",
    "HostLine",
    "HostResponse",
    "HostTrack",
    "I32Column",
    "KernelsResponse",
    "LedgerEntry",
    "Mark",
    "ModuleBackward",
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
    "ModuleSplit",
    "ModuleState",
    "ModuleTimelineResponse",
    "ModuleTimesResponse",
    "ModuleTree",
    "ModuleUnattributed",
    "ModuleWindow",
    "ModulesResponse",
    "OomCause",
    "OomOrigin",
    "OomPeers",
    "OperatorCharge",
    "OperatorMemoryResponse",
    "OperatorMemoryRows",
    "OperatorResponse",
    "OperatorStack",
    "OperatorTotals",
    "OperatorsBy",
    "OperatorsResponse",
    "OutOfMemory",
    "OverviewResponse",
    "PredictedDevice",
    "Prediction",
    "Problem",
    "ProfileChoice",
    "ProfileFact",
    "ProfileFinding",
    "ProfilePart",
    "ProfileResponse",
    "ProfileRole",
    "ProfiledDevice",
    "ProfiledTrace",
    "RankBand",
    "RankEnding",
    "RankEndings",
    "RankHistoriesResponse",
    "RankHistory",
    "RankLine",
    "RankStrip",
    "Recorded",
    "RunFact",
    "RunSummary",
    "RunsResponse",
    "SavedActivations",
    "SegmentArenas",
    "SegmentBlocks",
    "SegmentPinners",
    "SegmentPins",
    "SegmentRequest",
    "SegmentRows",
    "SegmentSort",
    "SegmentTimelineResponse",
    "SegmentsResponse",
    "SeriesInfo",
    "SizeClass",
    "StackMatch",
    "StacksResponse",
    "StepFinding",
    "StepFlops",
    "StepHeatmapResponse",
    "StepPart",
    "StepPartMean",
    "StepRate",
    "StepResponse",
    "StepsOf",
    "StepsResponse",
    "StragglerRow",
    "StragglersResponse",
    "TimelineResponse",
    "TraceAllocations",
    "TraceArg",
    "TraceChoice",
    "TraceClock",
    "TraceDevice",
    "TraceFamily",
    "TraceFile",
    "TraceFileState",
    "TraceInstantKind",
    "TraceInstantResponse",
    "TraceInstants",
    "TraceLane",
    "TraceLine",
    "TraceMemoryCategory",
    "TraceMemoryCurve",
    "TraceMemoryHolders",
    "TraceMemoryPeak",
    "TracePartner",
    "TraceRangeResponse",
    "TraceReduced",
    "TraceReport",
    "TraceReportMemory",
    "TraceReportOperators",
    "TraceReportResponse",
    "TraceReportsResponse",
    "TraceResponse",
    "TraceSearchResponse",
    "TraceSliceResponse",
    "TraceSlicesResponse",
    "TraceSource",
    "TraceSourceKind",
    "TraceState",
    "TraceSteps",
    "TraceTrack",
    "TraceTrackKind",
    "TracesResponse",
    "U8Column",
    "U16Column",
    "Unit",
    "VerdictAdvice",
    "VerdictEvidence",
    "VerdictHolder",
    "VerdictResponse",
    "XKind",
]

API_VERSION = 1
"""Raised whenever a response changes shape; the page asks for a reload on mismatch."""

_PARTS = (
    *("base", "histories", "functions", "allocations", "modules", "series"),
    *("segments", "compare", "verdict", "steps", "drop", "traces", "profile"),
    *("trace", "trace_reports", "operators", "distributed"),
)


def __getattr__(name: str) -> Any:
    """A name of the list above, from the first part that declares it (PEP 562).

    Two hundred dataclasses take 0.1 s to make, and the first picture needs twenty.
    """
    if name in __all__:
        for part in _PARTS:
            found = vars(import_module(f"tb_plugin.api.{part}"))
            if name in found:
                globals()[name] = found[name]
                return found[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
