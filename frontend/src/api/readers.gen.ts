// Generated from tb_plugin/api by `npm run gen`. Do not edit.

import {
  f64Column,
  field,
  flag,
  i32Column,
  integer,
  list,
  number,
  orNull,
  record,
  text,
  u16Column,
  u8Column,
  word,
  type Read,
} from "./check";
import type * as types from "./types.gen";

export const readXKind: Read<types.XKind> = word(
  "step", "relative", "wall",
);

export const readUnit: Read<types.Unit> = word(
  "bytes", "bytes_per_step", "bytes_per_second", "count", "per_second", "percent", "seconds", "celsius", "watts",
);

export const readCapacityKind: Read<types.CapacityKind> = word(
  "device", "cgroup_limit", "host_memory", "none",
);

export const readModuleState: Read<types.ModuleState> = word(
  "before_pre_forward", "after_pre_forward", "before_post_forward", "after_post_forward", "peak_forward", "before_pre_backward", "after_pre_backward", "before_post_backward", "after_post_backward", "peak_backward", "pre_forward_ac", "post_forward_ac", "window_start", "window_peak", "before_optimizer", "after_optimizer", "window_end",
);

export const readModuleMeasure: Read<types.ModuleMeasure> = word(
  "total", "own",
);

export const readCategoryGroup: Read<types.CategoryGroup> = word(
  "param", "grad", "optimizer", "activation", "comm", "temp", "unknown",
);

export const readFunctionKind: Read<types.FunctionKind> = word(
  "snaps", "hooks", "activations", "modules", "history",
);

export const readFunctionGroup: Read<types.FunctionGroup> = word(
  "device", "process", "hook",
);

export const readErrorResponse: Read<types.ErrorResponse> = (value, at, columns) => {
  const fields = record(value, at);
  return {
    what: field(fields, "what", text, at, columns),
    where: field(fields, "where", text, at, columns),
    remedy: field(fields, "remedy", text, at, columns),
  };
};

export const readProblem: Read<types.Problem> = (value, at, columns) => {
  const fields = record(value, at);
  return {
    severity: field(fields, "severity", word("warning", "error"), at, columns),
    path: field(fields, "path", text, at, columns),
    what: field(fields, "what", text, at, columns),
    where: field(fields, "where", text, at, columns),
    salvaged: field(fields, "salvaged", text, at, columns),
    remedy: field(fields, "remedy", text, at, columns),
    rank: field(fields, "rank", orNull(integer), at, columns),
  };
};

export const readForeignFiles: Read<types.ForeignFiles> = (value, at, columns) => {
  const fields = record(value, at);
  return {
    kind: field(fields, "kind", word("tfevents", "snapshot_pickle", "kineto_trace", "memprofiler", "other"), at, columns),
    numFiles: field(fields, "num_files", integer, at, columns),
    example: field(fields, "example", text, at, columns),
  };
};

export const readRunSummary: Read<types.RunSummary> = (value, at, columns) => {
  const fields = record(value, at);
  return {
    id: field(fields, "id", text, at, columns),
    name: field(fields, "name", text, at, columns),
    numRanks: field(fields, "num_ranks", integer, at, columns),
    worldSize: field(fields, "world_size", integer, at, columns),
    numAttempts: field(fields, "num_attempts", integer, at, columns),
    firstMs: field(fields, "first_ms", number, at, columns),
    lastMs: field(fields, "last_ms", number, at, columns),
    lastStep: field(fields, "last_step", orNull(integer), at, columns),
    live: field(fields, "live", flag, at, columns),
    simulated: field(fields, "simulated", flag, at, columns),
    imported: field(fields, "imported", flag, at, columns),
    deviceType: field(fields, "device_type", text, at, columns),
    numProblems: field(fields, "num_problems", integer, at, columns),
  };
};

export const readRunsResponse: Read<types.RunsResponse> = (value, at, columns) => {
  const fields = record(value, at);
  return {
    logdirs: field(fields, "logdirs", list(text), at, columns),
    runs: field(fields, "runs", list(readRunSummary), at, columns),
    foreign: field(fields, "foreign", list(readForeignFiles), at, columns),
    problems: field(fields, "problems", list(readProblem), at, columns),
    pluginVersion: field(fields, "plugin_version", text, at, columns),
  };
};

