// Generated from tb_plugin/api by `npm run gen`. Do not edit.

export const API_VERSION = 1;

/** Training step; milliseconds since the attempt began; milliseconds since the epoch. */
export type XKind =
  | "step"
  | "relative"
  | "wall";

export type Unit =
  | "bytes"
  | "bytes_per_step"
  | "bytes_per_second"
  | "count"
  | "per_second"
  | "percent"
  | "seconds"
  | "celsius"
  | "watts";

/** What bounds the memory: the device, the control group's limit, or all of the host. */
export type CapacityKind =
  | "device"
  | "cgroup_limit"
  | "host_memory"
  | "none";

/**
 * Moments at which module memory is shown. The last five are one moment for all modules;
 * the others are each module's own. `peak_*` is the highest total between the module's
 * boundaries, `*_ac` what activation checkpointing recomputes in backward.
 */
export type ModuleState =
  | "before_pre_forward"
  | "after_pre_forward"
  | "before_post_forward"
  | "after_post_forward"
  | "peak_forward"
  | "before_pre_backward"
  | "after_pre_backward"
  | "before_post_backward"
  | "after_post_backward"
  | "peak_backward"
  | "pre_forward_ac"
  | "post_forward_ac"
  | "window_start"
  | "window_peak"
  | "before_optimizer"
  | "after_optimizer"
  | "window_end";

/**
 * All that the rank held at a module's moment (what torch's trackers print); or only what
 * the module and those below it own of that.
 */
export type ModuleMeasure =
  | "total"
  | "own";

/** What has a colour. */
export type CategoryGroup =
  | "param"
  | "grad"
  | "optimizer"
  | "activation"
  | "comm"
  | "temp"
  | "unknown";

/** What was collected around a function's calls. */
export type FunctionKind =
  | "snaps"
  | "hooks"
  | "activations"
  | "modules"
  | "history";

/** What a stat is about; hook: what the root module's hooks left on it. */
export type FunctionGroup =
  | "device"
  | "process"
  | "hook";

/** What went wrong, where, and what to do about it. */
export interface ErrorResponse {
  readonly what: string;
  readonly where: string;
  readonly remedy: string;
}

/** A file that could not be read whole. Nothing else is lost by it. */
export interface Problem {
  readonly severity: "warning" | "error";
  /** Relative to the logdir. */
  readonly path: string;
  readonly what: string;
  /** Byte offset or record, for a person. */
  readonly where: string;
  /** What was read in spite of it. */
  readonly salvaged: string;
  readonly remedy: string;
  readonly rank: number | null;
}

/** Other tools' files seen in the logdir, by kind. */
export interface ForeignFiles {
  readonly kind:
    | "tfevents"
    | "snapshot_pickle"
    | "kineto_trace"
    | "memprofiler"
    | "other";
  readonly numFiles: number;
  /** One path, relative to the logdir. */
  readonly example: string;
}

/** One training job: what the run picker shows. */
export interface RunSummary {
  readonly id: string;
  /** As TensorBoard names it; may hold any text, show as text. */
  readonly name: string;
  readonly numRanks: number;
  readonly worldSize: number;
  readonly numAttempts: number;
  readonly firstMs: number;
  /** When the newest row was written. */
  readonly lastMs: number;
  readonly lastStep: number | null;
  /** Rows arrived within the last 30 s and no rank's last attempt has closed. */
  readonly live: boolean;
  readonly simulated: boolean;
  /** Made of another tool's files: it has no steps and no headers. */
  readonly imported: boolean;
  /** cuda, xpu, mps ... or cpu where no accelerator was recorded. */
  readonly deviceType: string;
  readonly numProblems: number;
}

/** Route `/runs`: everything the logdir holds. */
export interface RunsResponse {
  /** What was looked at, as the user gave it. */
  readonly logdirs: readonly string[];
  readonly runs: readonly RunSummary[];
  readonly foreign: readonly ForeignFiles[];
  /** Problems that belong to no run. */
  readonly problems: readonly Problem[];
  readonly pluginVersion: string;
}

