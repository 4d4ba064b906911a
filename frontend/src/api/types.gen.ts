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

export type HeadlineKey =
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

export type HeadlineCaveat =
  | "sampled"
  | "estimated"
  | "cumulative_peak"
  | "no_limit"
  | "few_steps"
  | "after_warmup"
  | "one_host";

/**
 * How a recording ended that did not end in order.
 *
 * exception  one that nobody caught, or that left `record`'s with-block
 * signal     one that ends the process, where `oom.on_sigterm` has it listened to
 * lost       no closing record and no new rows: killed, or its machine or disk was lost
 */
export type EndedHow =
  | "exception"
  | "signal"
  | "lost";

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
 * What a module and those below it hold; or all that the rank held at the module's moment
 * (what torch's trackers print).
 */
export type ModuleMeasure =
  | "held"
  | "total";

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

/**
 * What took it: a collected call's side; `rec.snapshot`; an out-of-memory error; an
 * exception nobody caught; a signal that ended the process. `file`: another tool wrote it.
 */
export type HistoryOrigin =
  | "call"
  | "by_hand"
  | "oom"
  | "exception"
  | "signal"
  | "file";

/** closed: nobody asked for it yet. */
export type HistoryState =
  | "closed"
  | "opening"
  | "ready"
  | "failed";

/**
 * As torch counts: active until free_completed, allocated until free_requested; reserved
 * is what the segments take of the device.
 */
export type HistoryLevel =
  | "active"
  | "allocated"
  | "reserved";

/**
 * An event `oom` or `snapshot`; a span of `external_annotations`; a step of our tags;
 * a span of events whose `user_metadata` is the program's own.
 */
export type HistoryMarkKind =
  | "oom"
  | "snapshot"
  | "annotation"
  | "step"
  | "tag";

/**
 * What lies on what: categories one upon the other; the colours' groups likewise; or all
 * in order of birth, as memory_viz stacks them. Within each, in order of birth.
 */
export type AllocationOrder =
  | "category"
  | "group"
  | "allocation";

/**
 * What a group is. module: as `StacksResponse.module`. stack: the line of the user's own
 * code. age: how long it lived, or has lived when the history ends: in time where the
 * history has times, else in events.
 */
export type AllocationColour =
  | "category"
  | "module"
  | "stack"
  | "age"
  | "stream"
  | "pool";

/** address ascends; the others descend, but age: the oldest first. */
export type SegmentSort =
  | "address"
  | "size"
  | "free"
  | "largest_free"
  | "age";

/** Which of the allocator's pools: requests of at most 1 MiB are small. */
export type SizeClass =
  | "small"
  | "large";

export type AllocatorAction =
  | "alloc"
  | "free_requested"
  | "free_completed"
  | "free"
  | "segment_alloc"
  | "segment_free"
  | "segment_map"
  | "segment_unmap"
  | "snapshot"
  | "oom"
  | "annotate"
  | "unknown";

export type TraceTrackKind =
  | "host"
  | "device"
  | "python"
  | "span"
  | "counter"
  | "other";

/**
 * trace: a profiler's file. spans: what the recording itself timed. counters: numbers of
 * the recording's step and host tables over time.
 */
export type TraceSourceKind =
  | "trace"
  | "spans"
  | "counters";

/**
 * What kind of work a slice is: its colour. runtime: calls that launch work or wait for
 * it. memory: copies and fills on a device.
 */
export type TraceFamily =
  | "kernel"
  | "operator"
  | "runtime"
  | "python"
  | "communication"
  | "memory"
  | "step"
  | "forward"
  | "backward"
  | "optimizer"
  | "dataloader"
  | "annotation"
  | "other";

/** What is drawn apart: errors of memory, and checkpoints that were written. */
export type TraceInstantKind =
  | "oom"
  | "checkpoint"
  | "other";

export type TraceReduced =
  | "exact"
  | "highest"
  | "mean";

export type TraceState =
  | "opening"
  | "ready"
  | "failed";

/** found: nobody asked for it yet. */
export type TraceFileState =
  | "found"
  | "opening"
  | "ready"
  | "failed";

/** In the order in which they claim time: each moment counts for the first one. */
export type ProfileRole =
  | "kernel"
  | "memcpy"
  | "memset"
  | "communication"
  | "runtime"
  | "dataloader"
  | "cpu_exec"
  | "other";

/**
 * What says whose an operator of backward is: the profiler's arrows or its numbers; or
 * why nothing does: no backward ran, its operators name none of forward, or those that they
 * name lie in no module.
 */
export type ModuleBackward =
  | "arrows"
  | "sequence_numbers"
  | "not_run"
  | "not_linked"
  | "not_in_modules";

export type OperatorsBy =
  | "name"
  | "shapes";

export type OperatorCharge =
  | "allocating"
  | "freeing";

/** The step's time, or one of the parts that add up to it; communication is exposed. */
export type DistributedPart =
  | "step"
  | "computation"
  | "overlap"
  | "communication"
  | "other";

/** line: of the user's own code; size: powers of two. */
export type CompareBy =
  | "category"
  | "line"
  | "module"
  | "size";

/**
 * exact: the same lines of the same files. function: the same functions of files of the
 * same name, whatever the line and the folder: for two versions of the code.
 */
export type StackMatch =
  | "exact"
  | "function";

/**
 * Why a request could not be served; `tb_plugin.analysis.oom.verdict` says how each is told.
 *
 * really_full         what the training holds at once is more than the device has
 * fragmented          enough is free where the request belongs, in pieces too small
 * growth              memory retained across steps filled the GPU
 * single_giant        one request far beyond all before it, while there was room for those
 * imbalance           this rank holds much more than the others, which have room
 * non_torch           memory outside torch took what torch would have needed
 * fitting_block_free  a free block would have fitted, of another stream or memory pool
 * private_pools       much is free, but in private memory pools that the request may not use
 * pending_free        memory was freed, and waits until another stream is done with it
 * process_limit       the device had room, and a limit on this process refused the request
 * unsure              the recorded facts fit none of them
 */
export type OomCause =
  | "really_full"
  | "fragmented"
  | "growth"
  | "single_giant"
  | "imbalance"
  | "non_torch"
  | "fitting_block_free"
  | "private_pools"
  | "pending_free"
  | "process_limit"
  | "unsure";

/**
 * The out-of-memory observer; an exception nobody caught; a signal that ended the
 * process; or an event inside a snapshot that something else wrote.
 */
export type OomOrigin =
  | "oom"
  | "exception"
  | "signal"
  | "file";

/**
 * Whose steps are shown: one rank's, of each column those of the rank that was slowest
 * there, or those of the rank in the middle there (of two the faster).
 */
export type StepsOf =
  | "rank"
  | "worst"
  | "median";

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

/** Other tools' files seen in the logdir that no run is made of, by kind. */
export interface ForeignFiles {
  readonly kind: "tfevents" | "memprofiler" | "other";
  readonly numFiles: number;
  /** One path, relative to the logdir. */
  readonly example: string;
}

/** One training job: what the run picker shows. */
export interface RunSummary {
  readonly id: string;
  /** As TensorBoard names it; may hold any text, show as text. */
  readonly name: string;
  /** 0 where files of snapshots tell no rank. */
  readonly numRanks: number;
  /** 0 where nothing tells it. */
  readonly worldSize: number;
  readonly numAttempts: number;
  readonly firstMs: number;
  /** When the newest row was written. */
  readonly lastMs: number;
  readonly lastStep: number | null;
  /** Rows arrived within the last 30 s and no rank's last attempt has closed. */
  readonly live: boolean;
  readonly simulated: boolean;
  /**
   * Words for the device where it was a virtual one ("virtual H100 80GB"): memory is what
   * torch's allocator did, values and times are not real. Empty: it was a real one.
   */
  readonly virtualGpu: string;
  /** Made of another tool's files: it has no steps and no headers. */
  readonly imported: boolean;
  /**
   * snapshots: of files of allocator snapshots, whoever dumped them; traces: of files
   * of profilers' traces.
   */
  readonly madeOf: "recording" | "memprofiler" | "snapshots" | "traces";
  /** cuda, xpu, mps ...; cpu where there is no accelerator; empty: nothing tells it. */
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
  /** The largest file that may be dropped onto the page; 0 where none may. */
  readonly dropLimitBytes: number;
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
  /** The worst end of its ranks, see `EndedHow`. */
  readonly ended: "closed" | "exception" | "signal" | "lost" | "running";
  /** Two jobs wrote into this run at the same time. */
  readonly overlapsPrevious: boolean;
}

/** One of the six headline numbers. */
export interface Headline {
  readonly key: HeadlineKey;
  readonly value: number | null;
  readonly unit: Unit;
  /** The worst rank, where the number is a rank's. */
  readonly rank: number | null;
  readonly step: number | null;
  /** At most 120 values over the run, of the worst rank. */
  readonly sparkline: Float64Array;
  readonly caveats: readonly HeadlineCaveat[];
  /** Why there is no value; set exactly when value is None. */
  readonly absentReason: string | null;
  /** Where the value is an end of an estimated range, the worse one: the other one. */
  readonly otherEnd: number | null;
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
  /**
   * Of all ranks of the run, also where one is shown; None too while some are still
   * being read.
   */
  readonly medianPeakBytes: number | null;
  /**
   * Ranks shown that are far above all others (see analysis/ranks.py), worst first, at
   * most 16.
   */
  readonly outliers: readonly number[];
  /** Ranks still being read: nothing is said of all ranks before it is 0. */
  readonly numUnread: number;
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

/** How the last attempt of one rank ended. */
export interface RankEnding {
  readonly rank: number;
  readonly attempt: number;
  readonly how: EndedHow;
  /** Type and first line of the exception, or the signal's name; else empty. */
  readonly message: string;
  /** The training step under way; of lost ones the last that was written. */
  readonly step: number | null;
  /** The phase the exception came from, or under way; empty: not known. */
  readonly phase: string;
  /** Of the end; of lost ones the last sign of life. */
  readonly timeMs: number;
  /** Highest resident memory of its last steps. */
  readonly rssBytes: number | null;
  /** What its control group may hold. */
  readonly memoryLimitBytes: number | null;
  readonly sentence: string;
  /** Where to look, and what to switch on to know more; may be empty. */
  readonly advice: string;
}

/** Ranks that did not end in order: exceptions first, then lost ones, then signals. */
export interface RankEndings {
  readonly numException: number;
  readonly numSignal: number;
  readonly numLost: number;
  /** The first of them, and how many others; empty where there is none. */
  readonly sentence: string;
  /** At most 16 of each kind, the earliest first. */
  readonly ranks: readonly RankEnding[];
}

/** What takes memory of a real device and not of a virtual one: a range. */
export interface Estimate {
  readonly name: string;
  readonly lowBytes: number;
  /** As low_bytes where it was measured. */
  readonly highBytes: number;
  readonly source: string;
}

/** One device of a process that ran on virtual ones. */
export interface PredictedDevice {
  readonly device: number;
  readonly peakReservedBytes: number;
  readonly othersLowBytes: number;
  /** What other ranks need of it; zero: it is this rank's alone. */
  readonly othersHighBytes: number;
  readonly neededLowBytes: number | null;
  /**
   * With the low and the high ends of the estimates; None: it did not run its steps, so
   * nobody knows.
   */
  readonly neededHighBytes: number | null;
}

/** Whether a run on a virtual GPU fits a real one, as `memboard run --on` says it. */
export interface Prediction {
  /** Of all ranks asked for: the worst counts. */
  readonly fit: "fits" | "does not fit" | "too close to say" | "cannot say";
  /** One sentence, without the word itself. */
  readonly reason: string;
  /** Where it is too close to say: what would decide, one sentence; may be empty. */
  readonly decides: string;
  /** Whose answer it is; the rest is this rank's. */
  readonly rank: number;
  /** Ranks that were predicted. */
  readonly numRanks: number;
  /** Outside of torch's allocator, on each device. */
  readonly estimates: readonly Estimate[];
  readonly outsideLowBytes: number;
  /** All estimates together. */
  readonly outsideHighBytes: number;
  /** Of each device. */
  readonly capacityBytes: number;
  /** Those it used; empty before its end. */
  readonly devices: readonly PredictedDevice[];
}

/** Route `/overview` (run, rank). */
export interface OverviewResponse {
  readonly run: RunSummary;
  readonly rank: number | null;
  readonly headlines: readonly Headline[];
  readonly strip: RankStrip;
  readonly recorded: readonly Recorded[];
  readonly attempts: readonly Attempt[];
  readonly endings: RankEndings;
  readonly problems: readonly Problem[];
  readonly facts: readonly RunFact[];
  /** Simulated runs say which faults were planted; empty for real runs. */
  readonly planted: readonly string[];
  /** Of a run on a virtual GPU; None: of a real one, or nothing was predicted. */
  readonly prediction: Prediction | null;
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
  /** Whether it is known which module holds what. */
  readonly hasHeld: boolean;
  /** The highest total of the window on the chosen device. */
  readonly windowPeakBytes: number | null;
  /** When, since the window began. */
  readonly windowPeakUs: number | null;
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

/** Bytes of one category that belong to no module. */
export interface ModuleUnattributed {
  /** Fine name, as `ModuleCategory.name`. */
  readonly name: string;
  readonly group: CategoryGroup;
  readonly bytes: number;
}

/** All that a rank held at one moment: by modules, and by none. */
export interface ModuleSplit {
  readonly totalBytes: number;
  /** Sum of the modules without a parent. */
  readonly heldBytes: number;
  /** The rest: inputs, the optimizer's own work, what was there before the call. */
  readonly unattributedBytes: number;
  /** The rest by category, in their fixed order. */
  readonly unattributed: readonly ModuleUnattributed[];
}

/**
 * Route `/modules`: one rank's memory by module.
 *
 * Parameters: run, rank, window, state, call, device, measure, against, against_state,
 * against_window, against_rank. What is not asked for, or is not there, has a default: the last window, the rank with
 * the highest recorded peak, the device that holds most, the window's peak (of reports
 * without the modules' own bytes, `after_post_forward` or the next state that has
 * values); of a module called more than once the call with the highest total. The answer says what it shows.
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
  /** What the module and those below it held of it; NaN where unknown. */
  readonly heldBytes: Float64Array;
  /**
   * What the module held by itself: its parameters, gradients, optimizer states and
   * what its calls allocated. At one moment for all modules `held_bytes` is this and the
   * sum over the module's children.
   */
  readonly ownBytes: Float64Array;
  /** None where each module has a moment of its own. */
  readonly split: ModuleSplit | null;
  readonly baselineTotalBytes: Float64Array | null;
  readonly baselineHeldBytes: Float64Array | null;
  readonly baselineOwnBytes: Float64Array | null;
  /** Those that occur, in their fixed order; their sum is the measure's. */
  readonly categories: readonly ModuleCategory[];
  readonly absent: readonly Recorded[];
  readonly problems: readonly Problem[];
}

/** One category beside the sums `total_bytes` and `held_bytes` of what holds it. */
export interface ModuleSeries {
  readonly name: string;
  readonly group: CategoryGroup;
  readonly totalBytes: Float64Array;
  readonly heldBytes: Float64Array;
}

/** One module at one state, on one rank, window by window; in order of time. */
export interface ModuleOverWindows {
  /** ModuleWindow.id. */
  readonly windows: readonly string[];
  /** NaN where the window has none. */
  readonly step: Float64Array;
  /** NaN where the window has no such module or state. */
  readonly totalBytes: Float64Array;
  readonly heldBytes: Float64Array;
  readonly categories: readonly ModuleSeries[];
  /** All that this rank has; more than are listed where time did not allow all. */
  readonly ofWindows: number;
}

/** One module at one state, in one window, rank by rank; ranks ascend. */
export interface ModuleOverRanks {
  readonly rank: Int32Array;
  readonly totalBytes: Float64Array;
  readonly heldBytes: Float64Array;
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
  readonly heldBytes: Float64Array;
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
  /** None: a file whose name does not say. */
  readonly rank: number | null;
  /** 1 of files. */
  readonly attempt: number;
  /** Empty where it was not taken around a call. */
  readonly function: string;
  readonly phase: string;
  /** 1-based; 0 where it was not taken around a call. */
  readonly iteration: number;
  readonly context: "start" | "end" | "";
  /** The user's own name for it, or what a file's name says; may hold any text. */
  readonly label: string;
  readonly step: number | null;
  /** When it was taken; of a file: when it was last written. */
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

/** One history of the list. */
export interface HistoryChoice {
  /** `id` names it in requests (`history`). */
  readonly reference: HistoryReference;
  readonly origin: HistoryOrigin;
  readonly state: HistoryState;
  /** Why it cannot be opened, where it failed; else empty. */
  readonly problem: string;
}

/** Route `/histories` (run, rank): every history of a run, of all ranks, by time. */
export interface HistoriesResponse {
  readonly run: RunSummary;
  /** The newest 1,000. */
  readonly histories: readonly HistoryChoice[];
  /** All that were found so far. */
  readonly numHistories: number;
  /** Ranks that have any, ascending, whatever `rank` asks for. */
  readonly ranks: readonly number[];
  /** `id` of what is opened first: the first out-of-memory error's, else the newest. */
  readonly default: string | null;
  /** Files of some ranks were not looked through yet: ask again. */
  readonly stillReading: boolean;
  /** Why there is none, or less than could be, and how to record it. */
  readonly absent: readonly Recorded[];
  readonly problems: readonly Problem[];
}

/** The highest level of one kind. */
export interface HistoryPeak {
  readonly level: HistoryLevel;
  /** active and allocated: of known allocations, as the pictures show them. */
  readonly bytes: number;
  /** The first event that reached it; -1: it was so before all of them. */
  readonly moment: number;
}

/** Events and spans that have names; columns of equal length, by `moment`. */
export interface HistoryMarks {
  /** Index in `kinds`. */
  readonly kind: Uint8Array;
  readonly kinds: readonly HistoryMarkKind[];
  /** Of spans: the last event before it began, -1 where it began before all. */
  readonly moment: Int32Array;
  /** Of spans: the last event of it; equal to `moment` where it is no span. */
  readonly end: Int32Array;
  /** Index in `labels`. */
  readonly label: Int32Array;
  /** May hold any text, at most 200 characters each. */
  readonly labels: readonly string[];
  /** oom: asked for; snapshot: active; else NaN. */
  readonly bytes: Float64Array;
  /** oom: bytes the device had free; else NaN. */
  readonly deviceFree: Float64Array;
  /** The step under way; NaN where unknown. */
  readonly step: Float64Array;
  /**
   * All of the device. Of a whole history the columns hold at most 2,000, of a part of
   * it (`AllocationsResponse`) 600: out-of-memory errors first, then, everywhere in it,
   * the longest.
   */
  readonly numMarks: number;
}

/** The whole history in at most 2,000 columns of equally many events. */
export interface HistoryCurve {
  /** First event of each column. */
  readonly event: Int32Array;
  /** The event inside it with the highest active level. */
  readonly peak: Int32Array;
  /** Bytes at `peak`, of known allocations; likewise `allocated`. */
  readonly active: Float64Array;
  /** Highest bytes inside the column. */
  readonly allocated: Float64Array;
  /** Highest bytes inside the column. */
  readonly reserved: Float64Array;
  /** Since the epoch, of the first event; NaN where the file has no times. */
  readonly timeMs: Float64Array;
}

/** One device of a history. */
export interface HistoryDevice {
  readonly device: number;
  readonly numEvents: number;
  /** With those from before the first event; `life` counts to this. */
  readonly numAllocations: number;
  readonly hasTimes: boolean;
  /** Since the epoch, of the first event; None without times. */
  readonly firstMs: number | null;
  readonly lastMs: number | null;
  /** Of the device; None where it was not recorded. */
  readonly capacityBytes: number | null;
  /** At the end, blocks as rounded by the allocator; likewise the next two. */
  readonly activeBytes: number;
  readonly allocatedBytes: number;
  readonly reservedBytes: number;
  /**
   * Allocations from before the first event: their stack and birth are not known,
   * unless they were still there at the end.
   */
  readonly numBefore: number;
  readonly beforeBytes: number;
  /** Frees of what was free already: events in between were lost, or are wrong. */
  readonly numLost: number;
  /**
   * How much higher torch's own active level is than that of known allocations, by what
   * it was at the end: rounding, and what was lost. May be negative.
   */
  readonly residualBytes: number;
  /** One per `HistoryLevel`. */
  readonly peaks: readonly HistoryPeak[];
  readonly marks: HistoryMarks;
  readonly curve: HistoryCurve;
}

/** Something that contradicts itself in the file: set right, or drawn as it is. */
export interface HistoryOddity {
  /** In words that go on "The file holds 3 ...". */
  readonly what: string;
  readonly count: number;
}

/** One of the allocator's settings. */
export interface HistorySetting {
  readonly name: string;
  /** As text; may hold any. */
  readonly value: string;
}

/** What a history that was opened says. */
export interface HistoryFacts {
  /** By number. */
  readonly devices: readonly HistoryDevice[];
  /**
   * Where an out-of-memory error happened, else the one with the highest peak; None:
   * there is no device.
   */
  readonly defaultDevice: number | null;
  /** By row: `default`, or its pointer in hexadecimal. */
  readonly streams: readonly string[];
  /** By row: `default` (always row 0), or the private pool's id, e.g. `(0, 1)`. */
  readonly pools: readonly string[];
  readonly settings: readonly HistorySetting[];
  readonly numStacks: number;
  /** The training said what lies at which address: categories rest on that. */
  readonly hasTensors: boolean;
  readonly oddities: readonly HistoryOddity[];
}

/**
 * Route `/history` (run, history, again): opens it, and says what it holds.
 *
 * `again`: any number that was not used before, e.g. the time, has a history that could
 * not be opened tried once more.
 *
 * Answers within about a second: while `state` is `opening`, ask again.
 */
export interface HistoryResponse {
  readonly run: RunSummary;
  readonly reference: HistoryReference;
  readonly origin: HistoryOrigin;
  readonly state: HistoryState;
  /** 0 to 1. */
  readonly progress: number;
  /** What is being done, in words; empty when it is ready. */
  readonly doing: string;
  /** None unless it is ready. */
  readonly facts: HistoryFacts | null;
  /** Why it failed, or what could not be read of it. */
  readonly problem: Problem | null;
}

/**
 * Route `/stacks` (run, history): call stacks; the same for all devices.
 *
 * Columns by frame: name, filename, line. By stack: user_frame, module, and (one more)
 * start. `frame` holds the stacks' frames one after the other, innermost first.
 */
export interface StacksResponse {
  /** Distinct texts, at most 1,000 characters each; may hold any text. */
  readonly strings: readonly string[];
  /** Index in `strings`: the function. */
  readonly name: Int32Array;
  /** Index in `strings`. */
  readonly filename: Int32Array;
  /** 0: not known. */
  readonly line: Int32Array;
  /** By frame: 0 the user's own code, 1 a library's, 2 torch's, 3 native. */
  readonly kind: Uint8Array;
  /** Where each stack begins in `frame`; its last value is the length of `frame`. */
  readonly start: Int32Array;
  readonly frame: Int32Array;
  /**
   * The frame that stands for a stack in tables: the innermost of the user's own
   * code, else the innermost Python one; -1: none.
   */
  readonly userFrame: Int32Array;
  /**
   * Index in `strings`: the innermost module whose `forward` the stack was in, by its
   * lines (`model.py:31-40 forward`: frames name no classes); -1: none.
   */
  readonly module: Int32Array;
  /**
   * All of the history; those beyond the columns were left out (more than 200,000
   * stacks or 4 million frames).
   */
  readonly numStacks: number;
}

/** What is drawn in one colour, or stacked as one. */
export interface AllocationGroup {
  /** Stays the same whatever part of the history is shown. */
  readonly key: string;
  /** May hold any text. */
  readonly label: string;
  /** None: it is of no category, and gets a colour by its place. */
  readonly category: CategoryGroup | null;
  /** Of groups by stack: one of its stacks; else None. */
  readonly stack: number | null;
  /** Live at the highest column of this answer. */
  readonly bytes: number;
}

/** Pixel columns from left to right; all columns have this length but `edge`. */
export interface AllocationColumns {
  /**
   * One more than columns: where each begins, and the end of the last. axis=event:
   * index of an event; axis=time: milliseconds since the device's first event.
   */
  readonly edge: Float64Array;
  /**
   * The event each stands for: the one inside it with the highest active level; where
   * none lies inside (axis=time), the last one before.
   */
  readonly moment: Int32Array;
  /** Bytes of all known allocations live at `moment`: what is stacked, rests included. */
  readonly active: Float64Array;
  /**
   * Bytes at `moment`; of a stream or a pool, where one was asked for. NaN: of both
   * at once it cannot be told.
   */
  readonly reserved: Float64Array;
}

/** Allocations that have a run, each once; columns of equal length. */
export interface AllocationLives {
  readonly life: Int32Array;
  /** Bytes as asked for. */
  readonly size: Float64Array;
  /** Its event; -1: before all. */
  readonly born: Int32Array;
  /**
   * Event of its free_requested; the number of events where there is none. -1: the
   * block waited to be freed, and nothing says since when.
   */
  readonly freed: Int32Array;
  /** Event of its free_completed; the number of events where there is none. */
  readonly gone: Int32Array;
  /** -1: none was recorded. */
  readonly stack: Int32Array;
  /** Index in `AllocationsResponse.groups`: its colour. */
  readonly group: Uint16Array;
  /** Index in `AllocationsResponse.bands`: what it is stacked with. */
  readonly band: Uint16Array;
}

/** An allocation at one height in its band over columns `first` to `last`, inclusive. */
export interface AllocationRuns {
  /** Row of `AllocationLives`. Ascends; a life's runs are in order of columns. */
  readonly slot: Int32Array;
  readonly first: Uint16Array;
  readonly last: Uint16Array;
  /**
   * Bytes below it within its band: those of the bands below come on top, column by
   * column, so that a run does not end where another band grows.
   */
  readonly offset: Float64Array;
}

/**
 * Route `/allocations`: live allocations as a picture, exact at every column.
 *
 * Parameters besides run, history and device::
 *
 * axis    event (default) | time
 * e0, e1  axis=event: first event, and the one after the last; default: all
 * t0, t1  axis=time: milliseconds since the device's first event; default: all
 * y0, y1  bytes at the bottom and the top of the picture; default: 0 and the
 * highest total. Runs outside are left out.
 * px      columns at most (default 1,200); rows: height in pixels (default 800)
 * order   AllocationOrder (default category); colour: AllocationColour (category)
 * stream  row of HistoryFacts.streams; pool: row of HistoryFacts.pools: those alone
 */
export interface AllocationsResponse {
  readonly device: number;
  /** time falls back to event where the history has no times. */
  readonly axis: "event" | "time";
  readonly columns: AllocationColumns;
  readonly lives: AllocationLives;
  readonly runs: AllocationRuns;
  /** By colour, lowest first; at most 13. */
  readonly groups: readonly AllocationGroup[];
  /** What is stacked as one, lowest first: `order`'s groups, or one for all. */
  readonly bands: readonly AllocationGroup[];
  /**
   * bands x columns, row by row: bytes of allocations below `min_bytes`, which lie
   * summed up on top of their band.
   */
  readonly rest: Float64Array;
  /**
   * bands x columns, row by row: all bytes of a band, its rest included. The bands
   * below it add up to where it begins.
   */
  readonly bandBytes: Float64Array;
  /** Allocations below it are in `rest`: less than 0.75 pixels. */
  readonly minBytes: number;
  /** Top of the picture: `y1`, or the highest total. */
  readonly topBytes: number;
  /** Highest `active` of the device over the whole history: with `peak_moment`. */
  readonly peakBytes: number;
  readonly peakMoment: number;
  /** What has a name in this part; None where `HistoryDevice.marks` are all there are. */
  readonly marks: HistoryMarks | null;
}

/**
 * Route `/allocation_holders` (as `/allocations`): who holds what in each column.
 *
 * A running sum over columns of a slot's changes is its live bytes; slots sum up to
 * `AllocationColumns.active` of the same question exactly.
 */
export interface AllocationHoldersResponse {
  readonly device: number;
  /** By column, as `AllocationColumns.moment`. */
  readonly moment: Int32Array;
  /** By slot: the stack, -1: without one. The last slot is -2: all other stacks. */
  readonly stack: Int32Array;
  /** Of each change: where; changes are in order of columns. */
  readonly column: Uint16Array;
  /** Of each change: whose. */
  readonly slot: Uint16Array;
  /** Of each change: bytes; in column 0 what is live there. */
  readonly change: Float64Array;
  /**
   * Stacks in the last slot: those that hold least at their own highest; at most 256
   * have slots of their own.
   */
  readonly numOthers: number;
  readonly categories: readonly CategoryGroup[];
  /** categories x columns, row by row: live bytes. */
  readonly categoryBytes: Float64Array;
  /** By column: bytes without what only waits to be freed. */
  readonly allocated: Float64Array;
}

/** What one category holds at a moment. */
export interface AllocationCategory {
  readonly category: CategoryGroup;
  readonly bytes: number;
  readonly numBlocks: number;
}

/** One line of where the device's memory went. */
export interface LedgerEntry {
  /**
   * live, rounding, pending_free, inactive_split, free_segments, private_pools,
   * non_torch; see `tb_plugin.analysis.allocator.ledger`.
   */
  readonly key: string;
  /** None: nothing recorded it. */
  readonly bytes: number | null;
  /** What makes it less than measured; empty: nothing does. */
  readonly caveat: string;
}

/** Where the device's memory went at a moment. */
export interface AllocationLedger {
  readonly entries: readonly LedgerEntry[];
  /** The sum of `live` to `private_pools`. */
  readonly reservedBytes: number;
  /** Of the whole device; None where nothing recorded it. */
  readonly deviceUsedBytes: number | null;
  /** Used less all entries: what nobody accounts for. */
  readonly residualBytes: number | null;
}

/**
 * Route `/allocation_live` (run, history, device, moment, stream, pool): exact.
 *
 * Without `moment`: at the peak of active bytes.
 */
export interface AllocationLiveResponse {
  readonly device: number;
  readonly moment: number;
  /** Since the epoch. */
  readonly timeMs: number | null;
  readonly step: number | null;
  readonly phase: string;
  /** Of known allocations, as asked for; likewise all below but the ledger. */
  readonly activeBytes: number;
  readonly allocatedBytes: number;
  /** None: of both a stream and a pool it cannot be told. */
  readonly reservedBytes: number | null;
  readonly numBlocks: number;
  readonly categories: readonly AllocationCategory[];
  /** By stack, most bytes first: the stack, -1: without one; at most 20,000. */
  readonly stack: Int32Array;
  readonly stackBytes: Float64Array;
  readonly stackBlocks: Int32Array;
  /** Index in `categories`: the one that holds most of the stack's bytes. */
  readonly stackCategory: Uint8Array;
  /** The largest 100; `group` and `band` are the index in `categories`. */
  readonly largest: AllocationLives;
  /** None where only one stream or pool was asked for. */
  readonly ledger: AllocationLedger | null;
}

/** Where an event lies, as people speak of it. */
export interface AllocationMoment {
  readonly moment: number;
  /** Since the epoch; None without times. */
  readonly timeMs: number | null;
  readonly step: number | null;
  readonly phase: string;
}

/** Route `/allocation_block` (run, history, device, life): one allocation's card. */
export interface AllocationBlockResponse {
  readonly device: number;
  readonly life: number;
  /**
   * Address and how often it was used before, as memory_viz names it:
   * `b7f3a40000000_2`.
   */
  readonly name: string;
  /** In hexadecimal. */
  readonly address: string;
  /** As asked for; as rounded where only that is known (`is_rounded`). */
  readonly sizeBytes: number;
  readonly isRounded: boolean;
  /** What it takes of its segment: recorded, or by the allocator's rule of rounding. */
  readonly blockBytes: number;
  /** None: before the first event. */
  readonly born: AllocationMoment | null;
  /** None: not in the history; likewise the next. */
  readonly freed: AllocationMoment | null;
  readonly gone: AllocationMoment | null;
  /** Row of `HistoryFacts.streams`; None: not recorded. */
  readonly stream: number | null;
  /** Row of `HistoryFacts.pools`; None: not recorded. */
  readonly pool: number | null;
  /** None: no stack was recorded. */
  readonly stack: number | null;
  readonly category: CategoryGroup;
  /** Why that category, in words. */
  readonly evidence: string;
  /** Name the training knew it by; empty: none. */
  readonly tensor: string;
  /** The event's `user_metadata`; may hold any text, at most 1,000 characters. */
  readonly tag: string;
  /** The event's; empty: none. */
  readonly compileContext: string;
  /** Others of the same stack that live at `moment`. */
  readonly numSiblings: number;
  readonly siblingBytes: number;
  /** Of the same stack over the whole history, itself included. */
  readonly numEver: number;
  /** Of the segment it was allocated in, hexadecimal; empty: not known. */
  readonly segmentAddress: string;
  readonly segmentBytes: number | null;
}

/**
 * Route `/allocation_range` (run, history, device, e0, e1, stream, pool): by stack.
 *
 * Of allocations born in events e0 up to, without, e1: what of them was gone by then,
 * and what was still live. Columns by stack, most live bytes first; at most 20,000.
 */
export interface AllocationRangeResponse {
  readonly device: number;
  readonly e0: number;
  readonly e1: number;
  readonly first: AllocationMoment;
  readonly last: AllocationMoment;
  readonly allocatedBytes: number;
  readonly numAllocated: number;
  /** Of those allocated in the range; likewise the next three. */
  readonly freedBytes: number;
  readonly numFreed: number;
  readonly liveBytes: number;
  readonly numLive: number;
  /** Gone in the range, and born before it. */
  readonly earlierFreedBytes: number;
  readonly numEarlierFreed: number;
  /** Of the active level inside the range, with `highest_moment`. */
  readonly highestBytes: number;
  readonly highestMoment: number;
  readonly stack: Int32Array;
  /** Index in `categories`. */
  readonly stackCategory: Uint8Array;
  readonly categories: readonly CategoryGroup[];
  readonly stackAllocatedBytes: Float64Array;
  readonly stackNumAllocated: Int32Array;
  readonly stackFreedBytes: Float64Array;
  readonly stackNumFreed: Int32Array;
  readonly stackLiveBytes: Float64Array;
  readonly stackNumLive: Int32Array;
}

/** Segments in the order that was asked for; columns of equal length. */
export interface SegmentRows {
  readonly address: Float64Array;
  readonly totalBytes: Float64Array;
  /** Of allocated blocks, as rounded; likewise the next two. */
  readonly allocatedBytes: Float64Array;
  /** Freed, and waiting for another stream. */
  readonly pendingBytes: Float64Array;
  readonly freeBytes: Float64Array;
  /** As asked for, of allocated and pending blocks. */
  readonly requestedBytes: Float64Array;
  readonly largestFreeBytes: Float64Array;
  /** Blocks that are allocated or pending. */
  readonly numActive: Int32Array;
  /** Row of `HistoryFacts.streams`. */
  readonly stream: Int32Array;
  /** Row of `HistoryFacts.pools`; -1: not recorded. */
  readonly pool: Int32Array;
  readonly isLarge: Uint8Array;
  readonly isExpandable: Uint8Array;
  /** The event that brought it, or its first part; -1: before all. */
  readonly opened: Int32Array;
  /** Of that event; -1: none. */
  readonly stack: Int32Array;
  /** Row of `SegmentBlocks` where its blocks begin. */
  readonly firstBlock: Int32Array;
  /** 0 where its blocks were left out. */
  readonly numBlocks: Int32Array;
}

/** Blocks of the segments, by address within each; columns of equal length. */
export interface SegmentBlocks {
  /** Bytes from the segment's address. */
  readonly offset: Float64Array;
  readonly size: Float64Array;
  /** 0 of free blocks. */
  readonly requestedBytes: Float64Array;
  /** 0 free, 1 allocated, 2 pending free. */
  readonly state: Uint8Array;
  /** For `/allocation_block`; -1 of free blocks. */
  readonly life: Int32Array;
  /** -1: none. */
  readonly stack: Int32Array;
  /** Index in `SegmentsResponse.categories`; their number of free blocks. */
  readonly category: Uint8Array;
}

/** Free blocks by powers of two: from `from_bytes` up to below twice that. */
export interface FreeSizes {
  readonly fromBytes: Float64Array;
  /** Of those that share their segment with live blocks (inactive_split). */
  readonly numSplit: Int32Array;
  readonly splitBytes: Float64Array;
  /** Of those that fill their segment. */
  readonly numWhole: Int32Array;
  readonly wholeBytes: Float64Array;
}

/** Memory by pool, stream and size class: no free block leaves its own. */
export interface SegmentArenas {
  /** Row of `HistoryFacts.pools`; -1: not recorded. */
  readonly pool: Int32Array;
  readonly stream: Int32Array;
  readonly isLarge: Uint8Array;
  readonly reservedBytes: Float64Array;
  readonly freeBytes: Float64Array;
  readonly largestFreeBytes: Float64Array;
  readonly numFree: Int32Array;
  /** What `torch.cuda.empty_cache()` would give back. */
  readonly releasableBytes: Float64Array;
}

/** A request at this moment: where it would go, or what is in the way. */
export interface SegmentRequest {
  /** It is the request that failed at this very event. */
  readonly isOom: boolean;
  readonly requestedBytes: number;
  readonly roundedBytes: number;
  readonly isLarge: boolean;
  readonly stream: number;
  readonly pool: number;
  /** A free block of its own arena serves it. */
  readonly fits: boolean;
  /** Of its arena. */
  readonly largestFreeBytes: number;
  /** All free blocks of its arena. */
  readonly freeBytes: number;
  /** Largest free block of the same pool and size class on other streams. */
  readonly otherStreamLargestBytes: number;
  readonly otherPoolLargestBytes: number;
  readonly releasableBytes: number;
  /** What would have to be reserved anew. */
  readonly newSegmentBytes: number;
  /** None: not recorded. */
  readonly deviceFreeBytes: number | null;
}

/** Partly free segments, most free first, with the stack that holds most in each. */
export interface SegmentPins {
  readonly segmentAddress: Float64Array;
  readonly freeBytes: Float64Array;
  readonly liveBytes: Float64Array;
  readonly numLive: Int32Array;
  readonly stack: Int32Array;
  readonly stackBytes: Float64Array;
}

/** By stack: free bytes that could go back to the device without its blocks. */
export interface SegmentPinners {
  readonly stack: Int32Array;
  /** In segments where no other stack has a live block. */
  readonly aloneBytes: Float64Array;
  readonly sharedBytes: Float64Array;
  /** Of its own blocks in these segments. */
  readonly liveBytes: Float64Array;
  readonly numSegments: Int32Array;
}

/**
 * Route `/segments` (run, history, device): all segments and blocks at a moment.
 *
 * Parameters besides::
 *
 * moment      default: the out-of-memory error, else the peak of reserved bytes
 * sort        SegmentSort (default: size)
 * stream      row of HistoryFacts.streams; pool: row of HistoryFacts.pools
 * size_class  SizeClass: these alone
 * request     bytes: whether such a request would fit (with stream and pool)
 */
export interface SegmentsResponse {
  readonly device: number;
  readonly moment: AllocationMoment;
  /** Of the event; None: before all. */
  readonly action: AllocatorAction | null;
  readonly actionBytes: number | null;
  /**
   * That pass the filter; `segments` holds at most 2,000, and their first 200,000
   * blocks.
   */
  readonly numSegments: number;
  /** Of those that pass; likewise the next four. */
  readonly reservedBytes: number;
  readonly allocatedBytes: number;
  readonly pendingBytes: number;
  readonly freeBytes: number;
  readonly requestedBytes: number;
  readonly segments: SegmentRows;
  readonly blocks: SegmentBlocks;
  readonly categories: readonly CategoryGroup[];
  readonly freeSizes: FreeSizes;
  /** Of all, whatever the filter. */
  readonly arenas: SegmentArenas;
  readonly request: SegmentRequest | null;
  readonly pins: SegmentPins;
  readonly pinners: SegmentPinners;
  /** What does not fit together or had to be assumed. */
  readonly oddities: readonly HistoryOddity[];
}

/**
 * Route `/segment_timeline` (as `/allocations`): what the allocator held, over time.
 *
 * A life here is a segment, or a part of an expandable one, from the event that brought
 * it to the one that took it back; groups are size classes and private pools. `order` is
 * `allocation` or anything else; `colour` is ignored, and so is `active`, which is the
 * sum of what is drawn.
 */
export interface SegmentTimelineResponse {
  readonly picture: AllocationsResponse;
}

/**
 * Route `/allocator_events` (run, history, device): events as a list.
 *
 * Rows e0 up to e0 + count (default 200, at most 2,000); columns of equal length. With
 * `actions` (AllocatorAction, separated by commas) rows are those events alone.
 */
export interface AllocatorEventsResponse {
  readonly device: number;
  readonly e0: number;
  /** All of the device. */
  readonly numEvents: number;
  /** Those of `actions`. */
  readonly numRows: number;
  /** The last row not after the parameter `moment` (default: the end); -1: none. */
  readonly rowOfMoment: number;
  /** By row. */
  readonly event: Int32Array;
  readonly actions: readonly AllocatorAction[];
  /** Index in `actions`. */
  readonly action: Uint8Array;
  /** NaN where it has none. */
  readonly address: Float64Array;
  /** How often the address had been used before, as memory_viz counts; -1: no block. */
  readonly version: Int32Array;
  /** As asked for; segments: theirs; oom: what was asked for; snapshot: active. */
  readonly bytes: Float64Array;
  /** Row of `HistoryFacts.streams`. */
  readonly stream: Int32Array;
  /** -1: none. */
  readonly stack: Int32Array;
  /** The allocation it begins or ends; -1: none. */
  readonly life: Int32Array;
  /** Bytes after the event. */
  readonly active: Float64Array;
  readonly reserved: Float64Array;
  /** oom: bytes the device had free; else NaN. */
  readonly deviceFree: Float64Array;
  /** Since the epoch; NaN: not known. */
  readonly timeMs: Float64Array;
}

/** How a source's clock was put on the common one. */
export interface TraceClock {
  /**
   * reference (rank 0's own), distributed, same_host, wall; or none: its times are no
   * wall clock's, so it was put where the others begin.
   */
  readonly method: string;
  /** What was added to its own times. */
  readonly offsetNs: number;
  /** How far off that may be; None: nobody measured it. */
  readonly errorNs: number | null;
}

/** Something that holds tracks of one rank. */
export interface TraceSource {
  readonly id: string;
  readonly kind: TraceSourceKind;
  /** A file's name, or `spans`; may hold any text. */
  readonly name: string;
  readonly rank: number | null;
  /** The profiler's cycle it was traced in. */
  readonly cycle: number | null;
  readonly state: TraceState;
  /** 0 to 1. */
  readonly progress: number;
  readonly doing: string;
  /** Why it failed; the others are shown. */
  readonly problem: Problem | null;
  readonly numBytes: number;
  readonly numSlices: number;
  /** Since `TraceResponse.base_ns`; with end_ns; both 0 until it is ready. */
  readonly startNs: number;
  readonly endNs: number;
  /** None until it is ready. */
  readonly clock: TraceClock | null;
  /** What of it was set right or left out. */
  readonly notes: readonly string[];
  /** Whether /trace_file has it. */
  readonly hasFile: boolean;
}

/** A thread, a stream, the spans of a recorder, or a counter. */
export interface TraceTrack {
  /** Index in `TraceResponse.sources`. */
  readonly source: number;
  /** In its source: what `tracks` asks for. */
  readonly index: number;
  /** May hold any text; likewise `process`. */
  readonly name: string;
  readonly process: string;
  readonly kind: TraceTrackKind;
  readonly rank: number | null;
  readonly device: number | null;
  readonly stream: number | null;
  readonly numSlices: number;
  readonly numLevels: number;
  readonly numInstants: number;
  /** Of counters. */
  readonly unit: Unit | null;
  /** A counter's highest value anywhere. */
  readonly most: number | null;
  readonly least: number | null;
}

/** Training steps; columns of equal length, by start; of the lowest rank shown. */
export interface TraceSteps {
  readonly number: Int32Array;
  /** Since `TraceResponse.base_ns`. */
  readonly startNs: Float64Array;
  readonly endNs: Float64Array;
}

/** A trace or spans that a run has, shown or not. */
export interface TraceChoice {
  readonly id: string;
  readonly kind: TraceSourceKind;
  readonly name: string;
  readonly rank: number | null;
  readonly cycle: number | null;
  readonly numBytes: number;
  readonly shown: boolean;
}

/**
 * Route `/trace` (run, rank, ranks, cycle): what is on the axis, and how far it is.
 *
 * Asking opens the sources; until none is `opening` the next answer has more.
 */
export interface TraceResponse {
  readonly run: RunSummary;
  /** A whole number, as a text because it needs 61 bits: nanoseconds since 1970 at 0. */
  readonly baseNs: string;
  /** End of the last slice, since `base_ns`. */
  readonly endNs: number;
  readonly sources: readonly TraceSource[];
  /** By rank, source and the source's own order. */
  readonly tracks: readonly TraceTrack[];
  readonly steps: TraceSteps;
  /** Every file and recording of spans there is, at most 2,000. */
  readonly choices: readonly TraceChoice[];
  /** Ranks that have any. */
  readonly numRanks: number;
  readonly shownRanks: readonly number[];
  /** Of files that no source could be made of. */
  readonly problems: readonly Problem[];
  /** The run is still being read: there may be more. */
  readonly stillReading: boolean;
  /** Where `Open in Perfetto` leads: to ui.perfetto.dev, or the build given by flag. */
  readonly perfetto: "hosted" | "local";
}

/** A level of a track in a tile. */
export interface TraceLane {
  /** `id:index`, as in `tracks`. */
  readonly track: string;
  readonly level: number;
}

/** A counter in a tile: it has a value from one point to the next. */
export interface TraceLine {
  readonly track: string;
  /** Of several series of one counter: which; may hold any text. */
  readonly series: string;
  /** Since `t0` of the tile. */
  readonly timeNs: Float64Array;
  /** Where several points fall into one pixel: one of them, as `reduced` says. */
  readonly value: Float64Array;
  /**
   * exact: every point of the window is there. highest: of each pixel. mean: over the
   * time of each pixel; so are shares of time.
   */
  readonly reduced: TraceReduced;
}

/**
 * Instants in a tile, by track and time; columns of equal length.
 *
 * Those that a few pixels cannot tell apart are one, of the first of them.
 */
export interface TraceInstants {
  /** `id:index`. */
  readonly tracks: readonly string[];
  /** Index in `tracks`. */
  readonly track: Uint16Array;
  /** Since `t0` of the tile. */
  readonly timeNs: Float64Array;
  /** What `/trace_instant` asks for. */
  readonly row: Int32Array;
  /** Index in `names`. */
  readonly name: Uint16Array;
  /** Index in `kinds`. */
  readonly kind: Uint8Array;
  /** How many there are. */
  readonly count: Int32Array;
  /** At most 160 characters each; may hold any text. */
  readonly names: readonly string[];
  readonly kinds: readonly TraceInstantKind[];
}

/**
 * Route `/trace_slices` (run, tracks, t0, t1, px): what is drawn in a window of time.
 *
 * A piece is a slice, or a block: short slices of one level that lie next to each
 * other. Which ones depends on `zoom` alone. Columns are by piece, in order of lanes.
 */
export interface TraceSlicesResponse {
  /** Nanoseconds since 1970, a whole number. */
  readonly t0: string;
  /** What start and duration count: 1 for windows below 2 seconds. */
  readonly unitNs: number;
  /** Of the coarsest source: pieces of one slice are at least 2^zoom ns. */
  readonly zoom: number;
  readonly lanes: readonly TraceLane[];
  /** One more than lanes: where the pieces of each begin. */
  readonly laneStart: Int32Array;
  /** Units since `t0`; below 0: before it. */
  readonly start: Int32Array;
  readonly duration: Int32Array;
  /** The slice; of a block its longest. */
  readonly row: Int32Array;
  /** Index in `names`: of the slice; of a block, of its longest; 65,535: of too many. */
  readonly name: Uint16Array;
  /** Index in `families`. */
  readonly family: Uint8Array;
  /** Slices of the piece. */
  readonly count: Int32Array;
  /** Units: their durations summed up. */
  readonly busy: Int32Array;
  /** At most 160 characters each; may hold any text. */
  readonly names: readonly string[];
  readonly families: readonly TraceFamily[];
  readonly lines: readonly TraceLine[];
  readonly instants: TraceInstants;
}

/** One argument of a slice. */
export interface TraceArg {
  readonly name: string;
  /** As JSON where it is no text; at most 4,000 characters. */
  readonly value: string;
}

/** A slice that stands in a relation to another one. */
export interface TracePartner {
  readonly relation: "parent" | "launch" | "fwdbwd" | "flow";
  readonly category: string;
  /** Whether an arrow leads to it. */
  readonly outgoing: boolean;
  readonly source: string;
  readonly row: number;
  /** `id:index`. */
  readonly track: string;
  readonly level: number;
  readonly name: string;
  /** Since the slice asked for began. */
  readonly startNs: number;
  readonly durationNs: number;
}

/** Route `/trace_slice` (run, source, row): everything of one slice, exactly. */
export interface TraceSliceResponse {
  readonly source: string;
  readonly row: number;
  readonly track: string;
  readonly level: number;
  readonly name: string;
  readonly category: string;
  readonly family: TraceFamily;
  /** Nanoseconds since 1970 on the common clock, a whole number. */
  readonly startNs: string;
  readonly durationNs: number;
  /** Without the slices directly in it. */
  readonly selfNs: number;
  readonly numChildren: number;
  readonly args: readonly TraceArg[];
  /** Why the arguments cannot be read; empty where they can. */
  readonly argsProblem: string;
  /** The slices it lies in, innermost first; at most 200. */
  readonly stack: readonly TracePartner[];
  /** At most 200. */
  readonly partners: readonly TracePartner[];
}

/** Route `/trace_instant` (run, source, row): everything of one instant. */
export interface TraceInstantResponse {
  readonly source: string;
  readonly row: number;
  readonly track: string;
  readonly name: string;
  readonly category: string;
  readonly kind: TraceInstantKind;
  /** Nanoseconds since 1970 on the common clock, a whole number. */
  readonly timeNs: string;
  readonly args: readonly TraceArg[];
  /** Why the arguments cannot be read; empty where they can. */
  readonly argsProblem: string;
  /**
   * The slices of its track it falls into, innermost first; at most 200. Their times
   * are since the instant.
   */
  readonly stack: readonly TracePartner[];
}

/**
 * Route `/trace_search` (run, tracks, text, only): what has a text in its name.
 *
 * Columns by hit, in order of time; at most 10,000. `only=instants` leaves slices out,
 * and then needs no text.
 */
export interface TraceSearchResponse {
  readonly t0: string;
  /** All there are. */
  readonly numHits: number;
  /** Different names among those in the columns. */
  readonly numNames: number;
  /** `id:index`. */
  readonly tracks: readonly string[];
  /** Index in `tracks`. */
  readonly track: Uint16Array;
  readonly level: Uint16Array;
  /** Of a slice, or of an instant. */
  readonly row: Int32Array;
  /** 1: of an instant, whose level and duration are 0. */
  readonly isInstant: Uint8Array;
  /** Since `t0`. */
  readonly startNs: Float64Array;
  readonly durationNs: Float64Array;
}

/**
 * Route `/trace_range` (run, tracks, t0, t1): sums by name over a range of time.
 *
 * Columns by name, longest in all first; at most 20,000.
 */
export interface TraceRangeResponse {
  readonly numSlices: number;
  readonly numNames: number;
  readonly names: readonly string[];
  readonly categories: readonly string[];
  readonly family: Uint8Array;
  readonly families: readonly TraceFamily[];
  /** Slices that touch the range. */
  readonly count: Int32Array;
  /** Of their times what lies in it. */
  readonly totalNs: Float64Array;
  /** The same without what lies in slices inside them. */
  readonly selfNs: Float64Array;
  /** The whole duration of the longest; with its place: */
  readonly maxNs: Float64Array;
  /** Index in `sources`. */
  readonly source: Uint16Array;
  readonly row: Int32Array;
  readonly sources: readonly string[];
}

/** One trace, as the recorder saw it. */
export interface TraceReport {
  /** What `/trace_report?report=` takes. */
  readonly id: string;
  readonly rank: number;
  readonly cycle: number | null;
  readonly firstStep: number | null;
  readonly lastStep: number | null;
  readonly numSteps: number | null;
  /** Of the trace, in the rank's folder; empty: it was not saved. May hold any text. */
  readonly path: string;
  readonly numBytes: number;
  /** How long it was recorded. */
  readonly seconds: number | null;
  readonly activities: readonly string[];
  /** Of torch's profiler, that were on. */
  readonly options: readonly string[];
  readonly flops: number | null;
  /** Whether the file was to stay on the disk of the recording. */
  readonly kept: boolean;
  /** Where it was uploaded to; empty: nowhere. */
  readonly remote: string;
  /** What was wrong with it; empty: nothing. */
  readonly problem: string;
}

/** Route `/trace_reports` (run, rank, ranks): by rank and time. */
export interface TraceReportsResponse {
  readonly run: RunSummary;
  /** At most 5,000, the newest. */
  readonly reports: readonly TraceReport[];
  /** What the recorder says of torch's profiler where it could not record all of it. */
  readonly absent: readonly Recorded[];
  /** The run is still being read: there may be more. */
  readonly stillReading: boolean;
}

/** Sums by operator; columns of equal length, most time of its own first. */
export interface TraceReportOperators {
  /** May hold any text. */
  readonly name: readonly string[];
  readonly calls: Float64Array;
  readonly cpuNs: Float64Array;
  readonly selfCpuNs: Float64Array;
  readonly deviceNs: Float64Array;
  readonly selfDeviceNs: Float64Array;
  readonly cpuMemoryBytes: Float64Array;
  readonly selfCpuMemoryBytes: Float64Array;
  readonly deviceMemoryBytes: Float64Array;
  readonly selfDeviceMemoryBytes: Float64Array;
  readonly flops: Float64Array;
}

/**
 * Memory by category of one device; x in microseconds since the trace began.
 *
 * Column c covers x0 + c * x_per_column and the following; its values are those at the
 * moment of the highest total inside it. Levels are what the trace saw: of what was
 * there before, those tensors that it touched.
 */
export interface TraceReportMemory {
  readonly device: string;
  readonly devices: readonly string[];
  readonly xLow: number;
  /** Full extent. */
  readonly xHigh: number;
  readonly x0: number;
  readonly xPerColumn: number;
  readonly totalBytes: Float64Array;
  readonly peakX: Float64Array;
  /** Each category's column over time. */
  readonly categories: readonly ModuleCategory[];
}

/** Route `/trace_report` (run, report, device, x0, x1, px): one report in full. */
export interface TraceReportResponse {
  readonly report: TraceReport;
  /** Tables as text, of equal letters' width; empty: operators were not summed up. */
  readonly summary: string;
  readonly operators: TraceReportOperators;
  /** None where it was not recorded. */
  readonly memory: TraceReportMemory | null;
  /** Options that memory by category needs and this trace was recorded without. */
  readonly missing: readonly string[];
}

/** One file, whoever wrote it. */
export interface TraceFile {
  /** What `/trace_file?source=` takes. */
  readonly id: string;
  /** May hold any text; likewise the next two. */
  readonly name: string;
  /** Relative to the logdir. */
  readonly path: string;
  readonly worker: string;
  readonly rank: number | null;
  /** 1-based number among the worker's files; None where nothing says an order. */
  readonly cycle: number | null;
  readonly numBytes: number;
  /** Whether it is what `export_memory_timeline` wrote. */
  readonly timeline: boolean;
  /** Whether our own recording points to it. */
  readonly recorded: boolean;
  readonly state: TraceFileState;
  /** Why it failed; the others are shown. */
  readonly problem: Problem | null;
}

/** Route `/traces` (run): the files of traces of a run, by rank, worker and cycle. */
export interface TracesResponse {
  readonly run: RunSummary;
  /** At most 10,000. */
  readonly files: readonly TraceFile[];
  readonly numFiles: number;
  /** Of files that are not opened. */
  readonly problems: readonly Problem[];
  /** The run is still being read: there may be more. */
  readonly stillReading: boolean;
}

/** A profiler's trace that may be chosen. */
export interface ProfiledTrace {
  readonly id: string;
  readonly name: string;
  readonly rank: number | null;
  /** Number of the profiling window; None: the only one, or not known. */
  readonly cycle: number | null;
  readonly numBytes: number;
  /** About when it was recorded, since 1970. */
  readonly timeMs: number | null;
}

/** Which trace an answer is about, and how far opening it is. */
export interface ProfileChoice {
  /** Of the run, by cycle and rank; the newest where there are very many. */
  readonly traces: readonly ProfiledTrace[];
  readonly numTraces: number;
  /** The one chosen; None: the run has none. */
  readonly source: string | null;
  readonly state: TraceState;
  /** 0 to 1. */
  readonly progress: number;
  readonly doing: string;
  /** Why it cannot be opened. */
  readonly problem: Problem | null;
  /** What was left out of the one that is open, or set right. */
  readonly problems: readonly Problem[];
}

/** Time of one role; a column of steps. */
export interface ProfilePart {
  readonly role: ProfileRole;
  readonly ms: Float64Array;
  readonly meanMs: number;
  /** Of the time of all steps; 0 to 1. */
  readonly share: number;
}

/** A device of the trace, and how it was used; null: the trace does not say it. */
export interface ProfiledDevice {
  readonly device: number;
  readonly name: string | null;
  readonly totalBytes: number | null;
  /** Compute capability. */
  readonly capability: string | null;
  readonly numSms: number | null;
  /** All of the trace; of one step those that began in it. */
  readonly numKernels: number;
  /** Sum over kernels; those that run at once count each. Of one step what lies in it. */
  readonly kernelMs: number;
  readonly busyMs: number;
  readonly spanMs: number;
  /** Shares are 0 to 1. */
  readonly utilization: number | null;
  readonly smEfficiency: number | null;
  readonly occupancy: number | null;
  readonly tensorCoreShare: number | null;
}

/** What slows the training down, in plain words. */
export interface ProfileFinding {
  readonly key:
    | "loading"
    | "single_process"
    | "no_nccl"
    | "communicating"
    | "idle"
    | "no_tensor_cores"
    | "near_capacity"
    | "small_kernels"
    | "empty_device"
    | "host_bound"
    | "straggler";
  readonly sentence: string;
  readonly evidence: readonly string[];
  readonly advice: readonly string[];
  /** Where the rule and its threshold come from. */
  readonly rule: string;
}

/** Something the trace says of where and how it was recorded. */
export interface ProfileFact {
  readonly name: string;
  readonly value: string;
}

/** Route `/profile` (run, source, step): step time by role, devices, findings. */
export interface ProfileResponse {
  readonly run: RunSummary;
  readonly choice: ProfileChoice;
  /** Numbers of the profiled steps; 0 where the trace marks none and counts as one. */
  readonly step: Int32Array;
  readonly areMarked: boolean;
  /** Since the first step's start. */
  readonly startMs: Float64Array;
  readonly durationMs: Float64Array;
  readonly parts: readonly ProfilePart[];
  /** Kernels; without a device what computes on the host: not what waits for others. */
  readonly computationMs: Float64Array;
  readonly communicationMs: Float64Array;
  /** Of communication, what computation hides. */
  readonly overlapMs: Float64Array;
  readonly devices: readonly ProfiledDevice[];
  /**
   * Of which profiled step they tell; null: of all, from the first one's start to the
   * last one's end.
   */
  readonly devicesStep: number | null;
  readonly findings: readonly ProfileFinding[];
  readonly facts: readonly ProfileFact[];
}

/** Route `/module_times` (run, source): modules of a trace, parents first. */
export interface ModuleTimesResponse {
  readonly run: RunSummary;
  readonly choice: ProfileChoice;
  readonly name: readonly string[];
  /** Row of the module around it; -1: none. */
  readonly parent: Int32Array;
  readonly numCalls: Float64Array;
  /** Operators that it called itself. */
  readonly numOperators: Float64Array;
  readonly hostMs: Float64Array;
  readonly hostSelfMs: Float64Array;
  readonly deviceMs: Float64Array;
  readonly deviceSelfMs: Float64Array;
  /** Of what it and the modules in it called. All four are NaN where nobody knows. */
  readonly backwardHostMs: Float64Array;
  /** Of the operators that it called itself. */
  readonly backwardHostSelfMs: Float64Array;
  readonly backwardDeviceMs: Float64Array;
  readonly backwardDeviceSelfMs: Float64Array;
  readonly backward: ModuleBackward;
  readonly hasDevices: boolean;
  /** False: the trace was recorded without stacks or modules. */
  readonly hasModules: boolean;
  /** All there are; more than rows where there are very many. */
  readonly numModules: number;
}

/** Sums over all operators, those not in the table included. */
export interface OperatorTotals {
  readonly hostSelfMs: number;
  readonly deviceSelfMs: number;
  readonly numCalls: number;
}

/** Route `/operators` (run, source, by, sort, text, top): the table of operators. */
export interface OperatorsResponse {
  readonly run: RunSummary;
  readonly choice: ProfileChoice;
  readonly by: OperatorsBy;
  readonly name: readonly string[];
  /** Input shapes as the profiler wrote them; empty texts where `by` is name. */
  readonly shapes: readonly string[];
  readonly numCalls: Float64Array;
  readonly hostSelfMs: Float64Array;
  readonly hostTotalMs: Float64Array;
  readonly deviceSelfMs: Float64Array;
  readonly deviceTotalMs: Float64Array;
  /** 1: its kernels could use tensor cores. */
  readonly isEligible: Uint8Array;
  /** Of the time of its own kernels; NaN without kernels. */
  readonly tensorCoreSelfShare: Float64Array;
  readonly tensorCoreTotalShare: Float64Array;
  /** All rows that hold `text`; those sent are the first by `sort`. */
  readonly numRows: number;
  readonly totals: OperatorTotals;
  readonly hasDevices: boolean;
  readonly hasStacks: boolean;
  readonly hasShapes: boolean;
}

/** Calls of an operator from one place. */
export interface OperatorStack {
  /** `file(line): function`, the innermost first. */
  readonly frames: readonly string[];
  readonly numCalls: number;
  readonly hostMs: number;
  readonly deviceMs: number;
}

/**
 * Route `/operator` (run, source, by, name, shapes): where one is called from.
 *
 * By shapes, empty `shapes` mean the calls whose shapes are not known.
 */
export interface OperatorResponse {
  readonly run: RunSummary;
  readonly choice: ProfileChoice;
  readonly name: string;
  /** The longest first. */
  readonly stacks: readonly OperatorStack[];
  readonly numCalls: number;
  /** Calls whose stacks were looked at: the longest. */
  readonly numLookedAt: number;
  /**
   * What those calls call, the outermost first and with no place; times are self times,
   * so that they add up to the calls'. Without frames: the calls themselves.
   */
  readonly callees: readonly OperatorStack[];
}

/** A device with memory events. */
export interface TraceDevice {
  /** `device type:index`, as torch numbers them. */
  readonly key: string;
  /** CPU, CUDA, HIP, XPU, ... */
  readonly kind: string;
  /** -1 for the CPU. */
  readonly index: number;
  readonly numEvents: number;
  readonly peakAllocatedBytes: number | null;
  readonly peakReservedBytes: number | null;
  readonly capacityBytes: number | null;
}

/** Memory by operator; columns of equal length. */
export interface OperatorMemoryRows {
  readonly name: readonly string[];
  readonly numCalls: Float64Array;
  /** Allocated less freed, with the operators in it. */
  readonly increaseBytes: Float64Array;
  readonly selfIncreaseBytes: Float64Array;
  readonly numAllocations: Float64Array;
  readonly selfNumAllocations: Float64Array;
  readonly allocatedBytes: Float64Array;
  readonly selfAllocatedBytes: Float64Array;
}

/** The allocator's totals over time; no peak of either is lost. */
export interface TraceMemoryCurve {
  /** Since the trace's start. */
  readonly timeMs: Float64Array;
  readonly allocatedBytes: Float64Array;
  /** NaN where the trace does not say it. */
  readonly reservedBytes: Float64Array;
}

/** Allocations of a trace, the largest first; columns of equal length. */
export interface TraceAllocations {
  /**
   * Row of `OperatorMemoryResponse.operators`; -1: none is known.
   *
   * Where no operator is around it, what is: an annotation, or a frame of Python.
   */
  readonly operator: Int32Array;
  readonly numBytes: Float64Array;
  /** NaN: before the trace began. */
  readonly allocatedMs: Float64Array;
  /** NaN: not before it ended. */
  readonly releasedMs: Float64Array;
  /** Row of `OperatorMemoryResponse.categories`; likewise evidence. */
  readonly category: Uint8Array;
  readonly evidence: Uint8Array;
  /** Row of `OperatorMemoryResponse.modules`, -1: none is known; likewise the phase. */
  readonly module: Int32Array;
  readonly phase: Int32Array;
}

/** What memory is for. */
export interface TraceMemoryCategory {
  /** Fine name, e.g. `unsharded_param`; `other`: not known. */
  readonly name: string;
  readonly group: CategoryGroup;
}

/** What is alive at a moment, most bytes first; columns of equal length. */
export interface TraceMemoryHolders {
  /** Row of `OperatorMemoryResponse.categories`. */
  readonly category: Uint8Array;
  /** Row of `OperatorMemoryResponse.modules`; -1: none is known. */
  readonly module: Int32Array;
  /** Row of `OperatorMemoryResponse.phases`, in which it was made; -1: in none. */
  readonly phase: Int32Array;
  readonly numBytes: Float64Array;
  readonly numAllocations: Float64Array;
}

/** The moment at which most of a device was allocated, in the range shown. */
export interface TraceMemoryPeak {
  /** Since the trace's start. */
  readonly timeMs: number;
  /** The allocator's total; null: the trace does not say it. */
  readonly allocatedBytes: number | null;
  /** Of what the trace shows events of: `holders` add up to it. */
  readonly seenBytes: number;
  /** Of the total, what no event explains: made before the trace began, and kept. */
  readonly unseenBytes: number;
  /** Unseen, or of no known category. */
  readonly unknownBytes: number;
  readonly holders: TraceMemoryHolders;
  readonly numHolders: number;
}

/** Route `/operator_memory` (run, source, device, charge, t0, t1, px, sort, text, top). */
export interface OperatorMemoryResponse {
  readonly run: RunSummary;
  readonly choice: ProfileChoice;
  readonly devices: readonly TraceDevice[];
  /** The one shown; None: the trace has no memory events. */
  readonly device: string | null;
  readonly charge: OperatorCharge;
  /** Of the trace. */
  readonly durationMs: number;
  readonly curve: TraceMemoryCurve;
  readonly rows: OperatorMemoryRows;
  readonly numRows: number;
  readonly operators: readonly string[];
  readonly categories: readonly TraceMemoryCategory[];
  /** How categories are known. */
  readonly evidence: readonly string[];
  readonly modules: readonly string[];
  /** forward, backward, optimizer, zero_grad, dataloader, or FSDP2's annotations. */
  readonly phases: readonly string[];
  /** None: no event, or without addresses, so that nothing is known of lives. */
  readonly peak: TraceMemoryPeak | null;
  readonly allocations: TraceAllocations;
  /** In the range; those sent are the largest. */
  readonly numAllocations: number;
  /** False: releases are not known. */
  readonly hasAddresses: boolean;
}

/** Route `/kernels` (run, source, by, sort, text, top): the table of kernels. */
export interface KernelsResponse {
  readonly run: RunSummary;
  readonly choice: ProfileChoice;
  readonly by: "name" | "properties";
  readonly name: readonly string[];
  /** That launched it; empty where unknown, or where `by` is name; so are the next. */
  readonly operator: readonly string[];
  readonly grid: readonly string[];
  readonly block: readonly string[];
  /** Per thread; -1: not known. */
  readonly registers: Int32Array;
  readonly sharedMemoryBytes: Float64Array;
  readonly numCalls: Float64Array;
  readonly totalMs: Float64Array;
  readonly minUs: Float64Array;
  readonly meanUs: Float64Array;
  readonly maxUs: Float64Array;
  /** Mean, weighted by time; NaN: not said. */
  readonly blocksPerSm: Float64Array;
  /** Est. achieved; 0 to 1. */
  readonly occupancy: Float64Array;
  readonly usesTensorCores: Uint8Array;
  readonly isCommunication: Uint8Array;
  readonly numRows: number;
  readonly totalAllMs: number;
  readonly tensorCoreMs: number;
  readonly hasKernels: boolean;
}

/** Collectives by rank, kind and process group; columns of equal length. */
export interface DistributedCollectives {
  readonly rank: Int32Array;
  readonly kind: readonly string[];
  /** Name of the process group; empty where the trace does not say it. */
  readonly group: readonly string[];
  /** -1: not known. */
  readonly groupSize: Int32Array;
  readonly numCalls: Float64Array;
  /** Of all calls; NaN: not known. */
  readonly numBytes: Float64Array;
  readonly totalMs: Float64Array;
  /**
   * Calls that the traces of all ranks which took part show. The next columns are of
   * these, and NaN where a rank's trace is missing.
   */
  readonly numCompared: Float64Array;
  /** While data moved; the rest is waiting for other ranks. */
  readonly transferMs: Float64Array;
  /** nccl-tests' bus bandwidth while data moved; NaN: not known. */
  readonly busBytesPerSecond: Float64Array;
  /** Calls in which the others waited for this rank. */
  readonly numLast: Float64Array;
}

/**
 * Collectives that several ranks' traces show, by kind and process group.
 *
 * Columns of equal length, the longest waits in all first.
 */
export interface DistributedGroups {
  readonly kind: readonly string[];
  readonly group: readonly string[];
  readonly numRanks: Int32Array;
  /** Collectives. */
  readonly numMatched: Int32Array;
  /**
   * How long the first rank waits for the last one, in the mean; and at most. NaN where
   * a rank's trace is missing, likewise `last_share`.
   */
  readonly meanSkewMs: Float64Array;
  readonly maxSkewMs: Float64Array;
  /** The rank that came last most often: the straggler. -1: not known. */
  readonly lastRank: Int32Array;
  /** Of the collectives, in which it did; 0 to 1. */
  readonly lastShare: Float64Array;
}

/** Route `/distributed` (run, cycle, ranks, step): computation and communication. */
export interface DistributedResponse {
  readonly run: RunSummary;
  /** Those of the run, ascending. */
  readonly cycles: Int32Array;
  readonly cycle: number | null;
  /** Profiled steps that any rank has. */
  readonly steps: Int32Array;
  /** The one shown; None: the mean of all. */
  readonly step: number | null;
  /** Ranks whose traces are open, ascending; the next columns are theirs. */
  readonly rank: Int32Array;
  readonly stepMs: Float64Array;
  /** Without what runs at the same time as communication. */
  readonly computationMs: Float64Array;
  readonly overlapMs: Float64Array;
  /** Exposed: nothing hides it. */
  readonly communicationMs: Float64Array;
  readonly otherMs: Float64Array;
  /**
   * Of the step's communication, or all of the cycle's where none is chosen, while data
   * moved; likewise the next. NaN where the trace of a rank that took part is missing.
   */
  readonly transferMs: Float64Array;
  readonly waitingMs: Float64Array;
  readonly collectives: DistributedCollectives;
  readonly numCollectives: number;
  readonly groups: DistributedGroups;
  readonly numGroups: number;
  /** Collectives that the traces of all ranks which took part show. */
  readonly numMatched: number;
  /** Ranks of the training that are not among those compared: the first of them. */
  readonly missing: Int32Array;
  readonly numMissing: number;
  /** Of the cycle. */
  readonly numTraces: number;
  /** Traces that are still being opened: ask again. */
  readonly numOpening: number;
  readonly numFailed: number;
  readonly findings: readonly ProfileFinding[];
  readonly problems: readonly Problem[];
}

/**
 * Route `/distributed_heatmap` (run, cycle, ranks, part, x0, x1, px, rows).
 *
 * Ranks by profiled steps, in seconds. Of a cell that covers several steps the longest
 * is shown; of several ranks the one that is farthest from the middle of all.
 */
export interface DistributedHeatmapResponse {
  readonly part: DistributedPart;
  readonly cycle: number | null;
  readonly cells: HeatmapResponse;
  /** Of the cycle. */
  readonly numTraces: number;
  /** Traces that are still being opened: ask again. */
  readonly numOpening: number;
  readonly numFailed: number;
}

/** One of the two. */
export interface CompareSide {
  readonly run: RunSummary;
  readonly reference: HistoryReference;
  readonly device: number;
  readonly moment: AllocationMoment;
  /** As asked for; likewise the next. */
  readonly activeBytes: number;
  readonly allocatedBytes: number;
  readonly reservedBytes: number;
  readonly numBlocks: number;
}

/**
 * Live bytes of both sides by something, the largest difference first.
 *
 * Columns of equal length. 0 blocks: only the other side has it.
 */
export interface CompareTable {
  readonly by: CompareBy;
  /** May hold any text. */
  readonly labels: readonly string[];
  readonly aBytes: Float64Array;
  readonly bBytes: Float64Array;
  readonly aBlocks: Int32Array;
  readonly bBlocks: Int32Array;
}

/** Live bytes of both sides by stack, the largest difference first; at most 10,000. */
export interface CompareStacks {
  /** Distinct texts, at most 1,000 characters each; may hold any text. */
  readonly strings: readonly string[];
  /** By frame: index in `strings`. */
  readonly name: Int32Array;
  readonly filename: Int32Array;
  /** 0: not known, or not compared. */
  readonly line: Int32Array;
  /** By frame: 0 the user's own code, 1 a library's, 2 torch's, 3 native. */
  readonly kind: Uint8Array;
  /** Where each stack begins in `frame`; one more than stacks. */
  readonly start: Int32Array;
  /** Innermost first. */
  readonly frame: Int32Array;
  /** -1: none. */
  readonly userFrame: Int32Array;
  /** Index in `CompareResponse.categories`: of most of the bytes of the larger side. */
  readonly category: Uint8Array;
  readonly aBytes: Float64Array;
  readonly bBytes: Float64Array;
  readonly aBlocks: Int32Array;
  readonly bBlocks: Int32Array;
  /** All, of which those beyond the columns were left out. */
  readonly numStacks: number;
}

/**
 * Route `/compare`: what lives at a moment of one history, against another's.
 *
 * Parameters: run, history, device, moment are side A's; b_run (default: run),
 * b_history, b_device, b_moment side B's. Without a moment: at the peak of active
 * bytes. match: StackMatch (default: exact). Both must be open: see `/history`.
 */
export interface CompareResponse {
  readonly a: CompareSide;
  readonly b: CompareSide;
  readonly categories: readonly CategoryGroup[];
  /** One per `CompareBy`. */
  readonly tables: readonly CompareTable[];
  readonly stacks: CompareStacks;
}

/** One rank's history among those of all ranks. */
export interface RankHistory {
  readonly rank: number;
  readonly reference: HistoryReference;
  readonly origin: HistoryOrigin;
  /** The numbers below are known where it is `ready`. */
  readonly state: HistoryState;
  /** Why it cannot be opened; else empty. */
  readonly problem: string;
  readonly device: number | null;
  readonly peakActiveBytes: number | null;
  readonly peakMoment: number | null;
  /** At the peak. */
  readonly reservedBytes: number | null;
  /** Reserved less active, at the peak. */
  readonly fragmentationBytes: number | null;
  /** The line that holds most at the peak; may hold any text. */
  readonly topLabel: string;
  readonly topBytes: number | null;
  readonly numOoms: number | null;
}

/**
 * Route `/rank_histories` (run, history): the same moment's histories of all ranks.
 *
 * Of every rank the history that belongs with the one asked for (same origin, call and
 * label), or its newest; opened a few at a time, so ask again while `still_reading`.
 */
export interface RankHistoriesResponse {
  readonly run: RunSummary;
  /** What they have in common, e.g. `oom` or `step 3, end`. */
  readonly title: string;
  /** By rank; at most 4,096, spread evenly over all there are. */
  readonly ranks: readonly RankHistory[];
  readonly numRanks: number;
  readonly numReady: number;
  /**
   * Of those that are ready; likewise the next. Histories show a few steps of a few
   * ranks: the median over all ranks' whole runs is `RankStrip.median_peak_bytes`.
   */
  readonly medianHistoryPeakBytes: number | null;
  readonly medianFragmentationBytes: number | null;
  /** The 20 lines whose bytes at the peaks differ most between ranks, or are most. */
  readonly lines: readonly string[];
  /** lines x ranks, row by row; NaN of ranks that are not ready. */
  readonly lineBytes: Float64Array;
  readonly stillReading: boolean;
  readonly problems: readonly Problem[];
}

/** One number that the verdict rests on. */
export interface VerdictEvidence {
  /** Names it in reports; stays the same from release to release. */
  readonly key: string;
  readonly label: string;
  readonly value: number;
  readonly unit: Unit;
  /** Of what and when, e.g. `device 1, at the error`. */
  readonly scope: string;
  /** What makes it less than measured and whole; empty: nothing does. */
  readonly caveat: string;
  /** The cause was told by it; the others are there to weigh it. */
  readonly decisive: boolean;
}

/** Something to try, given only where evidence supports it. */
export interface VerdictAdvice {
  readonly text: string;
  /** A line to copy, e.g. an environment variable; empty: none. */
  readonly setting: string;
  /** What is at stake, at most; None where it cannot be told. */
  readonly bytes: number | null;
  /** Keys of the evidence. */
  readonly because: readonly string[];
}

/** Memory that was live at the error, by the line that allocated it. */
export interface VerdictHolder {
  /** Function, file and line; or what the recording says of it. */
  readonly label: string;
  /** What most of its bytes are; None where it is not known. */
  readonly category: CategoryGroup | null;
  readonly bytes: number;
  /** Of all live bytes, 0 to 1. */
  readonly share: number;
  readonly numBlocks: number;
  /** Of the history's stacks: the one of them that holds most. */
  readonly stack: number | null;
}

/** Last known state of the other ranks, one row each; NaN: not recorded. */
export interface OomPeers {
  readonly rank: Int32Array;
  /** Last step that was written. */
  readonly step: Float64Array;
  /** Highest in its last steps. */
  readonly allocatedBytes: Float64Array;
  /** Likewise. */
  readonly reservedBytes: Float64Array;
  /** Highest allocated, or of snapshots active, bytes so far. */
  readonly peakBytes: Float64Array;
  /**
   * 0: still running or unknown, 1: closed, 2: by an exception, 3: lost, 4: by a
   * signal.
   */
  readonly ended: Uint8Array;
  /** 1: this rank ran out of memory too. */
  readonly ranOut: Uint8Array;
}

/** One out-of-memory error, or an end that left a report about memory. */
export interface OutOfMemory {
  /** Stays the same while the run grows. */
  readonly id: string;
  readonly origin: OomOrigin;
  /** False: the process ended otherwise, and said how much memory it held. */
  readonly isOutOfMemory: boolean;
  /** None: a file whose name tells none. */
  readonly rank: number | null;
  readonly attempt: number;
  /** The snapshot, relative to the logdir, or the name of the rank's recording. */
  readonly file: string;
  readonly device: number | null;
  readonly step: number | null;
  /** Of the training, e.g. `train`; empty where it is not known. */
  readonly phase: string;
  /** What was under way, e.g. `backward`, or a span's name; empty where unknown. */
  readonly during: string;
  /** The line that asked for the memory, e.g. `model.py:128 forward`; may be empty. */
  readonly askedAt: string;
  readonly timeMs: number | null;
  /** Of the exception, as text; may be cut. */
  readonly message: string;
  /** False: from the report alone; the history may say more once it was read. */
  readonly analysed: boolean;
  readonly cause: OomCause;
  /** Smaller troubles beside it. */
  readonly also: readonly OomCause[];
  /** Errors of the same process before it, which it survived. */
  readonly numEarlier: number;
  /** The verdict, and how many errors the program survived before. */
  readonly sentence: string;
  /** Who held the memory, in one sentence; empty where nothing is known of that. */
  readonly heldSentence: string;
  readonly requestedBytes: number | null;
  readonly deviceFreeBytes: number | null;
  readonly capacityBytes: number | null;
  readonly reservedBytes: number | null;
  readonly allocatedBytes: number | null;
  readonly activeBytes: number | null;
  /** In blocks where the request belongs: its pool and stream. */
  readonly freeBytes: number | null;
  readonly numFreeBlocks: number | null;
  /** The largest of them. */
  readonly largestFreeBytes: number | null;
  readonly evidence: readonly VerdictEvidence[];
  readonly advice: readonly VerdictAdvice[];
  /** At most 12, the largest first. */
  readonly holders: readonly VerdictHolder[];
  /** Of the request, innermost frame first; at most 40. */
  readonly stack: readonly string[];
  /** Names the history in requests; None: none was captured. */
  readonly history: string | null;
  /** Event of the history's device to open it at: the error itself. */
  readonly moment: number | null;
  readonly peers: OomPeers;
  /** All of it as Markdown, to be copied. */
  readonly report: string;
  /** What would have made the verdict surer, each with how to record it. */
  readonly notRecorded: readonly string[];
}

/**
 * Route `/verdict` (run, rank): why memory ran out.
 *
 * The error that ended a rank comes first, of several ranks the earliest; errors that a
 * program survived follow, and other ends last.
 */
export interface VerdictResponse {
  readonly run: RunSummary;
  /** At most 20. */
  readonly ooms: readonly OutOfMemory[];
  /** All that are known. */
  readonly numOoms: number;
  /** Histories are being read: ask again. */
  readonly stillReading: boolean;
  readonly problems: readonly Problem[];
}

/** One part of the steps' time, in the order in which parts are stacked. */
export interface StepPart {
  /**
   * dataloader, forward, backward, optimizer, zero_grad, checkpoint, eval,
   * communication; other is what they leave of the step's time.
   */
  readonly name: string;
  readonly seconds: Float64Array;
}

/** A part no rank recorded, and which setting records it. */
export interface AbsentPart {
  readonly name: string;
  readonly reason: string;
  readonly remedy: string;
}

/** Throughput, one value per column: of one rank, and of all ranks together. */
export interface StepRate {
  /** Per second each; mfu is a percentage of what the devices could do. */
  readonly key: "steps" | "samples" | "tokens" | "flops" | "mfu";
  /** Of the rank. */
  readonly values: Float64Array;
  /** Over all ranks, of mfu their mean; empty where that was not asked for or known. */
  readonly summed: Float64Array;
  /** Of `values`, over the columns behind the warm-up. */
  readonly median: number | null;
  readonly summedMedian: number | null;
}

/** Where the number of floating point operations comes from. */
export interface StepFlops {
  /**
   * settings: `flops.per_step`, `.per_sample` and `.per_token` of the recording; trace:
   * counted by torch's profiler, of the steps of one trace.
   */
  readonly origin: "settings" | "trace" | "nothing";
  /** Of one step on the rank, at the median. */
  readonly perStep: number | null;
  /** Operations per second that the device could do, as the settings say. */
  readonly devicePeak: number | null;
  /** What has to be set for an MFU; empty: nothing is missing. */
  readonly missing: string;
}

/**
 * Route `/steps` (run, rank, ranks, x, x0, x1, px, phase, of): the steps' time by part.
 *
 * A column holds `steps_per_column` steps and shows the slowest of them: none is ever
 * hidden. Columns of parts have one value per column of the picture.
 */
export interface StepsResponse {
  readonly run: RunSummary;
  readonly x: XKind;
  readonly of: StepsOf;
  /** Whose times place the columns and whose throughput is shown; None: no steps. */
  readonly rank: number | null;
  readonly xLow: number;
  /** Full extent of the data. */
  readonly xHigh: number;
  /** Borders of the columns on the x axis: one more than there are columns. */
  readonly edges: Float64Array;
  readonly stepsPerColumn: number;
  readonly firstStep: Float64Array;
  /** The step shown, where one was kept by itself; else the first that it may be. */
  readonly shownStep: Float64Array;
  /** Whose step is shown; -1: nothing was recorded. */
  readonly columnRank: Int32Array;
  /** Of the step shown: the sum of all parts where any was recorded. */
  readonly seconds: Float64Array;
  /** Those that were recorded, and other; empty where none was. */
  readonly parts: readonly StepPart[];
  /** False where parts of the slowest step had to be told from means and maxima. */
  readonly exact: boolean;
  /** Ranks that were looked at. */
  readonly numRanks: number;
  /** Ranks of which the throughputs over all ranks are made. */
  readonly numSummed: number;
  readonly rates: readonly StepRate[];
  readonly flops: StepFlops;
  readonly absent: readonly AbsentPart[];
  /** `SeriesInfo.key` of the step's memory peak: allocated, else resident. */
  readonly memorySeries: string | null;
  readonly marks: readonly Mark[];
  readonly phases: readonly string[];
}

/**
 * Route `/step_heatmap` (run, rank, ranks, x0, x1, px, rows, phase, part).
 *
 * Ranks by steps: how far each is beyond the rank in the middle of the same step, in
 * per cent of that one's step time. Of a cell that covers several ranks or steps, the
 * one that is furthest behind is shown.
 */
export interface StepHeatmapResponse {
  /** step, a part of the step's time, or other. */
  readonly part: string;
  readonly cells: HeatmapResponse;
}

/** One rank beside the rank in the middle of the same steps. */
export interface StragglerRow {
  readonly rank: number;
  readonly host: string;
  /** Share of the steps in which it was the slowest; 0 to 1. */
  readonly slowestShare: number;
  /** Median over the steps of what its step took beyond that of the middle rank. */
  readonly excessSeconds: number | null;
  /** Where it is longest beyond the middle rank; empty: nowhere, or not recorded. */
  readonly part: string;
  readonly partExcessSeconds: number | null;
  readonly standsOut: boolean;
  /** `rank 12: dataloader +38.0 ms`. */
  readonly words: string;
}

/** What slows the training down, in plain words, with what that rests on. */
export interface StepFinding {
  readonly key: "dataloader_bound" | "straggler" | "slow_every_n" | "growing";
  readonly sentence: string;
  readonly advice: readonly string[];
  readonly rank: number | null;
  /** A step that shows it. */
  readonly step: number | null;
  /** What it costs each step on average: findings come in this order. */
  readonly secondsPerStep: number;
  readonly evidence: readonly VerdictEvidence[];
}

/** What a part takes on average, over all steps and all ranks that recorded it. */
export interface StepPartMean {
  readonly name: string;
  readonly seconds: number;
  /** Of the step's time; 0 to 1. */
  readonly share: number;
}

/**
 * Route `/stragglers` (run, rank, ranks, phase): who is waited for, and what is slow.
 *
 * Of all steps. With `rank` or `ranks`, those alone are compared.
 */
export interface StragglersResponse {
  readonly run: RunSummary;
  readonly numRanks: number;
  /** Ranks without step times, or not read for lack of time. */
  readonly numLeftOut: number;
  readonly numSteps: number;
  /** 1 where each step counts by itself; else means of so many are compared. */
  readonly stepsPerColumn: number;
  /** The middle rank's step, at the median. */
  readonly stepSeconds: number | null;
  readonly parts: readonly StepPartMean[];
  /** At most 64, those that cost most first. */
  readonly rows: readonly StragglerRow[];
  readonly numStandingOut: number;
  /** What tells the ranks apart: step, or the part that the others wait for. */
  readonly part: string;
  readonly findings: readonly StepFinding[];
}

/**
 * Route `/step` (run, rank, ranks, phase, step): one step on every rank.
 *
 * Columns have one value per rank, the slowest rank first; at most 1,024 ranks.
 */
export interface StepResponse {
  readonly run: RunSummary;
  readonly step: number;
  /** Ranks that have the step; more than are listed where there are very many. */
  readonly numRanks: number;
  /** Ranks that were not read, for lack of time: asking again goes on. */
  readonly numUnread: number;
  readonly ranks: Int32Array;
  /** Index into `hosts`. */
  readonly host: Int32Array;
  readonly hosts: readonly string[];
  readonly seconds: Float64Array;
  /** When the step began and ended, milliseconds since the epoch. */
  readonly startMs: Float64Array;
  readonly endMs: Float64Array;
  readonly parts: readonly StepPart[];
  readonly memorySeries: string | null;
  readonly memoryBytes: Float64Array;
  readonly absent: readonly AbsentPart[];
}

/** Route `/drop` (POST; name): where a dropped file can be looked at now. */
export interface DropResponse {
  /** RunSummary.id of the run that dropped files make. */
  readonly run: string;
  /** The page that shows it. */
  readonly view: "allocations" | "trace";
  /** Names the file's allocator history in requests; empty for a trace. */
  readonly history: string;
  /** As it was given, made fit to be shown; may hold any text. */
  readonly name: string;
  /** As its name says. */
  readonly rank: number | null;
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
  readonly histories: HistoriesResponse;
  readonly history: HistoryResponse;
  readonly stacks: StacksResponse;
  readonly allocations: AllocationsResponse;
  readonly allocation_holders: AllocationHoldersResponse;
  readonly allocation_live: AllocationLiveResponse;
  readonly allocation_block: AllocationBlockResponse;
  readonly allocation_range: AllocationRangeResponse;
  readonly segments: SegmentsResponse;
  readonly segment_timeline: SegmentTimelineResponse;
  readonly allocator_events: AllocatorEventsResponse;
  readonly trace: TraceResponse;
  readonly trace_slices: TraceSlicesResponse;
  readonly trace_slice: TraceSliceResponse;
  readonly trace_instant: TraceInstantResponse;
  readonly trace_search: TraceSearchResponse;
  readonly trace_range: TraceRangeResponse;
  readonly trace_reports: TraceReportsResponse;
  readonly trace_report: TraceReportResponse;
  readonly traces: TracesResponse;
  readonly profile: ProfileResponse;
  readonly module_times: ModuleTimesResponse;
  readonly operators: OperatorsResponse;
  readonly operator: OperatorResponse;
  readonly operator_memory: OperatorMemoryResponse;
  readonly kernels: KernelsResponse;
  readonly distributed: DistributedResponse;
  readonly distributed_heatmap: DistributedHeatmapResponse;
  readonly compare: CompareResponse;
  readonly rank_histories: RankHistoriesResponse;
  readonly verdict: VerdictResponse;
  readonly steps: StepsResponse;
  readonly step_heatmap: StepHeatmapResponse;
  readonly stragglers: StragglersResponse;
  readonly step: StepResponse;
  readonly drop: DropResponse;
}