export const readAttempt: Read<types.Attempt> = (value, at, columns) => {
  const fields = record(value, at);
  return {
    index: field(fields, "index", integer, at, columns),
    startedMs: field(fields, "started_ms", number, at, columns),
    endedMs: field(fields, "ended_ms", orNull(number), at, columns),
    firstStep: field(fields, "first_step", orNull(integer), at, columns),
    lastStep: field(fields, "last_step", orNull(integer), at, columns),
    numRanks: field(fields, "num_ranks", integer, at, columns),
    ended: field(fields, "ended", word("closed", "exception", "lost", "running"), at, columns),
    overlapsPrevious: field(fields, "overlaps_previous", flag, at, columns),
  };
};

export const readHeadline: Read<types.Headline> = (value, at, columns) => {
  const fields = record(value, at);
  return {
    key: field(fields, "key", word("peak_allocated", "peak_reserved", "headroom", "fragmentation", "non_torch", "growth", "rss_peak", "rss_headroom", "rss_growth", "step_time", "cpu", "workers_rss"), at, columns),
    value: field(fields, "value", orNull(number), at, columns),
    unit: field(fields, "unit", readUnit, at, columns),
    rank: field(fields, "rank", orNull(integer), at, columns),
    step: field(fields, "step", orNull(integer), at, columns),
    sparkline: field(fields, "sparkline", f64Column, at, columns),
    caveats: field(fields, "caveats", list(word("sampled", "estimated", "cumulative_peak", "no_limit", "few_steps", "after_warmup", "one_host")), at, columns),
    absentReason: field(fields, "absent_reason", orNull(text), at, columns),
  };
};

export const readRankStrip: Read<types.RankStrip> = (value, at, columns) => {
  const fields = record(value, at);
  return {
    peakSeries: field(fields, "peak_series", text, at, columns),
    capacityKind: field(fields, "capacity_kind", readCapacityKind, at, columns),
    rank: field(fields, "rank", i32Column, at, columns),
    host: field(fields, "host", i32Column, at, columns),
    peakBytes: field(fields, "peak_bytes", f64Column, at, columns),
    peakStep: field(fields, "peak_step", f64Column, at, columns),
    capacityBytes: field(fields, "capacity_bytes", f64Column, at, columns),
    growthBytesPerStep: field(fields, "growth_bytes_per_step", f64Column, at, columns),
    numAllocRetries: field(fields, "num_alloc_retries", f64Column, at, columns),
    numOoms: field(fields, "num_ooms", f64Column, at, columns),
    lastStep: field(fields, "last_step", f64Column, at, columns),
    lost: field(fields, "lost", u8Column, at, columns),
    hosts: field(fields, "hosts", list(text), at, columns),
    medianPeakBytes: field(fields, "median_peak_bytes", orNull(number), at, columns),
    outliers: field(fields, "outliers", list(integer), at, columns),
  };
};

export const readRecorded: Read<types.Recorded> = (value, at, columns) => {
  const fields = record(value, at);
  return {
    source: field(fields, "source", text, at, columns),
    status: field(fields, "status", word("recorded", "absent", "off", "failed"), at, columns),
    numRanks: field(fields, "num_ranks", integer, at, columns),
    reason: field(fields, "reason", text, at, columns),
    remedy: field(fields, "remedy", text, at, columns),
    cost: field(fields, "cost", text, at, columns),
  };
};

export const readRunFact: Read<types.RunFact> = (value, at, columns) => {
  const fields = record(value, at);
  return {
    key: field(fields, "key", word("device_name", "torch_version", "driver_version", "hosts", "local_rank", "mesh", "allocator_settings", "memboard_version", "python_version", "dropped_rows"), at, columns),
    value: field(fields, "value", text, at, columns),
  };
};

