// Generated from tb_plugin/api by `npm run gen`. Do not edit.

import {
  f64Column,
  flag,
  i32Column,
  integer,
  list,
  number,
  orNull,
  shape,
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

export const readHeadlineKey: Read<types.HeadlineKey> = word(
  "peak_allocated", "peak_reserved", "headroom", "fragmentation", "non_torch", "growth", "rss_peak", "rss_headroom", "rss_growth", "step_time", "cpu", "workers_rss",
);

export const readHeadlineCaveat: Read<types.HeadlineCaveat> = word(
  "sampled", "estimated", "cumulative_peak", "no_limit", "few_steps", "after_warmup", "one_host",
);

export const readEndedHow: Read<types.EndedHow> = word(
  "exception", "signal", "lost",
);

export const readModuleState: Read<types.ModuleState> = word(
  "before_pre_forward", "after_pre_forward", "before_post_forward", "after_post_forward", "peak_forward", "before_pre_backward", "after_pre_backward", "before_post_backward", "after_post_backward", "peak_backward", "pre_forward_ac", "post_forward_ac", "window_start", "window_peak", "before_optimizer", "after_optimizer", "window_end",
);

export const readModuleMeasure: Read<types.ModuleMeasure> = word(
  "held", "total",
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

export const readHistoryOrigin: Read<types.HistoryOrigin> = word(
  "call", "by_hand", "oom", "exception", "signal", "file",
);

export const readHistoryState: Read<types.HistoryState> = word(
  "closed", "opening", "ready", "failed",
);

export const readHistoryLevel: Read<types.HistoryLevel> = word(
  "active", "allocated", "reserved",
);

export const readHistoryMarkKind: Read<types.HistoryMarkKind> = word(
  "oom", "snapshot", "annotation", "step", "tag",
);

export const readAllocationOrder: Read<types.AllocationOrder> = word(
  "category", "group", "allocation",
);

export const readAllocationColour: Read<types.AllocationColour> = word(
  "category", "module", "stack", "age", "stream", "pool",
);

export const readSegmentSort: Read<types.SegmentSort> = word(
  "address", "size", "free", "largest_free", "age",
);

export const readSizeClass: Read<types.SizeClass> = word(
  "small", "large",
);

export const readAllocatorAction: Read<types.AllocatorAction> = word(
  "alloc", "free_requested", "free_completed", "free", "segment_alloc", "segment_free", "segment_map", "segment_unmap", "snapshot", "oom", "annotate", "unknown",
);

export const readTraceTrackKind: Read<types.TraceTrackKind> = word(
  "host", "device", "python", "span", "counter", "other",
);

export const readTraceSourceKind: Read<types.TraceSourceKind> = word(
  "trace", "spans", "counters",
);

export const readTraceFamily: Read<types.TraceFamily> = word(
  "kernel", "operator", "runtime", "python", "communication", "memory", "step", "forward", "backward", "optimizer", "dataloader", "annotation", "other",
);

export const readTraceInstantKind: Read<types.TraceInstantKind> = word(
  "oom", "checkpoint", "other",
);

export const readTraceReduced: Read<types.TraceReduced> = word(
  "exact", "highest", "mean",
);

export const readTraceState: Read<types.TraceState> = word(
  "opening", "ready", "failed",
);

export const readTraceFileState: Read<types.TraceFileState> = word(
  "found", "opening", "ready", "failed",
);

export const readProfileRole: Read<types.ProfileRole> = word(
  "kernel", "memcpy", "memset", "communication", "runtime", "dataloader", "cpu_exec", "other",
);

export const readModuleBackward: Read<types.ModuleBackward> = word(
  "arrows", "sequence_numbers", "not_run", "not_linked", "not_in_modules",
);

export const readOperatorsBy: Read<types.OperatorsBy> = word(
  "name", "shapes",
);

export const readOperatorCharge: Read<types.OperatorCharge> = word(
  "allocating", "freeing",
);

export const readDistributedPart: Read<types.DistributedPart> = word(
  "step", "computation", "overlap", "communication", "other",
);

export const readCompareBy: Read<types.CompareBy> = word(
  "category", "line", "module", "size",
);

export const readStackMatch: Read<types.StackMatch> = word(
  "exact", "function",
);

export const readOomCause: Read<types.OomCause> = word(
  "really_full", "fragmented", "growth", "single_giant", "imbalance", "non_torch", "fitting_block_free", "private_pools", "pending_free", "process_limit", "unsure",
);

export const readOomOrigin: Read<types.OomOrigin> = word(
  "oom", "exception", "signal", "file",
);

export const readStepsOf: Read<types.StepsOf> = word(
  "rank", "worst", "median",
);

export const readErrorResponse = shape<types.ErrorResponse>({
  what: text,
  where: text,
  remedy: text,
});

export const readProblem = shape<types.Problem>({
  severity: word("warning", "error"),
  path: text,
  what: text,
  where: text,
  salvaged: text,
  remedy: text,
  rank: orNull(integer),
});

export const readForeignFiles = shape<types.ForeignFiles>({
  kind: word("tfevents", "memprofiler", "other"),
  numFiles: integer,
  example: text,
});

export const readRunSummary = shape<types.RunSummary>({
  id: text,
  name: text,
  numRanks: integer,
  worldSize: integer,
  numAttempts: integer,
  firstMs: number,
  lastMs: number,
  lastStep: orNull(integer),
  live: flag,
  simulated: flag,
  virtualGpu: text,
  imported: flag,
  madeOf: word("recording", "memprofiler", "snapshots", "traces"),
  deviceType: text,
  numProblems: integer,
});

export const readRunsResponse = shape<types.RunsResponse>({
  logdirs: list(text),
  runs: list(readRunSummary),
  foreign: list(readForeignFiles),
  problems: list(readProblem),
  pluginVersion: text,
  dropLimitBytes: integer,
});

export const readAttempt = shape<types.Attempt>({
  index: integer,
  startedMs: number,
  endedMs: orNull(number),
  firstStep: orNull(integer),
  lastStep: orNull(integer),
  numRanks: integer,
  ended: word("closed", "exception", "signal", "lost", "running"),
  overlapsPrevious: flag,
});

export const readHeadline = shape<types.Headline>({
  key: readHeadlineKey,
  value: orNull(number),
  unit: readUnit,
  rank: orNull(integer),
  step: orNull(integer),
  sparkline: f64Column,
  caveats: list(readHeadlineCaveat),
  absentReason: orNull(text),
  otherEnd: orNull(number),
});

export const readRankStrip = shape<types.RankStrip>({
  peakSeries: text,
  capacityKind: readCapacityKind,
  rank: i32Column,
  host: i32Column,
  peakBytes: f64Column,
  peakStep: f64Column,
  capacityBytes: f64Column,
  growthBytesPerStep: f64Column,
  numAllocRetries: f64Column,
  numOoms: f64Column,
  lastStep: f64Column,
  lost: u8Column,
  hosts: list(text),
  medianPeakBytes: orNull(number),
  outliers: list(integer),
  numUnread: integer,
});

export const readRecorded = shape<types.Recorded>({
  source: text,
  status: word("recorded", "absent", "off", "failed"),
  numRanks: integer,
  reason: text,
  remedy: text,
  cost: text,
});

export const readRunFact = shape<types.RunFact>({
  key: word("device_name", "torch_version", "driver_version", "hosts", "local_rank", "mesh", "allocator_settings", "memboard_version", "python_version", "dropped_rows"),
  value: text,
});

export const readRankEnding = shape<types.RankEnding>({
  rank: integer,
  attempt: integer,
  how: readEndedHow,
  message: text,
  step: orNull(integer),
  phase: text,
  timeMs: number,
  rssBytes: orNull(number),
  memoryLimitBytes: orNull(number),
  sentence: text,
  advice: text,
});

export const readRankEndings = shape<types.RankEndings>({
  numException: integer,
  numSignal: integer,
  numLost: integer,
  sentence: text,
  ranks: list(readRankEnding),
});

export const readEstimate = shape<types.Estimate>({
  name: text,
  lowBytes: number,
  highBytes: number,
  source: text,
});

export const readPredictedDevice = shape<types.PredictedDevice>({
  device: integer,
  peakReservedBytes: number,
  othersLowBytes: number,
  othersHighBytes: number,
  neededLowBytes: orNull(number),
  neededHighBytes: orNull(number),
});

export const readPrediction = shape<types.Prediction>({
  fit: word("fits", "does not fit", "too close to say", "cannot say"),
  reason: text,
  decides: text,
  rank: integer,
  numRanks: integer,
  estimates: list(readEstimate),
  outsideLowBytes: number,
  outsideHighBytes: number,
  capacityBytes: number,
  devices: list(readPredictedDevice),
});

export const readOverviewResponse = shape<types.OverviewResponse>({
  run: readRunSummary,
  rank: orNull(integer),
  headlines: list(readHeadline),
  strip: readRankStrip,
  recorded: list(readRecorded),
  attempts: list(readAttempt),
  endings: readRankEndings,
  problems: list(readProblem),
  facts: list(readRunFact),
  planted: list(text),
  prediction: orNull(readPrediction),
});

export const readSeriesInfo = shape<types.SeriesInfo>({
  key: text,
  unit: readUnit,
  group: word("device", "process", "timing", "host", "sensor", "progress"),
  headline: flag,
  numRanks: integer,
});

export const readAbsentSeries = shape<types.AbsentSeries>({
  group: word("device", "process", "timing", "host", "sensor", "progress"),
  source: text,
  reason: text,
  remedy: text,
});

export const readMark = shape<types.Mark>({
  kind: word("attempt", "epoch", "phase", "oom", "retry", "dropped", "user"),
  x: number,
  rank: orNull(integer),
  label: text,
});

export const readRankLine = shape<types.RankLine>({
  rank: integer,
  why: word("selected", "pinned", "high", "low", "oom"),
  x: f64Column,
  y: f64Column,
  yLow: f64Column,
});

export const readRankBand = shape<types.RankBand>({
  numRanks: integer,
  x: f64Column,
  low: f64Column,
  p5: f64Column,
  median: f64Column,
  p95: f64Column,
  high: f64Column,
  highRank: i32Column,
});

export const readTimelineResponse = shape<types.TimelineResponse>({
  run: readRunSummary,
  series: orNull(readSeriesInfo),
  x: readXKind,
  xLow: number,
  xHigh: number,
  rowsPerPoint: integer,
  lines: list(readRankLine),
  band: orNull(readRankBand),
  capacityBytes: orNull(number),
  capacityKind: readCapacityKind,
  marks: list(readMark),
  available: list(readSeriesInfo),
  absent: list(readAbsentSeries),
  phases: list(text),
  problems: list(readProblem),
});

export const readHeatmapResponse = shape<types.HeatmapResponse>({
  run: readRunSummary,
  series: orNull(readSeriesInfo),
  xLow: number,
  xHigh: number,
  x0: number,
  stepsPerColumn: number,
  numRows: integer,
  numColumns: integer,
  ranksPerRow: integer,
  rowRank: i32Column,
  values: u16Column,
  valueLow: number,
  valueHigh: number,
  capacityBytes: orNull(number),
  exact: flag,
  marks: list(readMark),
  absent: list(readAbsentSeries),
});

export const readHostLine = shape<types.HostLine>({
  name: text,
  rank: integer,
  host: text,
  x: f64Column,
  y: f64Column,
  yLow: f64Column,
});

export const readHostTrack = shape<types.HostTrack>({
  key: word("cpu", "memory", "process_memory", "swap", "disk", "network", "gpu_utilization", "gpu_memory", "gpu_temperature", "gpu_power"),
  unit: readUnit,
  limit: orNull(number),
  lines: list(readHostLine),
});

export const readHostResponse = shape<types.HostResponse>({
  run: readRunSummary,
  rank: integer,
  hosts: list(text),
  numHosts: integer,
  x: readXKind,
  xLow: number,
  xHigh: number,
  tracks: list(readHostTrack),
  absent: list(readAbsentSeries),
  marks: list(readMark),
});

export const readModuleWindow = shape<types.ModuleWindow>({
  id: text,
  function: text,
  phase: text,
  iteration: integer,
  attempt: integer,
  step: orNull(integer),
  timeMs: number,
  numRanks: integer,
});

export const readModuleFacts = shape<types.ModuleFacts>({
  source: word("recorded", "simulated", "imported"),
  backend: text,
  world: text,
  root: text,
  estimate: text,
  incomplete: flag,
  inputs: text,
  numOptimizers: orNull(integer),
  roundingBytes: orNull(integer),
  torchVersion: text,
  numEvents: orNull(integer),
  numEventsDropped: integer,
  reasons: list(text),
  hasHeld: flag,
  windowPeakBytes: orNull(number),
  windowPeakUs: orNull(number),
});

export const readModuleBaseline = shape<types.ModuleBaseline>({
  kind: word("state", "window", "rank", "median"),
  state: readModuleState,
  window: text,
  rank: orNull(integer),
  numRanks: integer,
  ofRanks: integer,
});

export const readModuleCategory = shape<types.ModuleCategory>({
  name: text,
  group: readCategoryGroup,
  bytes: f64Column,
  baselineBytes: orNull(f64Column),
});

export const readModuleTree = shape<types.ModuleTree>({
  names: list(text),
  name: i32Column,
  types: list(text),
  type: i32Column,
  parent: i32Column,
  isFsdp: u8Column,
  paramBytes: f64Column,
  bufferBytes: f64Column,
});

export const readModuleUnattributed = shape<types.ModuleUnattributed>({
  name: text,
  group: readCategoryGroup,
  bytes: number,
});

export const readModuleSplit = shape<types.ModuleSplit>({
  totalBytes: number,
  heldBytes: number,
  unattributedBytes: number,
  unattributed: list(readModuleUnattributed),
});

export const readModulesResponse = shape<types.ModulesResponse>({
  run: readRunSummary,
  windows: list(readModuleWindow),
  numWindows: integer,
  window: orNull(text),
  ranks: i32Column,
  rank: orNull(integer),
  state: readModuleState,
  states: list(readModuleState),
  call: orNull(integer),
  maxCalls: integer,
  device: text,
  devices: list(text),
  measure: readModuleMeasure,
  facts: orNull(readModuleFacts),
  baseline: orNull(readModuleBaseline),
  tree: readModuleTree,
  numCalls: i32Column,
  callShown: i32Column,
  timeUs: f64Column,
  totalBytes: f64Column,
  heldBytes: f64Column,
  ownBytes: f64Column,
  split: orNull(readModuleSplit),
  baselineTotalBytes: orNull(f64Column),
  baselineHeldBytes: orNull(f64Column),
  baselineOwnBytes: orNull(f64Column),
  categories: list(readModuleCategory),
  absent: list(readRecorded),
  problems: list(readProblem),
});

export const readModuleSeries = shape<types.ModuleSeries>({
  name: text,
  group: readCategoryGroup,
  totalBytes: f64Column,
  heldBytes: f64Column,
});

export const readModuleOverWindows = shape<types.ModuleOverWindows>({
  windows: list(text),
  step: f64Column,
  totalBytes: f64Column,
  heldBytes: f64Column,
  categories: list(readModuleSeries),
  ofWindows: integer,
});

export const readModuleOverRanks = shape<types.ModuleOverRanks>({
  rank: i32Column,
  totalBytes: f64Column,
  heldBytes: f64Column,
  categories: list(readModuleSeries),
  ofRanks: integer,
});

export const readModuleMoments = shape<types.ModuleMoments>({
  stateNames: list(readModuleState),
  state: i32Column,
  call: i32Column,
  timeUs: f64Column,
  totalBytes: f64Column,
  heldBytes: f64Column,
  categories: list(readModuleSeries),
  numLeftOut: integer,
});

export const readModuleResponse = shape<types.ModuleResponse>({
  run: readRunSummary,
  module: text,
  path: text,
  type: text,
  isFsdp: flag,
  paramBytes: orNull(number),
  bufferBytes: orNull(number),
  window: text,
  rank: integer,
  state: readModuleState,
  call: orNull(integer),
  device: text,
  moments: readModuleMoments,
  overWindows: readModuleOverWindows,
  overRanks: readModuleOverRanks,
  problems: list(readProblem),
});

export const readModuleSpans = shape<types.ModuleSpans>({
  modules: list(text),
  module: i32Column,
  kinds: list(word("forward", "backward", "recompute")),
  kind: u8Column,
  call: i32Column,
  depth: i32Column,
  x0: f64Column,
  x1: f64Column,
  numLeftOut: integer,
});

export const readModuleMark = shape<types.ModuleMark>({
  kind: word("before_optimizer", "after_optimizer", "peak"),
  x: number,
});

export const readModuleTimelineResponse = shape<types.ModuleTimelineResponse>({
  run: readRunSummary,
  window: orNull(text),
  rank: orNull(integer),
  device: text,
  devices: list(text),
  axis: word("time", "event"),
  xLow: number,
  xHigh: number,
  x0: number,
  xPerColumn: number,
  totalBytes: f64Column,
  peakX: f64Column,
  categories: list(readModuleCategory),
  spans: readModuleSpans,
  marks: list(readModuleMark),
  facts: orNull(readModuleFacts),
  absent: list(readRecorded),
  problems: list(readProblem),
});

export const readCollectedFunction = shape<types.CollectedFunction>({
  function: text,
  phase: text,
  kinds: list(readFunctionKind),
  numRanks: integer,
});

export const readFunctionCalls = shape<types.FunctionCalls>({
  attempt: i32Column,
  iteration: i32Column,
  step: f64Column,
  startMs: f64Column,
  endMs: f64Column,
  kinds: u8Column,
});

export const readFunctionStat = shape<types.FunctionStat>({
  name: text,
  unit: readUnit,
  group: readFunctionGroup,
  start: f64Column,
  end: f64Column,
  difference: f64Column,
});

export const readFunctionOverRanks = shape<types.FunctionOverRanks>({
  stat: text,
  unit: readUnit,
  rank: i32Column,
  start: f64Column,
  end: f64Column,
  difference: f64Column,
  ofRanks: integer,
});

export const readModuleNames = shape<types.ModuleNames>({
  paths: list(text),
  types: list(text),
});

export const readHookAttribute = shape<types.HookAttribute>({
  name: text,
  unit: readUnit,
  values: f64Column,
});

export const readHookValues = shape<types.HookValues>({
  modules: readModuleNames,
  module: i32Column,
  attributes: list(readHookAttribute),
  incomplete: flag,
});

export const readSavedActivations = shape<types.SavedActivations>({
  modules: readModuleNames,
  module: i32Column,
  dtypes: list(text),
  dtype: i32Column,
  numTensors: f64Column,
  bytes: f64Column,
  nppCompatBytes: f64Column,
  totalBytes: number,
  totalNppCompatBytes: number,
  incomplete: flag,
});

export const readHistoryReference = shape<types.HistoryReference>({
  id: text,
  rank: orNull(integer),
  attempt: integer,
  function: text,
  phase: text,
  iteration: integer,
  context: word("start", "end", ""),
  label: text,
  step: orNull(integer),
  timeMs: number,
  numBytes: integer,
  path: text,
});

export const readFunctionsResponse = shape<types.FunctionsResponse>({
  run: readRunSummary,
  source: word("recorded", "imported"),
  functions: list(readCollectedFunction),
  function: orNull(text),
  phase: text,
  ranks: i32Column,
  rank: orNull(integer),
  calls: readFunctionCalls,
  numCalls: integer,
  stats: list(readFunctionStat),
  attempt: orNull(integer),
  iteration: orNull(integer),
  overRanks: orNull(readFunctionOverRanks),
  hooks: orNull(readHookValues),
  activations: orNull(readSavedActivations),
  histories: list(readHistoryReference),
  moduleWindow: orNull(text),
  absent: list(readRecorded),
  problems: list(readProblem),
});

export const readHistoryChoice = shape<types.HistoryChoice>({
  reference: readHistoryReference,
  origin: readHistoryOrigin,
  state: readHistoryState,
  problem: text,
});

export const readHistoriesResponse = shape<types.HistoriesResponse>({
  run: readRunSummary,
  histories: list(readHistoryChoice),
  numHistories: integer,
  ranks: list(integer),
  default: orNull(text),
  stillReading: flag,
  absent: list(readRecorded),
  problems: list(readProblem),
});

export const readHistoryPeak = shape<types.HistoryPeak>({
  level: readHistoryLevel,
  bytes: number,
  moment: integer,
});

export const readHistoryMarks = shape<types.HistoryMarks>({
  kind: u8Column,
  kinds: list(readHistoryMarkKind),
  moment: i32Column,
  end: i32Column,
  label: i32Column,
  labels: list(text),
  bytes: f64Column,
  deviceFree: f64Column,
  step: f64Column,
  numMarks: integer,
});

export const readHistoryCurve = shape<types.HistoryCurve>({
  event: i32Column,
  peak: i32Column,
  active: f64Column,
  allocated: f64Column,
  reserved: f64Column,
  timeMs: f64Column,
});

export const readHistoryDevice = shape<types.HistoryDevice>({
  device: integer,
  numEvents: integer,
  numAllocations: integer,
  hasTimes: flag,
  firstMs: orNull(number),
  lastMs: orNull(number),
  capacityBytes: orNull(number),
  activeBytes: number,
  allocatedBytes: number,
  reservedBytes: number,
  numBefore: integer,
  beforeBytes: number,
  numLost: integer,
  residualBytes: number,
  peaks: list(readHistoryPeak),
  marks: readHistoryMarks,
  curve: readHistoryCurve,
});

export const readHistoryOddity = shape<types.HistoryOddity>({
  what: text,
  count: integer,
});

export const readHistorySetting = shape<types.HistorySetting>({
  name: text,
  value: text,
});

export const readHistoryFacts = shape<types.HistoryFacts>({
  devices: list(readHistoryDevice),
  defaultDevice: orNull(integer),
  streams: list(text),
  pools: list(text),
  settings: list(readHistorySetting),
  numStacks: integer,
  hasTensors: flag,
  oddities: list(readHistoryOddity),
});

export const readHistoryResponse = shape<types.HistoryResponse>({
  run: readRunSummary,
  reference: readHistoryReference,
  origin: readHistoryOrigin,
  state: readHistoryState,
  progress: number,
  doing: text,
  facts: orNull(readHistoryFacts),
  problem: orNull(readProblem),
});

export const readStacksResponse = shape<types.StacksResponse>({
  strings: list(text),
  name: i32Column,
  filename: i32Column,
  line: i32Column,
  kind: u8Column,
  start: i32Column,
  frame: i32Column,
  userFrame: i32Column,
  module: i32Column,
  numStacks: integer,
});

export const readAllocationGroup = shape<types.AllocationGroup>({
  key: text,
  label: text,
  category: orNull(readCategoryGroup),
  stack: orNull(integer),
  bytes: number,
});

export const readAllocationColumns = shape<types.AllocationColumns>({
  edge: f64Column,
  moment: i32Column,
  active: f64Column,
  reserved: f64Column,
});

export const readAllocationLives = shape<types.AllocationLives>({
  life: i32Column,
  size: f64Column,
  born: i32Column,
  freed: i32Column,
  gone: i32Column,
  stack: i32Column,
  group: u16Column,
  band: u16Column,
});

export const readAllocationRuns = shape<types.AllocationRuns>({
  slot: i32Column,
  first: u16Column,
  last: u16Column,
  offset: f64Column,
});

export const readAllocationsResponse = shape<types.AllocationsResponse>({
  device: integer,
  axis: word("event", "time"),
  columns: readAllocationColumns,
  lives: readAllocationLives,
  runs: readAllocationRuns,
  groups: list(readAllocationGroup),
  bands: list(readAllocationGroup),
  rest: f64Column,
  bandBytes: f64Column,
  minBytes: number,
  topBytes: number,
  peakBytes: number,
  peakMoment: integer,
  marks: orNull(readHistoryMarks),
});

export const readAllocationHoldersResponse = shape<types.AllocationHoldersResponse>({
  device: integer,
  moment: i32Column,
  stack: i32Column,
  column: u16Column,
  slot: u16Column,
  change: f64Column,
  numOthers: integer,
  categories: list(readCategoryGroup),
  categoryBytes: f64Column,
  allocated: f64Column,
});

export const readAllocationCategory = shape<types.AllocationCategory>({
  category: readCategoryGroup,
  bytes: number,
  numBlocks: integer,
});

export const readLedgerEntry = shape<types.LedgerEntry>({
  key: text,
  bytes: orNull(number),
  caveat: text,
});

export const readAllocationLedger = shape<types.AllocationLedger>({
  entries: list(readLedgerEntry),
  reservedBytes: number,
  deviceUsedBytes: orNull(number),
  residualBytes: orNull(number),
});

export const readAllocationLiveResponse = shape<types.AllocationLiveResponse>({
  device: integer,
  moment: integer,
  timeMs: orNull(number),
  step: orNull(integer),
  phase: text,
  activeBytes: number,
  allocatedBytes: number,
  reservedBytes: orNull(number),
  numBlocks: integer,
  categories: list(readAllocationCategory),
  stack: i32Column,
  stackBytes: f64Column,
  stackBlocks: i32Column,
  stackCategory: u8Column,
  largest: readAllocationLives,
  ledger: orNull(readAllocationLedger),
});

export const readAllocationMoment = shape<types.AllocationMoment>({
  moment: integer,
  timeMs: orNull(number),
  step: orNull(integer),
  phase: text,
});

export const readAllocationBlockResponse = shape<types.AllocationBlockResponse>({
  device: integer,
  life: integer,
  name: text,
  address: text,
  sizeBytes: number,
  isRounded: flag,
  blockBytes: number,
  born: orNull(readAllocationMoment),
  freed: orNull(readAllocationMoment),
  gone: orNull(readAllocationMoment),
  stream: orNull(integer),
  pool: orNull(integer),
  stack: orNull(integer),
  category: readCategoryGroup,
  evidence: text,
  tensor: text,
  tag: text,
  compileContext: text,
  numSiblings: integer,
  siblingBytes: number,
  numEver: integer,
  segmentAddress: text,
  segmentBytes: orNull(number),
});

export const readAllocationRangeResponse = shape<types.AllocationRangeResponse>({
  device: integer,
  e0: integer,
  e1: integer,
  first: readAllocationMoment,
  last: readAllocationMoment,
  allocatedBytes: number,
  numAllocated: integer,
  freedBytes: number,
  numFreed: integer,
  liveBytes: number,
  numLive: integer,
  earlierFreedBytes: number,
  numEarlierFreed: integer,
  highestBytes: number,
  highestMoment: integer,
  stack: i32Column,
  stackCategory: u8Column,
  categories: list(readCategoryGroup),
  stackAllocatedBytes: f64Column,
  stackNumAllocated: i32Column,
  stackFreedBytes: f64Column,
  stackNumFreed: i32Column,
  stackLiveBytes: f64Column,
  stackNumLive: i32Column,
});

export const readSegmentRows = shape<types.SegmentRows>({
  address: f64Column,
  totalBytes: f64Column,
  allocatedBytes: f64Column,
  pendingBytes: f64Column,
  freeBytes: f64Column,
  requestedBytes: f64Column,
  largestFreeBytes: f64Column,
  numActive: i32Column,
  stream: i32Column,
  pool: i32Column,
  isLarge: u8Column,
  isExpandable: u8Column,
  opened: i32Column,
  stack: i32Column,
  firstBlock: i32Column,
  numBlocks: i32Column,
});

export const readSegmentBlocks = shape<types.SegmentBlocks>({
  offset: f64Column,
  size: f64Column,
  requestedBytes: f64Column,
  state: u8Column,
  life: i32Column,
  stack: i32Column,
  category: u8Column,
});

export const readFreeSizes = shape<types.FreeSizes>({
  fromBytes: f64Column,
  numSplit: i32Column,
  splitBytes: f64Column,
  numWhole: i32Column,
  wholeBytes: f64Column,
});

export const readSegmentArenas = shape<types.SegmentArenas>({
  pool: i32Column,
  stream: i32Column,
  isLarge: u8Column,
  reservedBytes: f64Column,
  freeBytes: f64Column,
  largestFreeBytes: f64Column,
  numFree: i32Column,
  releasableBytes: f64Column,
});

export const readSegmentRequest = shape<types.SegmentRequest>({
  isOom: flag,
  requestedBytes: number,
  roundedBytes: number,
  isLarge: flag,
  stream: integer,
  pool: integer,
  fits: flag,
  largestFreeBytes: number,
  freeBytes: number,
  otherStreamLargestBytes: number,
  otherPoolLargestBytes: number,
  releasableBytes: number,
  newSegmentBytes: number,
  deviceFreeBytes: orNull(number),
});

export const readSegmentPins = shape<types.SegmentPins>({
  segmentAddress: f64Column,
  freeBytes: f64Column,
  liveBytes: f64Column,
  numLive: i32Column,
  stack: i32Column,
  stackBytes: f64Column,
});

export const readSegmentPinners = shape<types.SegmentPinners>({
  stack: i32Column,
  aloneBytes: f64Column,
  sharedBytes: f64Column,
  liveBytes: f64Column,
  numSegments: i32Column,
});

export const readSegmentsResponse = shape<types.SegmentsResponse>({
  device: integer,
  moment: readAllocationMoment,
  action: orNull(readAllocatorAction),
  actionBytes: orNull(number),
  numSegments: integer,
  reservedBytes: number,
  allocatedBytes: number,
  pendingBytes: number,
  freeBytes: number,
  requestedBytes: number,
  segments: readSegmentRows,
  blocks: readSegmentBlocks,
  categories: list(readCategoryGroup),
  freeSizes: readFreeSizes,
  arenas: readSegmentArenas,
  request: orNull(readSegmentRequest),
  pins: readSegmentPins,
  pinners: readSegmentPinners,
  oddities: list(readHistoryOddity),
});

export const readSegmentTimelineResponse = shape<types.SegmentTimelineResponse>({
  picture: readAllocationsResponse,
});

export const readAllocatorEventsResponse = shape<types.AllocatorEventsResponse>({
  device: integer,
  e0: integer,
  numEvents: integer,
  numRows: integer,
  rowOfMoment: integer,
  event: i32Column,
  actions: list(readAllocatorAction),
  action: u8Column,
  address: f64Column,
  version: i32Column,
  bytes: f64Column,
  stream: i32Column,
  stack: i32Column,
  life: i32Column,
  active: f64Column,
  reserved: f64Column,
  deviceFree: f64Column,
  timeMs: f64Column,
});

export const readTraceClock = shape<types.TraceClock>({
  method: text,
  offsetNs: number,
  errorNs: orNull(number),
});

export const readTraceSource = shape<types.TraceSource>({
  id: text,
  kind: readTraceSourceKind,
  name: text,
  rank: orNull(integer),
  cycle: orNull(integer),
  state: readTraceState,
  progress: number,
  doing: text,
  problem: orNull(readProblem),
  numBytes: number,
  numSlices: integer,
  startNs: number,
  endNs: number,
  clock: orNull(readTraceClock),
  notes: list(text),
  hasFile: flag,
});

export const readTraceTrack = shape<types.TraceTrack>({
  source: integer,
  index: integer,
  name: text,
  process: text,
  kind: readTraceTrackKind,
  rank: orNull(integer),
  device: orNull(integer),
  stream: orNull(integer),
  numSlices: integer,
  numLevels: integer,
  numInstants: integer,
  unit: orNull(readUnit),
  most: orNull(number),
  least: orNull(number),
});

export const readTraceSteps = shape<types.TraceSteps>({
  number: i32Column,
  startNs: f64Column,
  endNs: f64Column,
});

export const readTraceChoice = shape<types.TraceChoice>({
  id: text,
  kind: readTraceSourceKind,
  name: text,
  rank: orNull(integer),
  cycle: orNull(integer),
  numBytes: number,
  shown: flag,
});

export const readTraceResponse = shape<types.TraceResponse>({
  run: readRunSummary,
  baseNs: text,
  endNs: number,
  sources: list(readTraceSource),
  tracks: list(readTraceTrack),
  steps: readTraceSteps,
  choices: list(readTraceChoice),
  numRanks: integer,
  shownRanks: list(integer),
  problems: list(readProblem),
  stillReading: flag,
  perfetto: word("hosted", "local"),
});

export const readTraceLane = shape<types.TraceLane>({
  track: text,
  level: integer,
});

export const readTraceLine = shape<types.TraceLine>({
  track: text,
  series: text,
  timeNs: f64Column,
  value: f64Column,
  reduced: readTraceReduced,
});

export const readTraceInstants = shape<types.TraceInstants>({
  tracks: list(text),
  track: u16Column,
  timeNs: f64Column,
  row: i32Column,
  name: u16Column,
  kind: u8Column,
  count: i32Column,
  names: list(text),
  kinds: list(readTraceInstantKind),
});

export const readTraceSlicesResponse = shape<types.TraceSlicesResponse>({
  t0: text,
  unitNs: number,
  zoom: integer,
  lanes: list(readTraceLane),
  laneStart: i32Column,
  start: i32Column,
  duration: i32Column,
  row: i32Column,
  name: u16Column,
  family: u8Column,
  count: i32Column,
  busy: i32Column,
  names: list(text),
  families: list(readTraceFamily),
  lines: list(readTraceLine),
  instants: readTraceInstants,
});

export const readTraceArg = shape<types.TraceArg>({
  name: text,
  value: text,
});

export const readTracePartner = shape<types.TracePartner>({
  relation: word("parent", "launch", "fwdbwd", "flow"),
  category: text,
  outgoing: flag,
  source: text,
  row: integer,
  track: text,
  level: integer,
  name: text,
  startNs: number,
  durationNs: number,
});

export const readTraceSliceResponse = shape<types.TraceSliceResponse>({
  source: text,
  row: integer,
  track: text,
  level: integer,
  name: text,
  category: text,
  family: readTraceFamily,
  startNs: text,
  durationNs: number,
  selfNs: number,
  numChildren: integer,
  args: list(readTraceArg),
  argsProblem: text,
  stack: list(readTracePartner),
  partners: list(readTracePartner),
});

export const readTraceInstantResponse = shape<types.TraceInstantResponse>({
  source: text,
  row: integer,
  track: text,
  name: text,
  category: text,
  kind: readTraceInstantKind,
  timeNs: text,
  args: list(readTraceArg),
  argsProblem: text,
  stack: list(readTracePartner),
});

export const readTraceSearchResponse = shape<types.TraceSearchResponse>({
  t0: text,
  numHits: integer,
  numNames: integer,
  tracks: list(text),
  track: u16Column,
  level: u16Column,
  row: i32Column,
  isInstant: u8Column,
  startNs: f64Column,
  durationNs: f64Column,
});

export const readTraceRangeResponse = shape<types.TraceRangeResponse>({
  numSlices: integer,
  numNames: integer,
  names: list(text),
  categories: list(text),
  family: u8Column,
  families: list(readTraceFamily),
  count: i32Column,
  totalNs: f64Column,
  selfNs: f64Column,
  maxNs: f64Column,
  source: u16Column,
  row: i32Column,
  sources: list(text),
});

export const readTraceReport = shape<types.TraceReport>({
  id: text,
  rank: integer,
  cycle: orNull(integer),
  firstStep: orNull(integer),
  lastStep: orNull(integer),
  numSteps: orNull(integer),
  path: text,
  numBytes: number,
  seconds: orNull(number),
  activities: list(text),
  options: list(text),
  flops: orNull(number),
  kept: flag,
  remote: text,
  problem: text,
});

export const readTraceReportsResponse = shape<types.TraceReportsResponse>({
  run: readRunSummary,
  reports: list(readTraceReport),
  absent: list(readRecorded),
  stillReading: flag,
});

export const readTraceReportOperators = shape<types.TraceReportOperators>({
  name: list(text),
  calls: f64Column,
  cpuNs: f64Column,
  selfCpuNs: f64Column,
  deviceNs: f64Column,
  selfDeviceNs: f64Column,
  cpuMemoryBytes: f64Column,
  selfCpuMemoryBytes: f64Column,
  deviceMemoryBytes: f64Column,
  selfDeviceMemoryBytes: f64Column,
  flops: f64Column,
});

export const readTraceReportMemory = shape<types.TraceReportMemory>({
  device: text,
  devices: list(text),
  xLow: number,
  xHigh: number,
  x0: number,
  xPerColumn: number,
  totalBytes: f64Column,
  peakX: f64Column,
  categories: list(readModuleCategory),
});

export const readTraceReportResponse = shape<types.TraceReportResponse>({
  report: readTraceReport,
  summary: text,
  operators: readTraceReportOperators,
  memory: orNull(readTraceReportMemory),
  missing: list(text),
});

export const readTraceFile = shape<types.TraceFile>({
  id: text,
  name: text,
  path: text,
  worker: text,
  rank: orNull(integer),
  cycle: orNull(integer),
  numBytes: number,
  timeline: flag,
  recorded: flag,
  state: readTraceFileState,
  problem: orNull(readProblem),
});

export const readTracesResponse = shape<types.TracesResponse>({
  run: readRunSummary,
  files: list(readTraceFile),
  numFiles: integer,
  problems: list(readProblem),
  stillReading: flag,
});

export const readProfiledTrace = shape<types.ProfiledTrace>({
  id: text,
  name: text,
  rank: orNull(integer),
  cycle: orNull(integer),
  numBytes: number,
  timeMs: orNull(number),
});

export const readProfileChoice = shape<types.ProfileChoice>({
  traces: list(readProfiledTrace),
  numTraces: integer,
  source: orNull(text),
  state: readTraceState,
  progress: number,
  doing: text,
  problem: orNull(readProblem),
  problems: list(readProblem),
});

export const readProfilePart = shape<types.ProfilePart>({
  role: readProfileRole,
  ms: f64Column,
  meanMs: number,
  share: number,
});

export const readProfiledDevice = shape<types.ProfiledDevice>({
  device: integer,
  name: orNull(text),
  totalBytes: orNull(number),
  capability: orNull(text),
  numSms: orNull(integer),
  numKernels: integer,
  kernelMs: number,
  busyMs: number,
  spanMs: number,
  utilization: orNull(number),
  smEfficiency: orNull(number),
  occupancy: orNull(number),
  tensorCoreShare: orNull(number),
});

export const readProfileFinding = shape<types.ProfileFinding>({
  key: word("loading", "single_process", "no_nccl", "communicating", "idle", "no_tensor_cores", "near_capacity", "small_kernels", "empty_device", "host_bound", "straggler"),
  sentence: text,
  evidence: list(text),
  advice: list(text),
  rule: text,
});

export const readProfileFact = shape<types.ProfileFact>({
  name: text,
  value: text,
});

export const readProfileResponse = shape<types.ProfileResponse>({
  run: readRunSummary,
  choice: readProfileChoice,
  step: i32Column,
  areMarked: flag,
  startMs: f64Column,
  durationMs: f64Column,
  parts: list(readProfilePart),
  computationMs: f64Column,
  communicationMs: f64Column,
  overlapMs: f64Column,
  devices: list(readProfiledDevice),
  devicesStep: orNull(integer),
  findings: list(readProfileFinding),
  facts: list(readProfileFact),
});

export const readModuleTimesResponse = shape<types.ModuleTimesResponse>({
  run: readRunSummary,
  choice: readProfileChoice,
  name: list(text),
  parent: i32Column,
  numCalls: f64Column,
  numOperators: f64Column,
  hostMs: f64Column,
  hostSelfMs: f64Column,
  deviceMs: f64Column,
  deviceSelfMs: f64Column,
  backwardHostMs: f64Column,
  backwardHostSelfMs: f64Column,
  backwardDeviceMs: f64Column,
  backwardDeviceSelfMs: f64Column,
  backward: readModuleBackward,
  hasDevices: flag,
  hasModules: flag,
  numModules: integer,
});

export const readOperatorTotals = shape<types.OperatorTotals>({
  hostSelfMs: number,
  deviceSelfMs: number,
  numCalls: number,
});

export const readOperatorsResponse = shape<types.OperatorsResponse>({
  run: readRunSummary,
  choice: readProfileChoice,
  by: readOperatorsBy,
  name: list(text),
  shapes: list(text),
  numCalls: f64Column,
  hostSelfMs: f64Column,
  hostTotalMs: f64Column,
  deviceSelfMs: f64Column,
  deviceTotalMs: f64Column,
  isEligible: u8Column,
  tensorCoreSelfShare: f64Column,
  tensorCoreTotalShare: f64Column,
  numRows: integer,
  totals: readOperatorTotals,
  hasDevices: flag,
  hasStacks: flag,
  hasShapes: flag,
});

export const readOperatorStack = shape<types.OperatorStack>({
  frames: list(text),
  numCalls: number,
  hostMs: number,
  deviceMs: number,
});

export const readOperatorResponse = shape<types.OperatorResponse>({
  run: readRunSummary,
  choice: readProfileChoice,
  name: text,
  stacks: list(readOperatorStack),
  numCalls: number,
  numLookedAt: number,
  callees: list(readOperatorStack),
});

export const readTraceDevice = shape<types.TraceDevice>({
  key: text,
  kind: text,
  index: integer,
  numEvents: integer,
  peakAllocatedBytes: orNull(number),
  peakReservedBytes: orNull(number),
  capacityBytes: orNull(number),
});

export const readOperatorMemoryRows = shape<types.OperatorMemoryRows>({
  name: list(text),
  numCalls: f64Column,
  increaseBytes: f64Column,
  selfIncreaseBytes: f64Column,
  numAllocations: f64Column,
  selfNumAllocations: f64Column,
  allocatedBytes: f64Column,
  selfAllocatedBytes: f64Column,
});

export const readTraceMemoryCurve = shape<types.TraceMemoryCurve>({
  timeMs: f64Column,
  allocatedBytes: f64Column,
  reservedBytes: f64Column,
});

export const readTraceAllocations = shape<types.TraceAllocations>({
  operator: i32Column,
  numBytes: f64Column,
  allocatedMs: f64Column,
  releasedMs: f64Column,
  category: u8Column,
  evidence: u8Column,
  module: i32Column,
  phase: i32Column,
});

export const readTraceMemoryCategory = shape<types.TraceMemoryCategory>({
  name: text,
  group: readCategoryGroup,
});

export const readTraceMemoryHolders = shape<types.TraceMemoryHolders>({
  category: u8Column,
  module: i32Column,
  phase: i32Column,
  numBytes: f64Column,
  numAllocations: f64Column,
});

export const readTraceMemoryPeak = shape<types.TraceMemoryPeak>({
  timeMs: number,
  allocatedBytes: orNull(number),
  seenBytes: number,
  unseenBytes: number,
  unknownBytes: number,
  holders: readTraceMemoryHolders,
  numHolders: integer,
});

export const readOperatorMemoryResponse = shape<types.OperatorMemoryResponse>({
  run: readRunSummary,
  choice: readProfileChoice,
  devices: list(readTraceDevice),
  device: orNull(text),
  charge: readOperatorCharge,
  durationMs: number,
  curve: readTraceMemoryCurve,
  rows: readOperatorMemoryRows,
  numRows: integer,
  operators: list(text),
  categories: list(readTraceMemoryCategory),
  evidence: list(text),
  modules: list(text),
  phases: list(text),
  peak: orNull(readTraceMemoryPeak),
  allocations: readTraceAllocations,
  numAllocations: integer,
  hasAddresses: flag,
});

export const readKernelsResponse = shape<types.KernelsResponse>({
  run: readRunSummary,
  choice: readProfileChoice,
  by: word("name", "properties"),
  name: list(text),
  operator: list(text),
  grid: list(text),
  block: list(text),
  registers: i32Column,
  sharedMemoryBytes: f64Column,
  numCalls: f64Column,
  totalMs: f64Column,
  minUs: f64Column,
  meanUs: f64Column,
  maxUs: f64Column,
  blocksPerSm: f64Column,
  occupancy: f64Column,
  usesTensorCores: u8Column,
  isCommunication: u8Column,
  numRows: integer,
  totalAllMs: number,
  tensorCoreMs: number,
  hasKernels: flag,
});

export const readDistributedCollectives = shape<types.DistributedCollectives>({
  rank: i32Column,
  kind: list(text),
  group: list(text),
  groupSize: i32Column,
  numCalls: f64Column,
  numBytes: f64Column,
  totalMs: f64Column,
  numCompared: f64Column,
  transferMs: f64Column,
  busBytesPerSecond: f64Column,
  numLast: f64Column,
});

export const readDistributedGroups = shape<types.DistributedGroups>({
  kind: list(text),
  group: list(text),
  numRanks: i32Column,
  numMatched: i32Column,
  meanSkewMs: f64Column,
  maxSkewMs: f64Column,
  lastRank: i32Column,
  lastShare: f64Column,
});

export const readDistributedResponse = shape<types.DistributedResponse>({
  run: readRunSummary,
  cycles: i32Column,
  cycle: orNull(integer),
  steps: i32Column,
  step: orNull(integer),
  rank: i32Column,
  stepMs: f64Column,
  computationMs: f64Column,
  overlapMs: f64Column,
  communicationMs: f64Column,
  otherMs: f64Column,
  transferMs: f64Column,
  waitingMs: f64Column,
  collectives: readDistributedCollectives,
  numCollectives: integer,
  groups: readDistributedGroups,
  numGroups: integer,
  numMatched: integer,
  missing: i32Column,
  numMissing: integer,
  numTraces: integer,
  numOpening: integer,
  numFailed: integer,
  findings: list(readProfileFinding),
  problems: list(readProblem),
});

export const readDistributedHeatmapResponse = shape<types.DistributedHeatmapResponse>({
  part: readDistributedPart,
  cycle: orNull(integer),
  cells: readHeatmapResponse,
  numTraces: integer,
  numOpening: integer,
  numFailed: integer,
});

export const readCompareSide = shape<types.CompareSide>({
  run: readRunSummary,
  reference: readHistoryReference,
  device: integer,
  moment: readAllocationMoment,
  activeBytes: number,
  allocatedBytes: number,
  reservedBytes: number,
  numBlocks: integer,
});

export const readCompareTable = shape<types.CompareTable>({
  by: readCompareBy,
  labels: list(text),
  aBytes: f64Column,
  bBytes: f64Column,
  aBlocks: i32Column,
  bBlocks: i32Column,
});

export const readCompareStacks = shape<types.CompareStacks>({
  strings: list(text),
  name: i32Column,
  filename: i32Column,
  line: i32Column,
  kind: u8Column,
  start: i32Column,
  frame: i32Column,
  userFrame: i32Column,
  category: u8Column,
  aBytes: f64Column,
  bBytes: f64Column,
  aBlocks: i32Column,
  bBlocks: i32Column,
  numStacks: integer,
});

export const readCompareResponse = shape<types.CompareResponse>({
  a: readCompareSide,
  b: readCompareSide,
  categories: list(readCategoryGroup),
  tables: list(readCompareTable),
  stacks: readCompareStacks,
});

export const readRankHistory = shape<types.RankHistory>({
  rank: integer,
  reference: readHistoryReference,
  origin: readHistoryOrigin,
  state: readHistoryState,
  problem: text,
  device: orNull(integer),
  peakActiveBytes: orNull(number),
  peakMoment: orNull(integer),
  reservedBytes: orNull(number),
  fragmentationBytes: orNull(number),
  topLabel: text,
  topBytes: orNull(number),
  numOoms: orNull(integer),
});

export const readRankHistoriesResponse = shape<types.RankHistoriesResponse>({
  run: readRunSummary,
  title: text,
  ranks: list(readRankHistory),
  numRanks: integer,
  numReady: integer,
  medianHistoryPeakBytes: orNull(number),
  medianFragmentationBytes: orNull(number),
  lines: list(text),
  lineBytes: f64Column,
  stillReading: flag,
  problems: list(readProblem),
});

export const readVerdictEvidence = shape<types.VerdictEvidence>({
  key: text,
  label: text,
  value: number,
  unit: readUnit,
  scope: text,
  caveat: text,
  decisive: flag,
});

export const readVerdictAdvice = shape<types.VerdictAdvice>({
  text: text,
  setting: text,
  bytes: orNull(number),
  because: list(text),
});

export const readVerdictHolder = shape<types.VerdictHolder>({
  label: text,
  category: orNull(readCategoryGroup),
  bytes: number,
  share: number,
  numBlocks: integer,
  stack: orNull(integer),
});

export const readOomPeers = shape<types.OomPeers>({
  rank: i32Column,
  step: f64Column,
  allocatedBytes: f64Column,
  reservedBytes: f64Column,
  peakBytes: f64Column,
  ended: u8Column,
  ranOut: u8Column,
});

export const readOutOfMemory = shape<types.OutOfMemory>({
  id: text,
  origin: readOomOrigin,
  isOutOfMemory: flag,
  rank: orNull(integer),
  attempt: integer,
  file: text,
  device: orNull(integer),
  step: orNull(integer),
  phase: text,
  during: text,
  askedAt: text,
  timeMs: orNull(number),
  message: text,
  analysed: flag,
  cause: readOomCause,
  also: list(readOomCause),
  numEarlier: integer,
  sentence: text,
  heldSentence: text,
  requestedBytes: orNull(number),
  deviceFreeBytes: orNull(number),
  capacityBytes: orNull(number),
  reservedBytes: orNull(number),
  allocatedBytes: orNull(number),
  activeBytes: orNull(number),
  freeBytes: orNull(number),
  numFreeBlocks: orNull(integer),
  largestFreeBytes: orNull(number),
  evidence: list(readVerdictEvidence),
  advice: list(readVerdictAdvice),
  holders: list(readVerdictHolder),
  stack: list(text),
  history: orNull(text),
  moment: orNull(integer),
  peers: readOomPeers,
  report: text,
  notRecorded: list(text),
});

export const readVerdictResponse = shape<types.VerdictResponse>({
  run: readRunSummary,
  ooms: list(readOutOfMemory),
  numOoms: integer,
  stillReading: flag,
  problems: list(readProblem),
});

export const readStepPart = shape<types.StepPart>({
  name: text,
  seconds: f64Column,
});

export const readAbsentPart = shape<types.AbsentPart>({
  name: text,
  reason: text,
  remedy: text,
});

export const readStepRate = shape<types.StepRate>({
  key: word("steps", "samples", "tokens", "flops", "mfu"),
  values: f64Column,
  summed: f64Column,
  median: orNull(number),
  summedMedian: orNull(number),
});

export const readStepFlops = shape<types.StepFlops>({
  origin: word("settings", "trace", "nothing"),
  perStep: orNull(number),
  devicePeak: orNull(number),
  missing: text,
});

export const readStepsResponse = shape<types.StepsResponse>({
  run: readRunSummary,
  x: readXKind,
  of: readStepsOf,
  rank: orNull(integer),
  xLow: number,
  xHigh: number,
  edges: f64Column,
  stepsPerColumn: integer,
  firstStep: f64Column,
  shownStep: f64Column,
  columnRank: i32Column,
  seconds: f64Column,
  parts: list(readStepPart),
  exact: flag,
  numRanks: integer,
  numSummed: integer,
  rates: list(readStepRate),
  flops: readStepFlops,
  absent: list(readAbsentPart),
  memorySeries: orNull(text),
  marks: list(readMark),
  phases: list(text),
});

export const readStepHeatmapResponse = shape<types.StepHeatmapResponse>({
  part: text,
  cells: readHeatmapResponse,
});

export const readStragglerRow = shape<types.StragglerRow>({
  rank: integer,
  host: text,
  slowestShare: number,
  excessSeconds: orNull(number),
  part: text,
  partExcessSeconds: orNull(number),
  standsOut: flag,
  words: text,
});

export const readStepFinding = shape<types.StepFinding>({
  key: word("dataloader_bound", "straggler", "slow_every_n", "growing"),
  sentence: text,
  advice: list(text),
  rank: orNull(integer),
  step: orNull(integer),
  secondsPerStep: number,
  evidence: list(readVerdictEvidence),
});

export const readStepPartMean = shape<types.StepPartMean>({
  name: text,
  seconds: number,
  share: number,
});

export const readStragglersResponse = shape<types.StragglersResponse>({
  run: readRunSummary,
  numRanks: integer,
  numLeftOut: integer,
  numSteps: integer,
  stepsPerColumn: integer,
  stepSeconds: orNull(number),
  parts: list(readStepPartMean),
  rows: list(readStragglerRow),
  numStandingOut: integer,
  part: text,
  findings: list(readStepFinding),
});

export const readStepResponse = shape<types.StepResponse>({
  run: readRunSummary,
  step: integer,
  numRanks: integer,
  numUnread: integer,
  ranks: i32Column,
  host: i32Column,
  hosts: list(text),
  seconds: f64Column,
  startMs: f64Column,
  endMs: f64Column,
  parts: list(readStepPart),
  memorySeries: orNull(text),
  memoryBytes: f64Column,
  absent: list(readAbsentPart),
});

export const readDropResponse = shape<types.DropResponse>({
  run: text,
  view: word("allocations", "trace"),
  history: text,
  name: text,
  rank: orNull(integer),
});

/** How to read what each route answers. */
export const routes: {
  readonly [R in keyof types.Responses]: Read<types.Responses[R]>;
} = {
  runs: readRunsResponse,
  overview: readOverviewResponse,
  timeline: readTimelineResponse,
  heatmap: readHeatmapResponse,
  host: readHostResponse,
  modules: readModulesResponse,
  module: readModuleResponse,
  module_timeline: readModuleTimelineResponse,
  functions: readFunctionsResponse,
  histories: readHistoriesResponse,
  history: readHistoryResponse,
  stacks: readStacksResponse,
  allocations: readAllocationsResponse,
  allocation_holders: readAllocationHoldersResponse,
  allocation_live: readAllocationLiveResponse,
  allocation_block: readAllocationBlockResponse,
  allocation_range: readAllocationRangeResponse,
  segments: readSegmentsResponse,
  segment_timeline: readSegmentTimelineResponse,
  allocator_events: readAllocatorEventsResponse,
  trace: readTraceResponse,
  trace_slices: readTraceSlicesResponse,
  trace_slice: readTraceSliceResponse,
  trace_instant: readTraceInstantResponse,
  trace_search: readTraceSearchResponse,
  trace_range: readTraceRangeResponse,
  trace_reports: readTraceReportsResponse,
  trace_report: readTraceReportResponse,
  traces: readTracesResponse,
  profile: readProfileResponse,
  module_times: readModuleTimesResponse,
  operators: readOperatorsResponse,
  operator: readOperatorResponse,
  operator_memory: readOperatorMemoryResponse,
  kernels: readKernelsResponse,
  distributed: readDistributedResponse,
  distributed_heatmap: readDistributedHeatmapResponse,
  compare: readCompareResponse,
  rank_histories: readRankHistoriesResponse,
  verdict: readVerdictResponse,
  steps: readStepsResponse,
  step_heatmap: readStepHeatmapResponse,
  stragglers: readStragglersResponse,
  step: readStepResponse,
  drop: readDropResponse,
};