/** One start of the job in the same logdir. */
export interface Attempt {
  /** 1 for the first. */
  readonly index: number;
  readonly startedMs: number;
  /** None while it may still run. */
  readonly endedMs: number | null;
  readonly firstStep: number | null;
  readonly lastStep: number | null;
  readonly numRanks: number;
  /** lost: no closing record and no new rows: killed, or the disk went away. */
  readonly ended: "closed" | "exception" | "lost" | "running";
  /** Two jobs wrote into this run at the same time. */
  readonly overlapsPrevious: boolean;
}

/** One of the six headline numbers. */
export interface Headline {
  readonly key:
    | "peak_allocated"
    | "peak_reserved"
    | "headroom"
    | "fragmentation"
    | "non_torch"
    | "growth"
    | "rss_peak"
    | "rss_headroom"
    | "rss_growth"
    | "step_time"
    | "cpu"
    | "workers_rss";
  readonly value: number | null;
  readonly unit: Unit;
  /** The worst rank, where the number is a rank's. */
  readonly rank: number | null;
  readonly step: number | null;
  /** At most 120 values over the run, of the worst rank. */
  readonly sparkline: Float64Array;
  readonly caveats: readonly ("sampled" | "estimated" | "cumulative_peak" | "no_limit" | "few_steps" | "after_warmup" | "one_host")[];
  /** Why there is no value; set exactly when value is None. */
  readonly absentReason: string | null;
}

/** One entry per rank, in rank order; feeds the strip and the rank table. */
export interface RankStrip {
  /** SeriesInfo.key of the peak shown. */
  readonly peakSeries: string;
  readonly capacityKind: CapacityKind;
  readonly rank: Int32Array;
  /** Index into `hosts`. */
  readonly host: Int32Array;
  readonly peakBytes: Float64Array;
  readonly peakStep: Float64Array;
  readonly capacityBytes: Float64Array;
  readonly growthBytesPerStep: Float64Array;
  readonly numAllocRetries: Float64Array;
  readonly numOoms: Float64Array;
  readonly lastStep: Float64Array;
  /** 1 where the rank's last attempt ended without a closing record. */
  readonly lost: Uint8Array;
  readonly hosts: readonly string[];
  readonly medianPeakBytes: number | null;
  /** Ranks far above the others (see analysis/ranks.py), worst first, at most 16. */
  readonly outliers: readonly number[];
}

/** One source: was it recorded, and if not, why and what to do. */
export interface Recorded {
  readonly source: string;
  readonly status: "recorded" | "absent" | "off" | "failed";
  /** Ranks with this status. */
  readonly numRanks: number;
  readonly reason: string;
  readonly remedy: string;
  readonly cost: string;
}

/** A fact of the run's headers, e.g. torch version; `value` is text to show. */
export interface RunFact {
  readonly key:
    | "device_name"
    | "torch_version"
    | "driver_version"
    | "hosts"
    | "local_rank"
    | "mesh"
    | "allocator_settings"
    | "memboard_version"
    | "python_version"
    | "dropped_rows";
  readonly value: string;
}

/** Route `/overview` (run, rank). */
export interface OverviewResponse {
  readonly run: RunSummary;
  readonly rank: number | null;
  readonly headlines: readonly Headline[];
  readonly strip: RankStrip;
  readonly recorded: readonly Recorded[];
  readonly attempts: readonly Attempt[];
  readonly problems: readonly Problem[];
  readonly facts: readonly RunFact[];
  /** Simulated runs say which faults were planted; empty for real runs. */
  readonly planted: readonly string[];
}

/** A recorded column that can be drawn. */
export interface SeriesInfo {
  /** `table/column`, e.g. `step/allocated_peak_bytes`. */
  readonly key: string;
  readonly unit: Unit;
  readonly group: "device" | "process" | "timing" | "host" | "sensor" | "progress";
  /** Kept pre-aggregated: instant at any number of ranks. */
  readonly headline: boolean;
  /** Ranks that recorded it. */
  readonly numRanks: number;
}

/** A series some source would give, with the reason it is not there. */
export interface AbsentSeries {
  readonly group: "device" | "process" | "timing" | "host" | "sensor" | "progress";
  readonly source: string;
  readonly reason: string;
  readonly remedy: string;
}