export const readOverviewResponse: Read<types.OverviewResponse> = (value, at, columns) => {
  const fields = record(value, at);
  return {
    run: field(fields, "run", readRunSummary, at, columns),
    rank: field(fields, "rank", orNull(integer), at, columns),
    headlines: field(fields, "headlines", list(readHeadline), at, columns),
    strip: field(fields, "strip", readRankStrip, at, columns),
    recorded: field(fields, "recorded", list(readRecorded), at, columns),
    attempts: field(fields, "attempts", list(readAttempt), at, columns),
    problems: field(fields, "problems", list(readProblem), at, columns),
    facts: field(fields, "facts", list(readRunFact), at, columns),
    planted: field(fields, "planted", list(text), at, columns),
  };
};

export const readSeriesInfo: Read<types.SeriesInfo> = (value, at, columns) => {
  const fields = record(value, at);
  return {
    key: field(fields, "key", text, at, columns),
    unit: field(fields, "unit", readUnit, at, columns),
    group: field(fields, "group", word("device", "process", "timing", "host", "sensor", "progress"), at, columns),
    headline: field(fields, "headline", flag, at, columns),
    numRanks: field(fields, "num_ranks", integer, at, columns),
  };
};

export const readAbsentSeries: Read<types.AbsentSeries> = (value, at, columns) => {
  const fields = record(value, at);
  return {
    group: field(fields, "group", word("device", "process", "timing", "host", "sensor", "progress"), at, columns),
    source: field(fields, "source", text, at, columns),
    reason: field(fields, "reason", text, at, columns),
    remedy: field(fields, "remedy", text, at, columns),
  };
};

export const readMark: Read<types.Mark> = (value, at, columns) => {
  const fields = record(value, at);
  return {
    kind: field(fields, "kind", word("attempt", "epoch", "phase", "oom", "retry", "dropped", "user"), at, columns),
    x: field(fields, "x", number, at, columns),
    rank: field(fields, "rank", orNull(integer), at, columns),
    label: field(fields, "label", text, at, columns),
  };
};

export const readRankLine: Read<types.RankLine> = (value, at, columns) => {
  const fields = record(value, at);
  return {
    rank: field(fields, "rank", integer, at, columns),
    why: field(fields, "why", word("selected", "pinned", "high", "low", "oom"), at, columns),
    x: field(fields, "x", f64Column, at, columns),
    y: field(fields, "y", f64Column, at, columns),
    yLow: field(fields, "y_low", f64Column, at, columns),
  };
};

export const readRankBand: Read<types.RankBand> = (value, at, columns) => {
  const fields = record(value, at);
  return {
    numRanks: field(fields, "num_ranks", integer, at, columns),
    x: field(fields, "x", f64Column, at, columns),
    low: field(fields, "low", f64Column, at, columns),
    p5: field(fields, "p5", f64Column, at, columns),
    median: field(fields, "median", f64Column, at, columns),
    p95: field(fields, "p95", f64Column, at, columns),
    high: field(fields, "high", f64Column, at, columns),
    highRank: field(fields, "high_rank", i32Column, at, columns),
  };
};

export const readTimelineResponse: Read<types.TimelineResponse> = (value, at, columns) => {
  const fields = record(value, at);
  return {
    run: field(fields, "run", readRunSummary, at, columns),
    series: field(fields, "series", orNull(readSeriesInfo), at, columns),
    x: field(fields, "x", readXKind, at, columns),
    xLow: field(fields, "x_low", number, at, columns),
    xHigh: field(fields, "x_high", number, at, columns),
    rowsPerPoint: field(fields, "rows_per_point", integer, at, columns),
    lines: field(fields, "lines", list(readRankLine), at, columns),
    band: field(fields, "band", orNull(readRankBand), at, columns),
    capacityBytes: field(fields, "capacity_bytes", orNull(number), at, columns),
    capacityKind: field(fields, "capacity_kind", readCapacityKind, at, columns),
    marks: field(fields, "marks", list(readMark), at, columns),
    available: field(fields, "available", list(readSeriesInfo), at, columns),
    absent: field(fields, "absent", list(readAbsentSeries), at, columns),
    phases: field(fields, "phases", list(text), at, columns),
    problems: field(fields, "problems", list(readProblem), at, columns),
  };
};

