// Generated from tb_plugin/api.py by `npm run gen`. Do not edit.

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
  readonly capacityKind: "device" | "cgroup_limit" | "host_memory" | "none";
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

/** What each data route answers. */
export interface Responses {
  readonly runs: RunsResponse;
  readonly overview: OverviewResponse;
  readonly timeline: TimelineResponse;
  readonly heatmap: HeatmapResponse;
  readonly host: HostResponse;
}