/** An instant on the x axis. */
export interface Mark {
  readonly kind: "attempt" | "epoch" | "phase" | "oom" | "retry" | "dropped" | "user";
  readonly x: number;
  readonly rank: number | null;
  readonly label: string;
}

/**
 * One rank's line; x ascends; columns have equal length.
 *
 * Where rows were merged for the width, y is the highest value inside each merged
 * group (peaks never vanish) and y_low the lowest; otherwise both are equal.
 */
export interface RankLine {
  readonly rank: number;
  readonly why: "selected" | "pinned" | "high" | "low" | "oom";
  readonly x: Float64Array;
  readonly y: Float64Array;
  readonly yLow: Float64Array;
}

/** Spread over ranks at each x: columns of equal length. */
export interface RankBand {
  readonly numRanks: number;
  readonly x: Float64Array;
  readonly low: Float64Array;
  readonly p5: Float64Array;
  readonly median: Float64Array;
  readonly p95: Float64Array;
  readonly high: Float64Array;
  /** Which rank is the highest at each x. */
  readonly highRank: Int32Array;
}

/** Route `/timeline` (run, rank, ranks, pinned, series, x, x0, x1, px, phase). */
export interface TimelineResponse {
  readonly run: RunSummary;
  /** None where the run has nothing to draw (then `absent` says why). */
  readonly series: SeriesInfo | null;
  readonly x: XKind;
  readonly xLow: number;
  /** Full extent of the data, whatever part was asked for. */
  readonly xHigh: number;
  /** 1 where every row is drawn. */
  readonly rowsPerPoint: number;
  readonly lines: readonly RankLine[];
  /** Present above 16 ranks. */
  readonly band: RankBand | null;
  /** The smallest device (or memory limit) among the ranks drawn. */
  readonly capacityBytes: number | null;
  readonly capacityKind: CapacityKind;
  readonly marks: readonly Mark[];
  readonly available: readonly SeriesInfo[];
  readonly absent: readonly AbsentSeries[];
  readonly phases: readonly string[];
  readonly problems: readonly Problem[];
}

/**
 * Route `/heatmap` (run, ranks, series, x0, x1, px, rows, phase): rank by step.
 *
 * `values` is row-major: `num_rows` rows of `num_columns` cells; 0 means nothing was
 * recorded, 1..65535 maps linearly onto value_low..value_high. Each cell is the
 * highest value inside it. Row i covers `ranks_per_row` ranks from `row_rank[i]`.
 */
export interface HeatmapResponse {
  readonly run: RunSummary;
  readonly series: SeriesInfo | null;
  readonly xLow: number;
  /** Full extent in steps. */
  readonly xHigh: number;
  readonly x0: number;
  /** Column c covers steps x0 + c * steps_per_column and the following. */
  readonly stepsPerColumn: number;
  readonly numRows: number;
  readonly numColumns: number;
  readonly ranksPerRow: number;
  readonly rowRank: Int32Array;
  readonly values: Uint16Array;
  readonly valueLow: number;
  readonly valueHigh: number;
  readonly capacityBytes: number | null;
  /** False while the cells come from pre-aggregated buckets wider than a column. */
  readonly exact: boolean;
  readonly marks: readonly Mark[];
  readonly absent: readonly AbsentSeries[];
}

/** One line of a host track. */
export interface HostLine {
  /** The column, e.g. `cpu_user_pct`, `rss_bytes`, `gpu_temperature_celsius`. */
  readonly name: string;
  /** The rank that recorded it. */
  readonly rank: number;
  /** The host it speaks of. */
  readonly host: string;
  readonly x: Float64Array;
  readonly y: Float64Array;
  readonly yLow: Float64Array;
}

/** One chart of the Host view. */
export interface HostTrack {
  readonly key:
    | "cpu"
    | "memory"
    | "process_memory"
    | "swap"
    | "disk"
    | "network"
    | "gpu_utilization"
    | "gpu_memory"
    | "gpu_temperature"
    | "gpu_power";
  readonly unit: Unit;
  /** Total memory, memory limit or 100 %, where one exists. */
  readonly limit: number | null;
  readonly lines: readonly HostLine[];
}