export const readHeatmapResponse: Read<types.HeatmapResponse> = (value, at, columns) => {
  const fields = record(value, at);
  return {
    run: field(fields, "run", readRunSummary, at, columns),
    series: field(fields, "series", orNull(readSeriesInfo), at, columns),
    xLow: field(fields, "x_low", number, at, columns),
    xHigh: field(fields, "x_high", number, at, columns),
    x0: field(fields, "x0", number, at, columns),
    stepsPerColumn: field(fields, "steps_per_column", number, at, columns),
    numRows: field(fields, "num_rows", integer, at, columns),
    numColumns: field(fields, "num_columns", integer, at, columns),
    ranksPerRow: field(fields, "ranks_per_row", integer, at, columns),
    rowRank: field(fields, "row_rank", i32Column, at, columns),
    values: field(fields, "values", u16Column, at, columns),
    valueLow: field(fields, "value_low", number, at, columns),
    valueHigh: field(fields, "value_high", number, at, columns),
    capacityBytes: field(fields, "capacity_bytes", orNull(number), at, columns),
    exact: field(fields, "exact", flag, at, columns),
    marks: field(fields, "marks", list(readMark), at, columns),
    absent: field(fields, "absent", list(readAbsentSeries), at, columns),
  };
};

export const readHostLine: Read<types.HostLine> = (value, at, columns) => {
  const fields = record(value, at);
  return {
    name: field(fields, "name", text, at, columns),
    rank: field(fields, "rank", integer, at, columns),
    host: field(fields, "host", text, at, columns),
    x: field(fields, "x", f64Column, at, columns),
    y: field(fields, "y", f64Column, at, columns),
    yLow: field(fields, "y_low", f64Column, at, columns),
  };
};

export const readHostTrack: Read<types.HostTrack> = (value, at, columns) => {
  const fields = record(value, at);
  return {
    key: field(fields, "key", word("cpu", "memory", "process_memory", "swap", "disk", "network", "gpu_utilization", "gpu_memory", "gpu_temperature", "gpu_power"), at, columns),
    unit: field(fields, "unit", readUnit, at, columns),
    limit: field(fields, "limit", orNull(number), at, columns),
    lines: field(fields, "lines", list(readHostLine), at, columns),
  };
};

export const readHostResponse: Read<types.HostResponse> = (value, at, columns) => {
  const fields = record(value, at);
  return {
    run: field(fields, "run", readRunSummary, at, columns),
    rank: field(fields, "rank", integer, at, columns),
    hosts: field(fields, "hosts", list(text), at, columns),
    numHosts: field(fields, "num_hosts", integer, at, columns),
    x: field(fields, "x", readXKind, at, columns),
    xLow: field(fields, "x_low", number, at, columns),
    xHigh: field(fields, "x_high", number, at, columns),
    tracks: field(fields, "tracks", list(readHostTrack), at, columns),
    absent: field(fields, "absent", list(readAbsentSeries), at, columns),
    marks: field(fields, "marks", list(readMark), at, columns),
  };
};

export const readModuleWindow: Read<types.ModuleWindow> = (value, at, columns) => {
  const fields = record(value, at);
  return {
    id: field(fields, "id", text, at, columns),
    function: field(fields, "function", text, at, columns),
    phase: field(fields, "phase", text, at, columns),
    iteration: field(fields, "iteration", integer, at, columns),
    attempt: field(fields, "attempt", integer, at, columns),
    step: field(fields, "step", orNull(integer), at, columns),
    timeMs: field(fields, "time_ms", number, at, columns),
    numRanks: field(fields, "num_ranks", integer, at, columns),
  };
};

export const readModuleFacts: Read<types.ModuleFacts> = (value, at, columns) => {
  const fields = record(value, at);
  return {
    source: field(fields, "source", word("recorded", "simulated", "imported"), at, columns),
    backend: field(fields, "backend", text, at, columns),
    world: field(fields, "world", text, at, columns),
    root: field(fields, "root", text, at, columns),
    estimate: field(fields, "estimate", text, at, columns),
    incomplete: field(fields, "incomplete", flag, at, columns),
    inputs: field(fields, "inputs", text, at, columns),
    numOptimizers: field(fields, "num_optimizers", orNull(integer), at, columns),
    roundingBytes: field(fields, "rounding_bytes", orNull(integer), at, columns),
    torchVersion: field(fields, "torch_version", text, at, columns),
    numEvents: field(fields, "num_events", orNull(integer), at, columns),
    numEventsDropped: field(fields, "num_events_dropped", integer, at, columns),
    reasons: field(fields, "reasons", list(text), at, columns),
    hasOwn: field(fields, "has_own", flag, at, columns),
    peakBytes: field(fields, "peak_bytes", orNull(number), at, columns),
    peakUs: field(fields, "peak_us", orNull(number), at, columns),
  };
};

export const readModuleBaseline: Read<types.ModuleBaseline> = (value, at, columns) => {
  const fields = record(value, at);
  return {
    kind: field(fields, "kind", word("state", "window", "rank", "median"), at, columns),
    state: field(fields, "state", readModuleState, at, columns),
    window: field(fields, "window", text, at, columns),
    rank: field(fields, "rank", orNull(integer), at, columns),
    numRanks: field(fields, "num_ranks", integer, at, columns),
    ofRanks: field(fields, "of_ranks", integer, at, columns),
  };
};

export const readModuleCategory: Read<types.ModuleCategory> = (value, at, columns) => {
  const fields = record(value, at);
  return {
    name: field(fields, "name", text, at, columns),
    group: field(fields, "group", readCategoryGroup, at, columns),
    bytes: field(fields, "bytes", f64Column, at, columns),
    baselineBytes: field(fields, "baseline_bytes", orNull(f64Column), at, columns),
  };
};

export const readModuleTree: Read<types.ModuleTree> = (value, at, columns) => {
  const fields = record(value, at);
  return {
    names: field(fields, "names", list(text), at, columns),
    name: field(fields, "name", i32Column, at, columns),
    types: field(fields, "types", list(text), at, columns),
    type: field(fields, "type", i32Column, at, columns),
    parent: field(fields, "parent", i32Column, at, columns),
    isFsdp: field(fields, "is_fsdp", u8Column, at, columns),
    paramBytes: field(fields, "param_bytes", f64Column, at, columns),
    bufferBytes: field(fields, "buffer_bytes", f64Column, at, columns),
  };
};

export const readModulesResponse: Read<types.ModulesResponse> = (value, at, columns) => {
  const fields = record(value, at);
  return {
    run: field(fields, "run", readRunSummary, at, columns),
    windows: field(fields, "windows", list(readModuleWindow), at, columns),
    numWindows: field(fields, "num_windows", integer, at, columns),
    window: field(fields, "window", orNull(text), at, columns),
    ranks: field(fields, "ranks", i32Column, at, columns),
    rank: field(fields, "rank", orNull(integer), at, columns),
    state: field(fields, "state", readModuleState, at, columns),
    states: field(fields, "states", list(readModuleState), at, columns),
    call: field(fields, "call", orNull(integer), at, columns),
    maxCalls: field(fields, "max_calls", integer, at, columns),
    device: field(fields, "device", text, at, columns),
    devices: field(fields, "devices", list(text), at, columns),
    measure: field(fields, "measure", readModuleMeasure, at, columns),
    facts: field(fields, "facts", orNull(readModuleFacts), at, columns),
    baseline: field(fields, "baseline", orNull(readModuleBaseline), at, columns),
    tree: field(fields, "tree", readModuleTree, at, columns),
    numCalls: field(fields, "num_calls", i32Column, at, columns),
    callShown: field(fields, "call_shown", i32Column, at, columns),
    timeUs: field(fields, "time_us", f64Column, at, columns),
    totalBytes: field(fields, "total_bytes", f64Column, at, columns),
    ownBytes: field(fields, "own_bytes", f64Column, at, columns),
    baselineTotalBytes: field(fields, "baseline_total_bytes", orNull(f64Column), at, columns),
    baselineOwnBytes: field(fields, "baseline_own_bytes", orNull(f64Column), at, columns),
    categories: field(fields, "categories", list(readModuleCategory), at, columns),
    absent: field(fields, "absent", list(readRecorded), at, columns),
    problems: field(fields, "problems", list(readProblem), at, columns),
  };
};