/**
 * Route `/host` (run, rank, x, x0, x1, px).
 *
 * One line per host and column: the lowest rank of each host speaks for it, except
 * for process and GPU columns, which are the chosen rank's (default: the lowest).
 */
export interface HostResponse {
  readonly run: RunSummary;
  readonly rank: number;
  /** The hosts drawn, at most 16. */
  readonly hosts: readonly string[];
  /** All there are, or 1 where a rank is chosen. */
  readonly numHosts: number;
  readonly x: XKind;
  readonly xLow: number;
  readonly xHigh: number;
  readonly tracks: readonly HostTrack[];
  readonly absent: readonly AbsentSeries[];
  readonly marks: readonly Mark[];
}

/** One tracked call of a function, on however many ranks. */
export interface ModuleWindow {
  /** For the parameter `window`; stays the same while the run grows. */
  readonly id: string;
  /** `step` for a whole step. */
  readonly function: string;
  readonly phase: string;
  /** 1-based; 0 where it was taken by hand. */
  readonly iteration: number;
  readonly attempt: number;
  readonly step: number | null;
  /** When it ended. */
  readonly timeMs: number;
  readonly numRanks: number;
}

/** What is known of the chosen window on the chosen rank. */
export interface ModuleFacts {
  readonly source: "recorded" | "simulated" | "imported";
  /** fsdp2 or plain; empty where an imported report does not say. */
  readonly backend: string;
  readonly world: string;
  readonly root: string;
  /** Not empty: how the numbers differ from what really ran, e.g. `eager estimate`. */
  readonly estimate: string;
  /** The window ended early: an error, or the process died. */
  readonly incomplete: boolean;
  /** forward, given or none: how the batch was found. */
  readonly inputs: string;
  readonly numOptimizers: number | null;
  /** Sizes are rounded up to this, as the allocator does. */
  readonly roundingBytes: number | null;
  readonly torchVersion: string;
  /** None for reports that hold states only; they have no step timeline. */
  readonly numEvents: number | null;
  readonly numEventsDropped: number;
  /** What was not tracked and why, in words. */
  readonly reasons: readonly string[];
  /** Whether the modules' own bytes are known. */
  readonly hasOwn: boolean;
  /** The highest total of the window on the chosen device. */
  readonly peakBytes: number | null;
  /** When, since the window began. */
  readonly peakUs: number | null;
}

/** What values are compared with. */
export interface ModuleBaseline {
  readonly kind: "state" | "window" | "rank" | "median";
  readonly state: ModuleState;
  readonly window: string;
  /** None for the median. */
  readonly rank: number | null;
  /**
   * Ranks that were read for it; of the median, fewer than `of_ranks` where time or
   * memory did not allow all.
   */
  readonly numRanks: number;
  readonly ofRanks: number;
}

/** One category's column over the modules. */
export interface ModuleCategory {
  /** Fine name, e.g. `unsharded_param`. */
  readonly name: string;
  readonly group: CategoryGroup;
  /** Of the chosen measure; NaN where the module has no such state. */
  readonly bytes: Float64Array;
  /** The same of what is compared with; NaN where that has no such module or state. */
  readonly baselineBytes: Float64Array | null;
}

/**
 * The modules, parents before children; all columns have one value per module.
 *
 * A module's fqn is its parent's, a dot, and its name; a root's is its name.
 */
export interface ModuleTree {
  readonly names: readonly string[];
  /** Index into `names`. */
  readonly name: Int32Array;
  readonly types: readonly string[];
  /** Index into `types`; -1 where unknown. */
  readonly type: Int32Array;
  /** Row of the parent; -1 for a root. */
  readonly parent: Int32Array;
  readonly isFsdp: Uint8Array;
  /** This rank's part of the module's own parameters, not its children's; NaN: unknown. */
  readonly paramBytes: Float64Array;
  readonly bufferBytes: Float64Array;
}

/**
 * Route `/modules`: one rank's memory by module.
 *
 * Parameters: run, rank, window, state, call, device, measure, against, against_state,
 * against_window, against_rank. What is not asked for, or is not there, has a default: the last window, the rank with
 * the highest recorded peak, the device that holds most, `after_post_forward` or, where
 * that has no values, the next state that has; of a module called more than once the
 * call with the highest total. The answer says what it shows.
 */
export interface ModulesResponse {
  readonly run: RunSummary;
  /** In order of time; the newest 1,000. */
  readonly windows: readonly ModuleWindow[];
  readonly numWindows: number;
  /** None where the run has no module memory (then `absent` says why). */
  readonly window: string | null;
  /** Ranks that have this window. */
  readonly ranks: Int32Array;
  readonly rank: number | null;
  readonly state: ModuleState;
  /** Those with values in this window. */
  readonly states: readonly ModuleState[];
  /** From 0; None: of each module the call with the highest total. */
  readonly call: number | null;
  /** Most calls that any module has at this state. */
  readonly maxCalls: number;
  readonly device: string;
  readonly devices: readonly string[];
  readonly measure: ModuleMeasure;
  readonly facts: ModuleFacts | null;
  readonly baseline: ModuleBaseline | null;
  readonly tree: ModuleTree;
  /** Calls of each module at this state; 0: it has no such state. */
  readonly numCalls: Int32Array;
  /** Which of them is shown; -1 for none. */
  readonly callShown: Int32Array;
  /** When, since the window began; NaN where unknown. */
  readonly timeUs: Float64Array;
  /** All that the rank held then. */
  readonly totalBytes: Float64Array;
  /** What the module and those below it owned of it; NaN where unknown. */
  readonly ownBytes: Float64Array;
  readonly baselineTotalBytes: Float64Array | null;
  readonly baselineOwnBytes: Float64Array | null;
  /** Those that occur, in their fixed order; their sum is the measure's. */
  readonly categories: readonly ModuleCategory[];
  readonly absent: readonly Recorded[];
  readonly problems: readonly Problem[];
}

/** One category beside the sums `total_bytes` and `own_bytes` of what holds it. */
export interface ModuleSeries {
  readonly name: string;
  readonly group: CategoryGroup;
  readonly totalBytes: Float64Array;
  readonly ownBytes: Float64Array;
}

/** One module at one state, on one rank, window by window; in order of time. */
export interface ModuleOverWindows {
  /** ModuleWindow.id. */
  readonly windows: readonly string[];
  /** NaN where the window has none. */
  readonly step: Float64Array;
  /** NaN where the window has no such module or state. */
  readonly totalBytes: Float64Array;
  readonly ownBytes: Float64Array;
  readonly categories: readonly ModuleSeries[];
  /** All that this rank has; more than are listed where time did not allow all. */
  readonly ofWindows: number;
}

/** One module at one state, in one window, rank by rank; ranks ascend. */
export interface ModuleOverRanks {
  readonly rank: Int32Array;
  readonly totalBytes: Float64Array;
  readonly ownBytes: Float64Array;
  readonly categories: readonly ModuleSeries[];
  /** All that have the window; more than are listed where time did not allow all. */
  readonly ofRanks: number;
}

/** One module through one window on one rank: a row per state and call, by time. */
export interface ModuleMoments {
  readonly stateNames: readonly ModuleState[];
  /** Index into `state_names`. */
  readonly state: Int32Array;
  readonly call: Int32Array;
  readonly timeUs: Float64Array;
  readonly totalBytes: Float64Array;
  readonly ownBytes: Float64Array;
  readonly categories: readonly ModuleSeries[];
  /** Rows of further calls that are not listed. */
  readonly numLeftOut: number;
}

/**
 * Route `/module` (run, module, rank, window, state, call, device): one module.
 *
 * `module` is its fqn; the other parameters and defaults are those of `/modules`.
 */
export interface ModuleResponse {
  readonly run: RunSummary;
  readonly module: string;
  /** As `named_modules()` has it; empty for the root. */
  readonly path: string;
  readonly type: string;
  readonly isFsdp: boolean;
  readonly paramBytes: number | null;
  readonly bufferBytes: number | null;
  readonly window: string;
  readonly rank: number;
  readonly state: ModuleState;
  readonly call: number | null;
  readonly device: string;
  readonly moments: ModuleMoments;
  readonly overWindows: ModuleOverWindows;
  readonly overRanks: ModuleOverRanks;
  readonly problems: readonly Problem[];
}