export const readModuleSeries: Read<types.ModuleSeries> = (value, at, columns) => {
  const fields = record(value, at);
  return {
    name: field(fields, "name", text, at, columns),
    group: field(fields, "group", readCategoryGroup, at, columns),
    totalBytes: field(fields, "total_bytes", f64Column, at, columns),
    ownBytes: field(fields, "own_bytes", f64Column, at, columns),
  };
};

export const readModuleOverWindows: Read<types.ModuleOverWindows> = (value, at, columns) => {
  const fields = record(value, at);
  return {
    windows: field(fields, "windows", list(text), at, columns),
    step: field(fields, "step", f64Column, at, columns),
    totalBytes: field(fields, "total_bytes", f64Column, at, columns),
    ownBytes: field(fields, "own_bytes", f64Column, at, columns),
    categories: field(fields, "categories", list(readModuleSeries), at, columns),
    ofWindows: field(fields, "of_windows", integer, at, columns),
  };
};

export const readModuleOverRanks: Read<types.ModuleOverRanks> = (value, at, columns) => {
  const fields = record(value, at);
  return {
    rank: field(fields, "rank", i32Column, at, columns),
    totalBytes: field(fields, "total_bytes", f64Column, at, columns),
    ownBytes: field(fields, "own_bytes", f64Column, at, columns),
    categories: field(fields, "categories", list(readModuleSeries), at, columns),
    ofRanks: field(fields, "of_ranks", integer, at, columns),
  };
};

export const readModuleMoments: Read<types.ModuleMoments> = (value, at, columns) => {
  const fields = record(value, at);
  return {
    stateNames: field(fields, "state_names", list(readModuleState), at, columns),
    state: field(fields, "state", i32Column, at, columns),
    call: field(fields, "call", i32Column, at, columns),
    timeUs: field(fields, "time_us", f64Column, at, columns),
    totalBytes: field(fields, "total_bytes", f64Column, at, columns),
    ownBytes: field(fields, "own_bytes", f64Column, at, columns),
    categories: field(fields, "categories", list(readModuleSeries), at, columns),
    numLeftOut: field(fields, "num_left_out", integer, at, columns),
  };
};

export const readModuleResponse: Read<types.ModuleResponse> = (value, at, columns) => {
  const fields = record(value, at);
  return {
    run: field(fields, "run", readRunSummary, at, columns),
    module: field(fields, "module", text, at, columns),
    path: field(fields, "path", text, at, columns),
    type: field(fields, "type", text, at, columns),
    isFsdp: field(fields, "is_fsdp", flag, at, columns),
    paramBytes: field(fields, "param_bytes", orNull(number), at, columns),
    bufferBytes: field(fields, "buffer_bytes", orNull(number), at, columns),
    window: field(fields, "window", text, at, columns),
    rank: field(fields, "rank", integer, at, columns),
    state: field(fields, "state", readModuleState, at, columns),
    call: field(fields, "call", orNull(integer), at, columns),
    device: field(fields, "device", text, at, columns),
    moments: field(fields, "moments", readModuleMoments, at, columns),
    overWindows: field(fields, "over_windows", readModuleOverWindows, at, columns),
    overRanks: field(fields, "over_ranks", readModuleOverRanks, at, columns),
    problems: field(fields, "problems", list(readProblem), at, columns),
  };
};

export const readModuleSpans: Read<types.ModuleSpans> = (value, at, columns) => {
  const fields = record(value, at);
  return {
    modules: field(fields, "modules", list(text), at, columns),
    module: field(fields, "module", i32Column, at, columns),
    kinds: field(fields, "kinds", list(word("forward", "backward", "recompute")), at, columns),
    kind: field(fields, "kind", u8Column, at, columns),
    call: field(fields, "call", i32Column, at, columns),
    depth: field(fields, "depth", i32Column, at, columns),
    x0: field(fields, "x0", f64Column, at, columns),
    x1: field(fields, "x1", f64Column, at, columns),
    numLeftOut: field(fields, "num_left_out", integer, at, columns),
  };
};

export const readModuleMark: Read<types.ModuleMark> = (value, at, columns) => {
  const fields = record(value, at);
  return {
    kind: field(fields, "kind", word("before_optimizer", "after_optimizer", "peak"), at, columns),
    x: field(fields, "x", number, at, columns),
  };
};