/**
 * Forwards and backwards of modules on the x axis, outer ones first.
 *
 * Those narrower than about two pixels are left out, with all inside them.
 */
export interface ModuleSpans {
  /** Fqns that occur. */
  readonly modules: readonly string[];
  /** Index into `modules`. */
  readonly module: Int32Array;
  readonly kinds: readonly ("forward" | "backward" | "recompute")[];
  /** Index into `kinds`. */
  readonly kind: Uint8Array;
  readonly call: Int32Array;
  /** Row: spans of one row do not overlap, and lie inside those of the rows above. */
  readonly depth: Int32Array;
  readonly x0: Float64Array;
  readonly x1: Float64Array;
  readonly numLeftOut: number;
}

/** An instant of the whole window, e.g. the optimizer's start. */
export interface ModuleMark {
  readonly kind: "before_optimizer" | "after_optimizer" | "peak";
  readonly x: number;
}

/**
 * Route `/module_timeline`: categories through one window.
 *
 * Parameters: run, rank, window, device, axis, x0, x1, px.
 * `axis` is `time` (microseconds since the window began) or `event` (allocations and
 * frees counted from its start: nothing is hidden by long kernels). Column c covers
 * x0 + c * x_per_column and the following; its values are those at the moment of the
 * highest total inside it, so peaks never vanish.
 */
export interface ModuleTimelineResponse {
  readonly run: RunSummary;
  readonly window: string | null;
  readonly rank: number | null;
  readonly device: string;
  readonly devices: readonly string[];
  readonly axis: "time" | "event";
  readonly xLow: number;
  /** Full extent. */
  readonly xHigh: number;
  readonly x0: number;
  readonly xPerColumn: number;
  readonly totalBytes: Float64Array;
  /** Where inside the column its highest total stands. */
  readonly peakX: Float64Array;
  readonly categories: readonly ModuleCategory[];
  readonly spans: ModuleSpans;
  readonly marks: readonly ModuleMark[];
  readonly facts: ModuleFacts | null;
  readonly absent: readonly Recorded[];
  readonly problems: readonly Problem[];
}

/** One profiled function in one phase, over all ranks and attempts. */
export interface CollectedFunction {
  /** `step` for a whole step. */
  readonly function: string;
  readonly phase: string;
  readonly kinds: readonly FunctionKind[];
  readonly numRanks: number;
}

/**
 * Collected calls of one function on one rank, in order of time.
 *
 * All columns, and those of `FunctionStat`, have one value per call. The snap that
 * MemProfiler calls `rank.function.iteration.start` is the start of that call.
 */
export interface FunctionCalls {
  readonly attempt: Int32Array;
  /** 1-based; counted per function and phase, from 1 again in another attempt. */
  readonly iteration: Int32Array;
  /** The training step under way; NaN where unknown. */
  readonly step: Float64Array;
  /** NaN where there is no snap of the start. */
  readonly startMs: Float64Array;
  /** NaN where there is no snap of the end, e.g. because the process died inside. */
  readonly endMs: Float64Array;
  /** Bit 1: snaps, 2: hooks, 4: activations, 8: modules, 16: history. */
  readonly kinds: Uint8Array;
}

/** One recorded number at the start and end of each call; NaN: not recorded. */
export interface FunctionStat {
  /** As recorded, e.g. `allocated_bytes.all.current`, `rss_bytes`, `hook.rss_diff`. */
  readonly name: string;
  readonly unit: Unit;
  readonly group: FunctionGroup;
  readonly start: Float64Array;
  readonly end: Float64Array;
  /** End less start. */
  readonly difference: Float64Array;
}

/** One stat of one call, rank by rank; ranks ascend. */
export interface FunctionOverRanks {
  readonly stat: string;
  readonly unit: Unit;
  readonly rank: Int32Array;
  readonly start: Float64Array;
  readonly end: Float64Array;
  readonly difference: Float64Array;
  /** All that may have the call; more than were read where time did not allow all. */
  readonly ofRanks: number;
}

/** Modules of one capture, by their `named_modules()` path; the root's is empty. */
export interface ModuleNames {
  readonly paths: readonly string[];
  /** Class names; as many as paths. */
  readonly types: readonly string[];
}

/** What hooks set on modules under one name. */
export interface HookAttribute {
  readonly name: string;
  readonly unit: Unit;
  /** One per row of `HookValues.module`; NaN where the module has none. */
  readonly values: Float64Array;
}

/** What hooks said of every module in one call. */
export interface HookValues {
  readonly modules: ModuleNames;
  /** Index into `modules`, row by row. */
  readonly module: Int32Array;
  readonly attributes: readonly HookAttribute[];
  /** The call ended in an error. */
  readonly incomplete: boolean;
}

/** Tensors that autograd saved for backward in one call, by module and dtype. */
export interface SavedActivations {
  readonly modules: ModuleNames;
  /** Index into `modules`, row by row; -1: saved outside any module. */
  readonly module: Int32Array;
  readonly dtypes: readonly string[];
  /** Index into `dtypes`. */
  readonly dtype: Int32Array;
  readonly numTensors: Float64Array;
  /** Of distinct storages, without parameters and their views. */
  readonly bytes: Float64Array;
  /** The sum MemProfiler reports: every tensor that is not a parameter counts. */
  readonly nppCompatBytes: Float64Array;
  readonly totalBytes: number;
  readonly totalNppCompatBytes: number;
  /** The call ended in an error. */
  readonly incomplete: boolean;
}

/** A captured allocator history, or a file that holds one. */
export interface HistoryReference {
  /** Names it in requests; stays the same while the run grows. */
  readonly id: string;
  readonly rank: number;
  readonly attempt: number;
  /** Empty where it was taken by hand. */
  readonly function: string;
  readonly phase: string;
  /** 0 where it was taken by hand. */
  readonly iteration: number;
  readonly context: "start" | "end" | "";
  readonly label: string;
  readonly step: number | null;
  readonly timeMs: number;
  /** On disk. */
  readonly numBytes: number;
  /** Of a file beside the run's records, relative to the logdir; empty: recorded. */
  readonly path: string;
}

/**
 * Route `/functions` (run, rank, function, phase, attempt, iteration, stat).
 *
 * Memory around calls of functions: which functions, the calls of one of them on one
 * rank, and what was collected in one call. What is not asked for, or is not there,
 * has a default: the first function, the lowest rank that has it, the newest call, the
 * first stat. The answer says what it shows.
 */
export interface FunctionsResponse {
  readonly run: RunSummary;
  readonly source: "recorded" | "imported";
  /** At most 1,000. */
  readonly functions: readonly CollectedFunction[];
  /** None where nothing was collected (then `absent` says why). */
  readonly function: string | null;
  readonly phase: string;
  /** Ranks that have the function in this phase. */
  readonly ranks: Int32Array;
  readonly rank: number | null;
  /** The newest 1,000. */
  readonly calls: FunctionCalls;
  /** All there are; about, where they are many. */
  readonly numCalls: number;
  readonly stats: readonly FunctionStat[];
  /** With `iteration`: the call that the fields below are about. */
  readonly attempt: number | null;
  readonly iteration: number | null;
  readonly overRanks: FunctionOverRanks | null;
  readonly hooks: HookValues | null;
  readonly activations: SavedActivations | null;
  /** Of the rank: of every function and by hand, by time; the newest 1,000. */
  readonly histories: readonly HistoryReference[];
  /** ModuleWindow.id of the call, where its modules were tracked. */
  readonly moduleWindow: string | null;
  readonly absent: readonly Recorded[];
  readonly problems: readonly Problem[];
}

/** What each data route answers. */
export interface Responses {
  readonly runs: RunsResponse;
  readonly overview: OverviewResponse;
  readonly timeline: TimelineResponse;
  readonly heatmap: HeatmapResponse;
  readonly host: HostResponse;
  readonly modules: ModulesResponse;
  readonly module: ModuleResponse;
  readonly module_timeline: ModuleTimelineResponse;
  readonly functions: FunctionsResponse;
}