export const readModuleTimelineResponse: Read<types.ModuleTimelineResponse> = (value, at, columns) => {
  const fields = record(value, at);
  return {
    run: field(fields, "run", readRunSummary, at, columns),
    window: field(fields, "window", orNull(text), at, columns),
    rank: field(fields, "rank", orNull(integer), at, columns),
    device: field(fields, "device", text, at, columns),
    devices: field(fields, "devices", list(text), at, columns),
    axis: field(fields, "axis", word("time", "event"), at, columns),
    xLow: field(fields, "x_low", number, at, columns),
    xHigh: field(fields, "x_high", number, at, columns),
    x0: field(fields, "x0", number, at, columns),
    xPerColumn: field(fields, "x_per_column", number, at, columns),
    totalBytes: field(fields, "total_bytes", f64Column, at, columns),
    peakX: field(fields, "peak_x", f64Column, at, columns),
    categories: field(fields, "categories", list(readModuleCategory), at, columns),
    spans: field(fields, "spans", readModuleSpans, at, columns),
    marks: field(fields, "marks", list(readModuleMark), at, columns),
    facts: field(fields, "facts", orNull(readModuleFacts), at, columns),
    absent: field(fields, "absent", list(readRecorded), at, columns),
    problems: field(fields, "problems", list(readProblem), at, columns),
  };
};

export const readCollectedFunction: Read<types.CollectedFunction> = (value, at, columns) => {
  const fields = record(value, at);
  return {
    function: field(fields, "function", text, at, columns),
    phase: field(fields, "phase", text, at, columns),
    kinds: field(fields, "kinds", list(readFunctionKind), at, columns),
    numRanks: field(fields, "num_ranks", integer, at, columns),
  };
};

export const readFunctionCalls: Read<types.FunctionCalls> = (value, at, columns) => {
  const fields = record(value, at);
  return {
    attempt: field(fields, "attempt", i32Column, at, columns),
    iteration: field(fields, "iteration", i32Column, at, columns),
    step: field(fields, "step", f64Column, at, columns),
    startMs: field(fields, "start_ms", f64Column, at, columns),
    endMs: field(fields, "end_ms", f64Column, at, columns),
    kinds: field(fields, "kinds", u8Column, at, columns),
  };
};

export const readFunctionStat: Read<types.FunctionStat> = (value, at, columns) => {
  const fields = record(value, at);
  return {
    name: field(fields, "name", text, at, columns),
    unit: field(fields, "unit", readUnit, at, columns),
    group: field(fields, "group", readFunctionGroup, at, columns),
    start: field(fields, "start", f64Column, at, columns),
    end: field(fields, "end", f64Column, at, columns),
    difference: field(fields, "difference", f64Column, at, columns),
  };
};

export const readFunctionOverRanks: Read<types.FunctionOverRanks> = (value, at, columns) => {
  const fields = record(value, at);
  return {
    stat: field(fields, "stat", text, at, columns),
    unit: field(fields, "unit", readUnit, at, columns),
    rank: field(fields, "rank", i32Column, at, columns),
    start: field(fields, "start", f64Column, at, columns),
    end: field(fields, "end", f64Column, at, columns),
    difference: field(fields, "difference", f64Column, at, columns),
    ofRanks: field(fields, "of_ranks", integer, at, columns),
  };
};

export const readModuleNames: Read<types.ModuleNames> = (value, at, columns) => {
  const fields = record(value, at);
  return {
    paths: field(fields, "paths", list(text), at, columns),
    types: field(fields, "types", list(text), at, columns),
  };
};

export const readHookAttribute: Read<types.HookAttribute> = (value, at, columns) => {
  const fields = record(value, at);
  return {
    name: field(fields, "name", text, at, columns),
    unit: field(fields, "unit", readUnit, at, columns),
    values: field(fields, "values", f64Column, at, columns),
  };
};

export const readHookValues: Read<types.HookValues> = (value, at, columns) => {
  const fields = record(value, at);
  return {
    modules: field(fields, "modules", readModuleNames, at, columns),
    module: field(fields, "module", i32Column, at, columns),
    attributes: field(fields, "attributes", list(readHookAttribute), at, columns),
    incomplete: field(fields, "incomplete", flag, at, columns),
  };
};

export const readSavedActivations: Read<types.SavedActivations> = (value, at, columns) => {
  const fields = record(value, at);
  return {
    modules: field(fields, "modules", readModuleNames, at, columns),
    module: field(fields, "module", i32Column, at, columns),
    dtypes: field(fields, "dtypes", list(text), at, columns),
    dtype: field(fields, "dtype", i32Column, at, columns),
    numTensors: field(fields, "num_tensors", f64Column, at, columns),
    bytes: field(fields, "bytes", f64Column, at, columns),
    nppCompatBytes: field(fields, "npp_compat_bytes", f64Column, at, columns),
    totalBytes: field(fields, "total_bytes", number, at, columns),
    totalNppCompatBytes: field(fields, "total_npp_compat_bytes", number, at, columns),
    incomplete: field(fields, "incomplete", flag, at, columns),
  };
};

export const readHistoryReference: Read<types.HistoryReference> = (value, at, columns) => {
  const fields = record(value, at);
  return {
    id: field(fields, "id", text, at, columns),
    rank: field(fields, "rank", integer, at, columns),
    attempt: field(fields, "attempt", integer, at, columns),
    function: field(fields, "function", text, at, columns),
    phase: field(fields, "phase", text, at, columns),
    iteration: field(fields, "iteration", integer, at, columns),
    context: field(fields, "context", word("start", "end", ""), at, columns),
    label: field(fields, "label", text, at, columns),
    step: field(fields, "step", orNull(integer), at, columns),
    timeMs: field(fields, "time_ms", number, at, columns),
    numBytes: field(fields, "num_bytes", integer, at, columns),
    path: field(fields, "path", text, at, columns),
  };
};

export const readFunctionsResponse: Read<types.FunctionsResponse> = (value, at, columns) => {
  const fields = record(value, at);
  return {
    run: field(fields, "run", readRunSummary, at, columns),
    source: field(fields, "source", word("recorded", "imported"), at, columns),
    functions: field(fields, "functions", list(readCollectedFunction), at, columns),
    function: field(fields, "function", orNull(text), at, columns),
    phase: field(fields, "phase", text, at, columns),
    ranks: field(fields, "ranks", i32Column, at, columns),
    rank: field(fields, "rank", orNull(integer), at, columns),
    calls: field(fields, "calls", readFunctionCalls, at, columns),
    numCalls: field(fields, "num_calls", integer, at, columns),
    stats: field(fields, "stats", list(readFunctionStat), at, columns),
    attempt: field(fields, "attempt", orNull(integer), at, columns),
    iteration: field(fields, "iteration", orNull(integer), at, columns),
    overRanks: field(fields, "over_ranks", orNull(readFunctionOverRanks), at, columns),
    hooks: field(fields, "hooks", orNull(readHookValues), at, columns),
    activations: field(fields, "activations", orNull(readSavedActivations), at, columns),
    histories: field(fields, "histories", list(readHistoryReference), at, columns),
    moduleWindow: field(fields, "module_window", orNull(text), at, columns),
    absent: field(fields, "absent", list(readRecorded), at, columns),
    problems: field(fields, "problems", list(readProblem), at, columns),
  };
};

/** Per route: the response's name on the wire and how to read it. */
export const routes: {
  readonly [R in keyof types.Responses]: {
    readonly response: string;
    readonly read: Read<types.Responses[R]>;
  };
} = {
  runs: { response: "RunsResponse", read: readRunsResponse },
  overview: { response: "OverviewResponse", read: readOverviewResponse },
  timeline: { response: "TimelineResponse", read: readTimelineResponse },
  heatmap: { response: "HeatmapResponse", read: readHeatmapResponse },
  host: { response: "HostResponse", read: readHostResponse },
  modules: { response: "ModulesResponse", read: readModulesResponse },
  module: { response: "ModuleResponse", read: readModuleResponse },
  module_timeline: { response: "ModuleTimelineResponse", read: readModuleTimelineResponse },
  functions: { response: "FunctionsResponse", read: readFunctionsResponse },
};
