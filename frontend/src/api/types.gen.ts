// Generated from tb_plugin/api by `npm run gen`. Do not edit.

export const API_VERSION = 2;

export const CATEGORY_LABELS = {"param": "Params", "sharded_param": "Sharded params", "unsharded_param": "Unsharded params", "buffer": "Buffers", "grad": "Grads", "sharded_grad": "Sharded grads", "unsharded_grad": "Unsharded grads", "optimizer": "Optimizer", "activation": "Activations", "input": "Inputs", "activation_grad": "Activation grads", "comm": "Comm", "all_gather": "All-gather", "reduce_scatter": "Reduce-scatter", "bucket": "DDP buckets", "temp": "Temp", "other": "Other", "unknown": "Unknown"} as const;

export const ACTION_WORDS = {"alloc": "allocated", "free_requested": "free requested", "free_completed": "freed", "free": "freed", "segment_alloc": "segment reserved", "segment_free": "segment returned", "segment_map": "segment mapped", "segment_unmap": "segment unmapped", "snapshot": "snapshot", "oom": "out of memory", "annotate": "annotation", "unknown": "unknown event"} as const;

export type XKind = "step" | "relative" | "wall";

export type Unit = "bytes" | "bytes_per_step" | "bytes_per_second" | "count" | "per_second" | "percent" | "seconds" | "celsius" | "watts";

export type CapacityKind = "device" | "cgroup_limit" | "host_memory" | "none";

export type RunStatus = "out_of_memory" | "leak" | "stopped" | "live" | "warned" | "fine";

export type HistoryState = "closed" | "opening" | "ready" | "failed";

export type CompareBy = "category" | "module" | "line" | "size" | "stack";

export type StackMatch = "exact" | "function";

export type TraceTableName = "operators" | "kernels" | "calls" | "modules" | "memory";

export type TracePer = "trace" | "step";

export type Severity = "error" | "warning" | "info";

export type Quantity = "bytes" | "count" | "percent" | "seconds";

export type PageName = "overview" | "timeline" | "steps" | "blocks" | "modules" | "trace" | "operators";

export type OomOrigin = "oom" | "exception" | "signal" | "file";

export type CategoryGroup = "param" | "grad" | "optimizer" | "activation" | "activation_grad" | "comm" | "temp" | "unknown";

export type AllocationOrder = "category" | "group" | "allocation";

export type AllocationColour = "category" | "module" | "stack" | "age" | "stream" | "pool";

export type FunctionKind = "snaps" | "hooks" | "activations" | "modules" | "history";

export type FunctionGroup = "device" | "process" | "hook";

export type HistoryOrigin = "call" | "by_hand" | "oom" | "exception" | "signal" | "file";

export type HistoryLevel = "active" | "allocated" | "reserved";

export type HistoryMarkKind = "oom" | "snapshot" | "annotation" | "step" | "tag";

export type ModuleState = "before_pre_forward" | "after_pre_forward" | "before_post_forward" | "after_post_forward" | "peak_forward" | "before_pre_backward" | "after_pre_backward" | "before_post_backward" | "after_post_backward" | "peak_backward" | "pre_forward_ac" | "post_forward_ac" | "window_start" | "window_peak" | "before_optimizer" | "after_optimizer" | "window_end";

export type ModuleMeasure = "held" | "total";

export type SpanKind = "forward" | "backward" | "recompute";

export type SegmentSort = "address" | "size" | "free" | "largest_free" | "age";

export type SizeClass = "small" | "large";

export type AllocatorAction = "alloc" | "free_requested" | "free_completed" | "free" | "segment_alloc" | "segment_free" | "segment_map" | "segment_unmap" | "snapshot" | "oom" | "annotate" | "unknown";

export type ColumnUnit = "text" | "name" | "category" | "problem" | "stack" | "count" | "rank" | "ms" | "us" | "seconds" | "excess_seconds" | "instant" | "bytes" | "size_class" | "change_bytes" | "change" | "change_share" | "of_row" | "change_of_row" | "bytes_per_second" | "share" | "ratio" | "flops" | "yes" | "errors";

export type DistributedPart = "step" | "computation" | "overlap" | "communication" | "other";

export type OperatorsBy = "name" | "shapes" | "category";

export type OperatorCharge = "allocating" | "freeing";

export type TraceState = "opening" | "ready" | "failed";

export type ProfileRole = "kernel" | "memcpy" | "memset" | "communication" | "runtime" | "dataloader" | "cpu_exec" | "other";

export type ColumnSet = "times" | "efficiency";

export type StepsOf = "rank" | "worst" | "median";

export type TraceTrackKind = "host" | "device" | "python" | "span" | "counter" | "other";

export type TraceSourceKind = "trace" | "spans" | "counters";

export type TraceFamily = "kernel" | "operator" | "runtime" | "python" | "communication" | "memory" | "step" | "forward" | "backward" | "optimizer" | "dataloader" | "annotation" | "oom" | "checkpoint" | "instant" | "other";

export type TraceReduced = "exact" | "highest" | "mean";

export type TraceFileState = "found" | "opening" | "ready" | "failed";

export type SeriesGroup = "device" | "process" | "timing" | "host" | "sensor" | "progress";

/** What went wrong, where, and what to do about it. */
export interface ErrorResponse {
  readonly what: string;
  readonly where: string;
  readonly remedy: string;
}

/** A file that could not be read whole. Nothing else is lost by it. */
export interface Problem {
  readonly severity: Severity;
  readonly path: string;
  readonly what: string;
  readonly where: string;
  readonly salvaged: string;
  readonly remedy: string;
  readonly rank: number | null;
  readonly slice: string | null;
  readonly kind: "fault" | "unread";
}

/** Other tools' files seen in the logdir that no run is made of, by kind. */
export interface ForeignFiles {
  readonly kind: "tfevents" | "memprofiler" | "other";
  readonly numFiles: number;
  readonly example: string;
}

/** One training job: what the run picker shows. */
export interface RunSummary {
  readonly id: string;
  readonly name: string;
  readonly numRanks: number;
  readonly worldSize: number;
  readonly numAttempts: number;
  readonly firstMs: number;
  readonly lastMs: number;
  readonly lastStep: number | null;
  readonly live: boolean;
  readonly simulated: boolean;
  readonly virtualGpu: string;
  readonly imported: boolean;
  readonly madeOf: "recording" | "memprofiler" | "snapshots" | "traces";
  readonly deviceType: string;
  readonly numProblems: number;
}

/** How a run stands, as far as it was read already: nothing is opened for it. */
export interface RunStanding {
  readonly run: string;
  readonly status: RunStatus | null;
  readonly peakBytes: number | null;
  readonly finding: string;
}

/** Route `/runs`: everything the logdir holds. */
export interface RunsResponse {
  readonly logdirs: readonly string[];
  readonly runs: readonly RunSummary[];
  readonly standings: readonly RunStanding[];
  readonly foreign: readonly ForeignFiles[];
  readonly problems: readonly Problem[];
  readonly pluginVersion: string;
  readonly dropLimitBytes: number;
}

/** Live bytes of both sides by something, the largest difference first. */
export interface CompareTable {
  readonly by: CompareBy;
  readonly rows: TableRows;
}

export interface CompareSide {
  readonly run: RunSummary;
  readonly reference: HistoryReference;
  readonly device: number;
  readonly moment: AllocationMoment;
  readonly words: string;
}

/** A against B: two runs, or two moments. */
export interface Comparison {
  readonly a: RunSummary | CompareSide;
  readonly b: RunSummary | CompareSide;
  readonly sentence: string;
  readonly figures: TableRows;
  readonly tables: readonly CompareTable[];
}

/** Route `/compare_runs` (run, rank, b_run, b_rank): A against B, by their numbers. */
export interface CompareRunsResponse {
  readonly a: RunSummary;
  readonly b: RunSummary;
  readonly sentence: string;
  readonly figures: TableRows;
  readonly tables: readonly CompareTable[];
  readonly tablesOf: string;
  readonly momentFigures: TableRows;
  readonly stillReading: boolean;
}

/** Route `/run_table`: every run of the logdir as one row, the worst first. */
export interface RunTableResponse {
  readonly standings: readonly RunStanding[];
  readonly table: TableRows;
  readonly stillReading: boolean;
}

/** Live bytes of both sides by stack, the largest difference first; at most 10,000. */
export interface CompareStacks {
  readonly strings: readonly string[];
  readonly name: Int32Array;
  readonly filename: Int32Array;
  readonly line: Int32Array;
  readonly kind: Uint8Array;
  readonly start: Int32Array;
  readonly frame: Int32Array;
  readonly userFrame: Int32Array;
  readonly aBytes: Float64Array;
  readonly bBytes: Float64Array;
  readonly numStacks: number;
}

/** Route `/compare`: what lives at a moment of one history, against another's. */
export interface CompareResponse {
  readonly a: CompareSide;
  readonly b: CompareSide;
  readonly sentence: string;
  readonly figures: TableRows;
  readonly tables: readonly CompareTable[];
  readonly stacks: CompareStacks;
}

/** One rank's history among those of all ranks. */
export interface RankHistory {
  readonly rank: number;
  readonly reference: HistoryReference;
  readonly state: HistoryState;
  readonly problem: string;
  readonly device: number | null;
  readonly peakActiveBytes: number | null;
  readonly peakMoment: number | null;
  readonly numOoms: number | null;
}

/** Route `/rank_histories` (run, history): the same moment's histories of all ranks. */
export interface RankHistoriesResponse {
  readonly run: RunSummary;
  readonly title: string;
  readonly sentence: string;
  readonly note: string;
  readonly ranks: readonly RankHistory[];
  readonly table: TableRows;
  readonly medianHistoryPeakBytes: number | null;
  readonly lines: readonly string[];
  readonly lineBytes: Float64Array;
  readonly stillReading: boolean;
}

/** What a table of two traces can compare. */
export interface TraceMeasure {
  readonly name: string;
  readonly title: string;
}

/** Route `/compare_traces`: a table of one trace (run, source) against another's. */
export interface CompareTracesResponse {
  readonly sentence: string;
  readonly roles: TableRows;
  readonly table: TraceTableName;
  readonly rows: TableRows;
  readonly parent: Int32Array;
  readonly measure: string;
  readonly measures: readonly TraceMeasure[];
  readonly per: TracePer;
  readonly lacks: string;
  readonly note: string;
}

/** Route `/drop` (POST; name): where a dropped file can be looked at now. */
export interface DropResponse {
  readonly run: string;
  readonly view: "blocks" | "trace";
  readonly history: string;
  readonly name: string;
  readonly rank: number | null;
}

/** One number that a finding rests on. */
export interface Evidence {
  readonly key: string;
  readonly label: string;
  readonly value: number;
  readonly unit: Quantity;
  readonly scope: string;
  readonly caveat: string;
  readonly decisive: boolean;
}

/** Something to try, given only where evidence supports it. */
export interface Advice {
  readonly text: string;
  readonly gain: number | null;
  readonly unit: Quantity;
  readonly because: readonly string[];
  readonly setting: string;
}

/** Where to look: a page and what it is to show. */
export interface Place {
  readonly page: PageName;
  readonly label: string;
  readonly rank: number | null;
  readonly step: number | null;
  readonly source: string | null;
  readonly history: string | null;
  readonly device: number | null;
  readonly moment: number | null;
}

/** Memory that was active at an error or at a peak, by the line that allocated it. */
export interface HeldBy {
  readonly label: string;
  readonly category: string | null;
  readonly bytes: number;
  readonly share: number;
  readonly numBlocks: number;
  readonly isPending: boolean;
}

/** Last known state of another rank. */
export interface PeerState {
  readonly rank: number;
  readonly step: number | null;
  readonly allocatedBytes: number | null;
  readonly reservedBytes: number | null;
  readonly peakBytes: number | null;
  readonly ended: string;
  readonly ranOut: boolean;
}

/** What was live when memory ran out, or when a process ended otherwise. */
export interface MemoryState {
  readonly origin: OomOrigin;
  readonly isOutOfMemory: boolean;
  readonly analysed: boolean;
  readonly attempt: number;
  readonly file: string;
  readonly message: string;
  readonly numEarlier: number;
  readonly heldSentence: string;
  readonly heldBy: readonly HeldBy[];
  readonly stack: readonly string[];
  readonly peers: readonly PeerState[];
}

/** One thing that is wrong, or worth knowing. */
export interface Finding {
  readonly id: string;
  readonly key: string;
  readonly severity: Severity;
  readonly title: string;
  readonly sentence: string;
  readonly short: string;
  readonly rank: number | null;
  readonly device: number | null;
  readonly step: number | null;
  readonly timeMs: number | null;
  readonly during: string;
  readonly line: string;
  readonly cost: number | null;
  readonly unit: Quantity;
  readonly also: readonly string[];
  readonly evidence: readonly Evidence[];
  readonly advice: readonly Advice[];
  readonly place: Place | null;
  readonly others: readonly string[];
  readonly rule: string;
  readonly notRecorded: readonly string[];
  readonly state: MemoryState | null;
  readonly markdown: string;
}

/** Route `/findings` (run, rank): all that was found, the worst first. */
export interface FindingsResponse {
  readonly run: RunSummary;
  readonly findings: readonly Finding[];
  readonly numErrors: number;
  readonly stillReading: boolean;
  readonly problems: readonly Problem[];
}

/** One line of a host track. */
export interface HostLine {
  readonly name: string;
  readonly label: string;
  readonly rank: number;
  readonly host: string;
  readonly x: Float64Array;
  readonly y: Float64Array;
  readonly yLow: Float64Array;
  readonly isFlat: boolean;
}

/** One chart of the Host view. */
export interface HostTrack {
  readonly key: "cpu" | "memory" | "process_memory" | "swap" | "disk" | "network" | "gpu_utilization" | "gpu_memory" | "gpu_temperature" | "gpu_power";
  readonly title: string;
  readonly unit: Unit;
  readonly limit: number | null;
  readonly limitLabel: string;
  readonly lines: readonly HostLine[];
}

/** Route `/host` (run, rank, x, x0, x1, px). */
export interface HostResponse {
  readonly run: RunSummary;
  readonly rank: number;
  readonly hosts: readonly string[];
  readonly numHosts: number;
  readonly x: XKind;
  readonly xLow: number;
  readonly xHigh: number;
  readonly tracks: readonly HostTrack[];
  readonly absent: readonly AbsentSeries[];
  readonly marks: readonly Mark[];
}

/** Distinct call stacks, as columns of frames and of stacks. */
export interface StackColumns {
  readonly strings: readonly string[];
  readonly name: Int32Array;
  readonly filename: Int32Array;
  readonly line: Int32Array;
  readonly kind: Uint8Array;
  readonly start: Int32Array;
  readonly frame: Int32Array;
  readonly userFrame: Int32Array;
}

/** Route `/stacks` (run, history): call stacks; the same for all devices. */
export interface StacksResponse {
  readonly strings: readonly string[];
  readonly name: Int32Array;
  readonly filename: Int32Array;
  readonly line: Int32Array;
  readonly kind: Uint8Array;
  readonly start: Int32Array;
  readonly frame: Int32Array;
  readonly userFrame: Int32Array;
  readonly module: Int32Array;
  readonly numStacks: number;
}

/** Allocations that have one colour, or are stacked as one. */
export interface NamedGroup {
  readonly key: string;
  readonly label: string;
  readonly category: CategoryGroup | null;
  readonly stack: number | null;
}

/** What is drawn in one colour, or stacked as one, and how much it holds. */
export interface AllocationGroup {
  readonly key: string;
  readonly label: string;
  readonly category: CategoryGroup | null;
  readonly stack: number | null;
  readonly bytes: number;
}

/** Pixel columns from left to right; all columns have this length but `edge`. */
export interface AllocationColumns {
  readonly edge: Float64Array;
  readonly moment: Int32Array;
  readonly active: Float64Array;
  readonly reserved: Float64Array;
}

/** Allocations that have a run, each once; columns of equal length. */
export interface AllocationLives {
  readonly life: Int32Array;
  readonly size: Float64Array;
  readonly born: Int32Array;
  readonly freed: Int32Array;
  readonly gone: Int32Array;
  readonly stack: Int32Array;
  readonly group: Uint16Array;
  readonly band: Uint16Array;
}

/** An allocation at one height in its band over columns `first` to `last`, inclusive. */
export interface AllocationRuns {
  readonly slot: Int32Array;
  readonly first: Uint16Array;
  readonly last: Uint16Array;
  readonly offset: Float64Array;
}

/** Route `/allocations`: live allocations as a picture, exact at every column. */
export interface AllocationsResponse {
  readonly device: number;
  readonly axis: "event" | "time";
  readonly columns: AllocationColumns;
  readonly lives: AllocationLives;
  readonly runs: AllocationRuns;
  readonly groups: readonly AllocationGroup[];
  readonly bands: readonly AllocationGroup[];
  readonly rest: Float64Array;
  readonly bandBytes: Float64Array;
  readonly groupBytes: Float64Array;
  readonly minBytes: number;
  readonly topBytes: number;
  readonly peakBytes: number;
  readonly peakMoment: number;
  readonly marks: HistoryMarks | null;
}

/** Route `/allocation_holders` (as `/allocations`): who holds what in each column. */
export interface AllocationHoldersResponse {
  readonly device: number;
  readonly moment: Int32Array;
  readonly stack: Int32Array;
  readonly column: Uint16Array;
  readonly slot: Uint16Array;
  readonly change: Float64Array;
  readonly category: Uint8Array;
  readonly allocated: Float64Array;
}

/** What one colour of `colour=category` holds at a moment. */
export interface AllocationCategory {
  readonly key: string;
  readonly label: string;
  readonly category: CategoryGroup | null;
  readonly stack: number | null;
  readonly bytes: number;
  readonly numBlocks: number;
  readonly pendingBytes: number;
}

/** One line of where the device's memory went. */
export interface LedgerEntry {
  readonly key: string;
  readonly bytes: number | null;
  readonly caveat: string;
}

/** Where the device's memory went at a moment. */
export interface AllocationLedger {
  readonly entries: readonly LedgerEntry[];
  readonly reservedBytes: number;
  readonly deviceUsedBytes: number | null;
}

/** Route `/allocation_live` (run, history, device, moment, stream, pool): exact. */
export interface AllocationLiveResponse {
  readonly device: number;
  readonly moment: number;
  readonly timeMs: number | null;
  readonly step: number | null;
  readonly phase: string;
  readonly activeBytes: number;
  readonly allocatedBytes: number;
  readonly reservedBytes: number | null;
  readonly numBlocks: number;
  readonly categories: readonly AllocationCategory[];
  readonly stack: Int32Array;
  readonly stackBytes: Float64Array;
  readonly stackBlocks: Int32Array;
  readonly stackCategory: Uint8Array;
  readonly ledger: AllocationLedger | null;
  readonly pinnedHostBytes: number | null;
}

/** Where an event lies, as people speak of it. */
export interface AllocationMoment {
  readonly moment: number;
  readonly timeMs: number | null;
  readonly step: number | null;
  readonly phase: string;
}

/** Route `/allocation_block` (run, history, device, life): one allocation's card. */
export interface AllocationBlockResponse {
  readonly device: number;
  readonly life: number;
  readonly name: string;
  readonly address: string;
  readonly sizeBytes: number;
  readonly isRounded: boolean;
  readonly blockBytes: number;
  readonly born: AllocationMoment | null;
  readonly freed: AllocationMoment | null;
  readonly gone: AllocationMoment | null;
  readonly stream: number | null;
  readonly pool: number | null;
  readonly stack: number | null;
  readonly category: CategoryGroup;
  readonly evidence: string;
  readonly tensor: string;
  readonly annotations: readonly string[];
  readonly tag: string;
  readonly compileContext: string;
  readonly numSiblings: number;
  readonly siblingBytes: number;
  readonly numEver: number;
  readonly segmentAddress: string;
  readonly segmentBytes: number | null;
}

/** Route `/allocation_range` (run, history, device, e0, e1, stream, pool): by stack. */
export interface AllocationRangeResponse {
  readonly device: number;
  readonly e0: number;
  readonly e1: number;
  readonly first: AllocationMoment;
  readonly last: AllocationMoment;
  readonly allocatedBytes: number;
  readonly numAllocated: number;
  readonly freedBytes: number;
  readonly numFreed: number;
  readonly liveBytes: number;
  readonly numLive: number;
  readonly earlierFreedBytes: number;
  readonly numEarlierFreed: number;
  readonly highestBytes: number;
  readonly highestMoment: number;
  readonly table: TableRows;
}

/** One profiled function in one phase, over all ranks and attempts. */
export interface CollectedFunction {
  readonly function: string;
  readonly phase: string;
  readonly kinds: readonly FunctionKind[];
  readonly numRanks: number;
}

/** Collected calls of one function on one rank, in order of time. */
export interface FunctionCalls {
  readonly attempt: Int32Array;
  readonly iteration: Int32Array;
  readonly step: Float64Array;
  readonly startMs: Float64Array;
  readonly endMs: Float64Array;
  readonly collected: readonly string[];
}

/** A number that was recorded at the start or end of calls. */
export interface FunctionStat {
  readonly name: string;
  readonly label: string;
  readonly unit: Unit;
  readonly group: FunctionGroup;
}

/** A stat at the start and end of each call; NaN: not recorded. */
export interface StatOfCalls {
  readonly stat: FunctionStat;
  readonly start: Float64Array;
  readonly end: Float64Array;
}

/** One stat of one call, rank by rank; ranks ascend. */
export interface FunctionOverRanks {
  readonly stat: string;
  readonly unit: Unit;
  readonly rank: Int32Array;
  readonly start: Float64Array;
  readonly end: Float64Array;
  readonly difference: Float64Array;
  readonly ofRanks: number;
}

/** What hooks said of every module in one call, or what autograd saved by module. */
export interface ModuleValues {
  readonly kind: FunctionKind;
  readonly incomplete: boolean;
  readonly table: TableRows;
}

/** A captured allocator history, or a file that holds one. */
export interface HistoryReference {
  readonly id: string;
  readonly rank: number | null;
  readonly attempt: number;
  readonly function: string;
  readonly phase: string;
  readonly iteration: number;
  readonly context: "start" | "end" | "";
  readonly label: string;
  readonly step: number | null;
  readonly timeMs: number;
  readonly numBytes: number;
  readonly path: string;
  readonly title: string;
}

/** Route `/functions` (run, rank, function, phase, attempt, iteration, step, stat, stats, sides). */
export interface FunctionsResponse {
  readonly run: RunSummary;
  readonly source: "recorded" | "imported";
  readonly functions: readonly CollectedFunction[];
  readonly function: string | null;
  readonly phase: string;
  readonly ranks: Int32Array;
  readonly rank: number | null;
  readonly calls: FunctionCalls;
  readonly numCalls: number;
  readonly table: TableRows;
  readonly stats: readonly FunctionStat[];
  readonly shown: readonly string[];
  readonly drawn: StatOfCalls | null;
  readonly growth: string;
  readonly attempt: number | null;
  readonly iteration: number | null;
  readonly selected: number | null;
  readonly overRanks: FunctionOverRanks | null;
  readonly tables: readonly ModuleValues[];
  readonly histories: readonly HistoryReference[];
  readonly historyTable: TableRows;
  readonly numOwnHistories: number;
  readonly exportCommand: string;
  readonly moduleWindow: string | null;
  readonly absent: readonly SourceStatus[];
  readonly problems: readonly Problem[];
}

/** One history of the list. */
export interface HistoryChoice {
  readonly reference: HistoryReference;
  readonly origin: HistoryOrigin;
  readonly state: HistoryState;
  readonly problem: string;
}

/** Route `/histories` (run, rank): every history of a run, of all ranks, by time. */
export interface HistoriesResponse {
  readonly run: RunSummary;
  readonly histories: readonly HistoryChoice[];
  readonly numHistories: number;
  readonly ranks: readonly number[];
  readonly default: string | null;
  readonly stillReading: boolean;
  readonly absent: readonly SourceStatus[];
  readonly problems: readonly Problem[];
}

/** The highest level of one kind. */
export interface HistoryPeak {
  readonly level: HistoryLevel;
  readonly bytes: number;
  readonly moment: number;
}

/** Events and spans that have names; columns of equal length, by `moment`. */
export interface HistoryMarks {
  readonly kind: Uint8Array;
  readonly kinds: readonly HistoryMarkKind[];
  readonly moment: Int32Array;
  readonly end: Int32Array;
  readonly label: Int32Array;
  readonly labels: readonly string[];
  readonly bytes: Float64Array;
  readonly deviceFree: Float64Array;
  readonly step: Float64Array;
  readonly numMarks: number;
}

/** The whole history in at most 2,000 columns of equally many events. */
export interface HistoryCurve {
  readonly event: Int32Array;
  readonly peak: Int32Array;
  readonly active: Float64Array;
  readonly allocated: Float64Array;
  readonly reserved: Float64Array;
  readonly timeMs: Float64Array;
}

/** A sentence about what pictures of a history show or lack. */
export interface HistoryNote {
  readonly text: string;
  readonly warns: boolean;
}

/** One device of a history, or pinned host memory as if it were one. */
export interface HistoryDevice {
  readonly device: number;
  readonly title: string;
  readonly numEvents: number;
  readonly numAllocations: number;
  readonly hasTimes: boolean;
  readonly firstMs: number | null;
  readonly lastMs: number | null;
  readonly capacityBytes: number | null;
  readonly activeBytes: number;
  readonly allocatedBytes: number;
  readonly reservedBytes: number;
  readonly numBefore: number;
  readonly beforeBytes: number;
  readonly numLost: number;
  readonly roundingBytes: number;
  readonly notes: readonly HistoryNote[];
  readonly peaks: readonly HistoryPeak[];
  readonly marks: HistoryMarks;
  readonly curve: HistoryCurve;
}

/** Something that contradicts itself in the file: set right, or drawn as it is. */
export interface HistoryOddity {
  readonly what: string;
  readonly count: number;
}

/** One of the allocator's settings. */
export interface HistorySetting {
  readonly name: string;
  readonly value: string;
}

/** What a history that was opened says. */
export interface HistoryFacts {
  readonly devices: readonly HistoryDevice[];
  readonly defaultDevice: number | null;
  readonly streams: readonly string[];
  readonly pools: readonly string[];
  readonly settings: readonly HistorySetting[];
  readonly numStacks: number;
  readonly holderTable: TableRows;
  readonly frameTable: TableRows;
}

/** Route `/history` (run, history, again): opens it, and says what it holds. */
export interface HistoryResponse {
  readonly run: RunSummary;
  readonly reference: HistoryReference;
  readonly origin: HistoryOrigin;
  readonly state: HistoryState;
  readonly progress: number;
  readonly doing: string;
  readonly facts: HistoryFacts | null;
  readonly problem: Problem | null;
}

/** A state, as the page says it. */
export interface ModuleMoment {
  readonly state: ModuleState;
  readonly words: string;
  readonly group: string;
}

/** One tracked call of a function, on however many ranks. */
export interface ModuleWindow {
  readonly id: string;
  readonly words: string;
  readonly group: string;
  readonly function: string;
  readonly phase: string;
  readonly iteration: number;
  readonly attempt: number;
  readonly step: number | null;
  readonly timeMs: number;
  readonly numRanks: number;
}

/** What is known of the chosen window on the chosen rank. */
export interface ModuleFacts {
  readonly source: "recorded" | "simulated" | "imported";
  readonly estimate: string;
  readonly incomplete: boolean;
  readonly numEvents: number | null;
  readonly numEventsDropped: number;
  readonly reasons: readonly string[];
  readonly hasHeld: boolean;
  readonly windowPeakBytes: number | null;
}

/** What values are compared with. */
export interface ModuleBaseline {
  readonly kind: "state" | "window" | "rank" | "median";
  readonly state: ModuleState;
  readonly window: string;
  readonly rank: number | null;
  readonly numRanks: number;
  readonly ofRanks: number;
  readonly words: string;
}

/** What a reader must know before trusting the numbers. */
export interface ModuleCaveat {
  readonly head: string;
  readonly text: string;
}

/** What takes most, in a sentence: `before`, the module, `after`. */
export interface ModuleLead {
  readonly before: string;
  readonly module: string | null;
  readonly after: string;
  readonly rest: string;
}

/** A category of memory, for its colour. */
export interface ModuleCategory {
  readonly name: string;
  readonly group: CategoryGroup;
}

/** Bytes of one category over time. */
export interface CategorySeries {
  readonly name: string;
  readonly group: CategoryGroup;
  readonly bytes: Float64Array;
}

/** Where each row of the table stands, parents before children. */
export interface ModuleTree {
  readonly fqn: readonly string[];
  readonly label: readonly string[];
  readonly parent: Int32Array;
  readonly numEqual: Int32Array;
  readonly fold: Int32Array;
}

/** All that a call tracked on a rank at one moment: by modules, and by none. */
export interface ModuleSplit {
  readonly totalBytes: number;
  readonly heldBytes: number;
  readonly unattributedBytes: number;
}

/** Route `/modules`: one rank's memory by module. */
export interface ModulesResponse {
  readonly run: RunSummary;
  readonly windows: readonly ModuleWindow[];
  readonly numWindows: number;
  readonly window: string | null;
  readonly ranks: Int32Array;
  readonly rank: number | null;
  readonly state: ModuleState;
  readonly states: readonly ModuleMoment[];
  readonly call: number | null;
  readonly maxCalls: number;
  readonly device: string;
  readonly devices: readonly string[];
  readonly measure: ModuleMeasure;
  readonly facts: ModuleFacts | null;
  readonly factWords: readonly string[];
  readonly caveats: readonly ModuleCaveat[];
  readonly lead: ModuleLead | null;
  readonly baseline: ModuleBaseline | null;
  readonly tree: ModuleTree;
  readonly table: TableRows;
  readonly split: ModuleSplit | null;
  readonly categories: readonly ModuleCategory[];
  readonly absent: readonly SourceStatus[];
  readonly problems: readonly Problem[];
}

/** One module at one state, on one rank, window by window; in order of time. */
export interface ModuleOverWindows {
  readonly windows: readonly string[];
  readonly step: Float64Array;
  readonly timeMs: Float64Array;
  readonly totalBytes: Float64Array;
  readonly heldBytes: Float64Array;
  readonly ofWindows: number;
}

/** One module at one state, in one window, rank by rank; ranks ascend. */
export interface ModuleOverRanks {
  readonly rank: Int32Array;
  readonly totalBytes: Float64Array;
  readonly heldBytes: Float64Array;
  readonly ofRanks: number;
}

/** Route `/module` (run, module, rank, window, state, call, device): one module. */
export interface ModuleResponse {
  readonly run: RunSummary;
  readonly module: string;
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
  readonly moments: TableRows;
  readonly overWindows: ModuleOverWindows;
  readonly overRanks: ModuleOverRanks;
  readonly problems: readonly Problem[];
}

/** Forwards and backwards of modules on the x axis, outer ones first. */
export interface ModuleSpans {
  readonly modules: readonly string[];
  readonly module: Int32Array;
  readonly kinds: readonly SpanKind[];
  readonly kind: Uint8Array;
  readonly call: Int32Array;
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

/** Route `/module_timeline`: categories through one window. */
export interface ModuleTimelineResponse {
  readonly run: RunSummary;
  readonly window: string | null;
  readonly rank: number | null;
  readonly device: string;
  readonly axis: "time" | "event";
  readonly xLow: number;
  readonly xHigh: number;
  readonly x0: number;
  readonly xPerColumn: number;
  readonly totalBytes: Float64Array;
  readonly peakX: Float64Array;
  readonly categories: readonly CategorySeries[];
  readonly spans: ModuleSpans;
  readonly marks: readonly ModuleMark[];
}

/** Segments in the query's order; columns of equal length. */
export interface SegmentRows {
  readonly address: Float64Array;
  readonly totalBytes: Float64Array;
  readonly allocatedBytes: Float64Array;
  readonly pendingBytes: Float64Array;
  readonly freeBytes: Float64Array;
  readonly requestedBytes: Float64Array;
  readonly largestFreeBytes: Float64Array;
  readonly numActive: Int32Array;
  readonly kind: Int32Array;
  readonly numAlike: Int32Array;
  readonly opened: Int32Array;
  readonly stack: Int32Array;
  readonly firstBlock: Int32Array;
  readonly numBlocks: Int32Array;
}

/** Blocks of the segments, by address within each; columns of equal length. */
export interface SegmentBlocks {
  readonly offset: Float64Array;
  readonly size: Float64Array;
  readonly state: Uint8Array;
  readonly life: Int32Array;
  readonly stack: Int32Array;
  readonly category: Uint8Array;
}

/** A number of bytes that explains why memory cannot be used. */
export interface SegmentFigure {
  readonly name: string;
  readonly bytes: number;
  readonly hint: string;
  readonly isCause: boolean;
}

/** Why memory cannot be used: what is free, or what became of a request. */
export interface SegmentsWhy {
  readonly tone: "ok" | "bad" | "plain";
  readonly sentence: string;
  readonly more: readonly string[];
  readonly figures: readonly SegmentFigure[];
  readonly culprit: number;
  readonly lives: Int32Array;
}

/** Segments with pinned free memory: what keeps them, by their addresses. */
export interface SegmentPins {
  readonly address: readonly number[];
  readonly text: readonly string[];
}

/** Route `/segments` (run, history, device): all segments and blocks at a moment. */
export interface SegmentsResponse {
  readonly device: number;
  readonly moment: AllocationMoment;
  readonly action: AllocatorAction | null;
  readonly actionBytes: number | null;
  readonly numSegments: number;
  readonly reservedBytes: number;
  readonly allocatedBytes: number;
  readonly pendingBytes: number;
  readonly freeBytes: number;
  readonly wholeBytes: number;
  readonly pinnedBytes: number;
  readonly segments: SegmentRows;
  readonly blocks: SegmentBlocks;
  readonly kinds: readonly string[];
  readonly categories: readonly AllocationGroup[];
  readonly freeSizes: TableRows;
  readonly arenas: TableRows;
  readonly why: SegmentsWhy;
  readonly pins: SegmentPins;
  readonly pinners: TableRows;
  readonly oddities: readonly HistoryOddity[];
}

/** Route `/segment_timeline` (as `/allocations`): what the allocator held, over time. */
export interface SegmentTimelineResponse {
  readonly picture: AllocationsResponse;
}

/** Route `/allocator_events` (run, history, device): events as a list. */
export interface AllocatorEventsResponse {
  readonly device: number;
  readonly e0: number;
  readonly numEvents: number;
  readonly rowOfMoment: number;
  readonly table: TableRows;
}

/** Bytes of one category at a file's peak. */
export interface CategoryBytes {
  readonly category: string;
  readonly bytes: number;
}

/** The highest moment of a file's device: where memory ran out, else the fullest. */
export interface FilePeak {
  readonly reference: HistoryReference;
  readonly state: HistoryState;
  readonly problem: string;
  readonly device: number | null;
  readonly moment: number | null;
  readonly peakBytes: number | null;
  readonly reservedBytes: number | null;
  readonly outOfMemory: boolean | null;
  readonly categories: readonly CategoryBytes[];
  readonly largest: HeldBy | null;
}

/** Route `/snapshot_files` (run, rank): one row for each, by time. */
export interface SnapshotFilesResponse {
  readonly run: RunSummary;
  readonly files: readonly FilePeak[];
  readonly table: TableRows;
  readonly numFiles: number;
  readonly stillReading: boolean;
}

/** One start of the job in the same logdir. */
export interface Attempt {
  readonly index: number;
  readonly startedMs: number;
  readonly endedMs: number | null;
  readonly firstStep: number | null;
  readonly lastStep: number | null;
  readonly numRanks: number;
  readonly ended: "closed" | "exception" | "signal" | "lost" | "running";
  readonly overlapsPrevious: boolean;
}

/** One of the six headline numbers. */
export interface Headline {
  readonly key: string;
  readonly title: string;
  readonly meaning: string;
  readonly line: string;
  readonly value: number | null;
  readonly unit: Unit;
  readonly rank: number | null;
  readonly step: number | null;
  readonly sparkline: Float64Array;
  readonly caveats: readonly string[];
  readonly absentReason: string | null;
  readonly otherEnd: number | null;
}

/** One entry per rank, in rank order. */
export interface RankStrip {
  readonly peakSeries: string;
  readonly peakLabel: string;
  readonly capacityKind: CapacityKind;
  readonly rank: Int32Array;
  readonly peakBytes: Float64Array;
  readonly capacityBytes: Float64Array;
  readonly growthBytesPerStep: Float64Array;
  readonly numOoms: Float64Array;
  readonly lost: Uint8Array;
  readonly medianPeakBytes: number | null;
  readonly outliers: readonly number[];
  readonly numUnread: number;
  readonly table: TableRows;
}

/** One source: was it recorded, and if not, why and what to do. */
export interface SourceStatus {
  readonly source: string;
  readonly status: "recorded" | "absent" | "off" | "failed";
  readonly numRanks: number;
  readonly reason: string;
  readonly remedy: string;
  readonly cost: string;
}

/** A source that was recorded. */
export interface RecordedSource {
  readonly source: string;
  readonly numRanks: number;
  readonly cost: string;
  readonly elsewhere: string;
}

/** Sources that are missing on as many ranks for the same reason. */
export interface MissingSources {
  readonly sources: readonly string[];
  readonly status: "failed" | "absent" | "off" | "elsewhere";
  readonly numRanks: number;
  readonly reason: string;
  readonly remedy: string;
}

/** Steps of one phase, one after the other, that lay in a damaged part of a file. */
export interface LostSteps {
  readonly phase: string;
  readonly firstStep: number | null;
  readonly lastStep: number | null;
  readonly numSteps: number;
}

/** A cycle of the schedule that has no trace of torch's profiler. */
export interface LostTrace {
  readonly cycle: number;
  readonly firstStep: number | null;
  readonly lastStep: number | null;
  readonly why: string;
}

/** Steps and traces of one rank and start that the recording lacks, or may lack. */
export interface RankLoss {
  readonly rank: number;
  readonly attempt: number;
  readonly numSteps: number;
  readonly numDropped: number;
  readonly numUnwritten: number;
  readonly numDamaged: number;
  readonly damaged: readonly LostSteps[];
  readonly numSummedUp: number;
  readonly isStopped: boolean;
  readonly cutSeconds: number;
  readonly cutSteps: number | null;
  readonly numTraces: number;
  readonly numLostTraces: number;
  readonly lostTraces: readonly LostTrace[];
}

/** A fact of the run's headers, e.g. torch version, as text to show. */
export interface RunFact {
  readonly label: string;
  readonly value: string;
}

/** What takes memory of a real device, of a run on a virtual one. */
export interface LedgerRow {
  readonly label: string;
  readonly lowBytes: number | null;
  readonly highBytes: number | null;
  readonly mark: string;
  readonly source: string;
  readonly isTotal: boolean;
}

/** Whether a run on a virtual GPU fits a real one, as `memboard run --on` says it. */
export interface Prediction {
  readonly fit: "fits" | "does not fit" | "too close to call" | "cannot say";
  readonly sentences: readonly string[];
  readonly rows: readonly LedgerRow[];
}

/** A tab of the page that this run has no data for. */
export interface EmptyTab {
  readonly tab: string;
  readonly missing: string;
  readonly how: string;
}

export interface OverviewResponse {
  readonly run: RunSummary;
  readonly rank: number | null;
  readonly headlines: readonly Headline[];
  readonly strip: RankStrip;
  readonly recorded: readonly RecordedSource[];
  readonly missing: readonly MissingSources[];
  readonly about: string;
  readonly attempts: readonly Attempt[];
  readonly attemptTable: TableRows;
  readonly losses: readonly RankLoss[];
  readonly problems: readonly Problem[];
  readonly logdirProblems: readonly Problem[];
  readonly facts: readonly RunFact[];
  readonly planted: readonly string[];
  readonly empty: readonly EmptyTab[];
  readonly prediction: Prediction | null;
}

/** Bytes of a category, of a line or of a module at a peak. */
export interface PeakPart {
  readonly label: string;
  readonly category: string;
  readonly bytes: number;
}

/** All that was live at a peak, by category, and the largest holders of it. */
export interface PeakComposition {
  readonly title: string;
  readonly sentence: string;
  readonly bytes: number;
  readonly reservedBytes: number | null;
  readonly capacityBytes: number | null;
  readonly categories: readonly PeakPart[];
  readonly holdersTitle: string;
  readonly holders: readonly PeakPart[];
  readonly notRecorded: readonly string[];
  readonly place: Place;
}

/** Route `/peak_composition` (run, rank): what the memory at the peak is made of. */
export interface PeakCompositionResponse {
  readonly run: RunSummary;
  readonly composition: PeakComposition | null;
  readonly how: string;
  readonly stillReading: boolean;
}

/** A column of a table, declared once for page and files. */
export interface TableColumn {
  readonly key: string;
  readonly title: string;
  readonly help: string;
  readonly unit: ColumnUnit;
  readonly texts: readonly string[];
  readonly numbers: Float64Array;
  readonly notes: readonly string[];
  readonly hints: readonly string[];
  readonly absent: string;
  readonly absentText: string;
  readonly bar: string;
  readonly longest: number;
  readonly sum: number | null;
  readonly shareOf: string;
  readonly sorts: boolean;
}

/** The rows of a table that are sent. */
export interface TableRows {
  readonly title: string;
  readonly summary: string;
  readonly empty: string;
  readonly columns: readonly TableColumn[];
  readonly numRows: number;
  readonly numAll: number;
  readonly usual: string;
  readonly colours: readonly string[];
}

/** Route `/distributed` (run, cycle, ranks, step): computation and communication. */
export interface DistributedResponse {
  readonly run: RunSummary;
  readonly cycles: Int32Array;
  readonly cycle: number | null;
  readonly steps: Int32Array;
  readonly step: number | null;
  readonly sentence: string;
  readonly summary: string;
  readonly ranks: TableRows;
  readonly groups: TableRows;
  readonly collectives: TableRows;
  readonly numTraces: number;
  readonly numOpening: number;
  readonly findings: readonly Finding[];
  readonly problems: readonly Problem[];
}

/** Route `/distributed_heatmap` (run, cycle, ranks, part, x0, x1, px, rows). */
export interface DistributedHeatmapResponse {
  readonly run: RunSummary;
  readonly series: SeriesInfo | null;
  readonly xLow: number;
  readonly xHigh: number;
  readonly x0: number;
  readonly stepsPerColumn: number;
  readonly numRows: number;
  readonly numColumns: number;
  readonly ranksPerRow: number;
  readonly rowRank: Int32Array;
  readonly values: Uint16Array;
  readonly valueLow: number;
  readonly valueHigh: number;
  readonly capacityBytes: number | null;
  readonly noise: number;
  readonly exact: boolean;
  readonly marks: readonly Mark[];
  readonly absent: readonly AbsentSeries[];
}

/** Route `/kernels` (run, source, by, columns, sort, text, top): the table of kernels. */
export interface KernelsResponse {
  readonly run: RunSummary;
  readonly choice: ProfileChoice;
  readonly by: "name" | "properties";
  readonly table: TableRows;
}

/** Route `/operators` (run, source, by, columns, sort, text, top): the table of operators. */
export interface OperatorsResponse {
  readonly run: RunSummary;
  readonly choice: ProfileChoice;
  readonly by: OperatorsBy;
  readonly table: TableRows;
  readonly hasDevices: boolean;
  readonly hasStacks: boolean;
}

/** Calls of an operator from one place. */
export interface OperatorStack {
  readonly frames: readonly string[];
  readonly numCalls: number;
  readonly hostMs: number;
  readonly deviceMs: number;
}

/** Route `/operator` (run, source, by, name, shapes): where one is called from. */
export interface OperatorResponse {
  readonly run: RunSummary;
  readonly choice: ProfileChoice;
  readonly name: string;
  readonly stacks: readonly OperatorStack[];
  readonly places: TableRows;
  readonly numCalls: number;
  readonly callees: readonly OperatorStack[];
}

/** A device with memory events. */
export interface TraceDevice {
  readonly key: string;
  readonly name: string;
  readonly title: string;
  readonly numEvents: number;
  readonly capacityBytes: number | null;
}

/** The allocator's totals over time, as a line of steps; no peak of either is lost. */
export interface TraceMemoryCurve {
  readonly timeMs: Float64Array;
  readonly allocatedBytes: Float64Array;
  readonly reservedBytes: Float64Array;
}

export interface TraceMemoryCategory {
  readonly name: string;
  readonly group: CategoryGroup;
}

/** What one category holds of a peak. */
export interface TraceMemoryPart {
  readonly name: string;
  readonly numBytes: number;
}

/** The moment at which most of a device was allocated, in the range shown. */
export interface TraceMemoryPeak {
  readonly timeMs: number;
  readonly wholeBytes: number;
  readonly unknownBytes: number;
  readonly parts: readonly TraceMemoryPart[];
  readonly holders: TableRows;
}

/** Route `/operator_memory` (run, source, device, charge, t0, t1, px, sort, text, top). */
export interface OperatorMemoryResponse {
  readonly run: RunSummary;
  readonly choice: ProfileChoice;
  readonly devices: readonly TraceDevice[];
  readonly device: string | null;
  readonly charge: OperatorCharge;
  readonly durationMs: number;
  readonly curve: TraceMemoryCurve;
  readonly operators: TableRows;
  readonly categories: readonly TraceMemoryCategory[];
  readonly peak: TraceMemoryPeak | null;
  readonly allocations: TableRows;
  readonly hasAddresses: boolean;
}

/** A profiler's trace that may be chosen. */
export interface ProfiledTrace {
  readonly id: string;
  readonly name: string;
  readonly rank: number | null;
  readonly cycle: number | null;
  readonly title: string;
}

/** Which trace an answer is about, and how far opening it is. */
export interface ProfileChoice {
  readonly traces: readonly ProfiledTrace[];
  readonly numTraces: number;
  readonly source: string | null;
  readonly state: TraceState;
  readonly progress: number;
  readonly doing: string;
  readonly problem: Problem | null;
  readonly problems: readonly Problem[];
}

/** The rows of a profiled trace by something that they have in common. */
export interface ProfileTable {
  readonly run: RunSummary;
  readonly choice: ProfileChoice;
  readonly by: string;
  readonly table: TableRows;
}

/** Time of one role; a column of steps. */
export interface ProfilePart {
  readonly role: ProfileRole;
  readonly label: string;
  readonly help: string;
  readonly colour: string;
  readonly ms: Float64Array;
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
  readonly step: Int32Array;
  readonly areMarked: boolean;
  readonly durationMs: Float64Array;
  readonly meanMs: number;
  readonly parts: readonly ProfilePart[];
  readonly roles: TableRows | null;
  readonly devices: TableRows | null;
  readonly findings: readonly Finding[];
  readonly facts: readonly ProfileFact[];
}

/** Route `/module_times` (run, source): modules of a trace, parents first. */
export interface ModuleTimesResponse {
  readonly run: RunSummary;
  readonly choice: ProfileChoice;
  readonly name: readonly string[];
  readonly path: readonly string[];
  readonly parent: Int32Array;
  readonly table: TableRows;
  readonly backward: string;
}

/** One part of the steps' time, in the order in which parts are stacked. */
export interface StepPart {
  readonly name: string;
  readonly label: string;
  readonly help: string;
  readonly seconds: Float64Array;
}

/** Steps whose time is the profiler's own; medians and findings leave them out. */
export interface ProfilerStep {
  readonly first: number;
  readonly last: number;
  readonly what: "start" | "stop" | "save" | "capture";
}

/** A part no rank recorded, and which setting records it. */
export interface AbsentPart {
  readonly name: string;
  readonly label: string;
  readonly reason: string;
  readonly remedy: string;
}

/** Throughput, one value per column: of one rank, and of all ranks together. */
export interface StepRate {
  readonly key: "steps" | "samples" | "tokens" | "flops" | "mfu";
  readonly values: Float64Array;
  readonly summed: Float64Array;
  readonly median: number | null;
  readonly summedMedian: number | null;
  readonly title: string;
  readonly help: string;
  readonly text: string;
  readonly hint: string;
}

/** Where the number of floating point operations comes from. */
export interface StepFlops {
  readonly origin: "settings" | "trace" | "nothing";
  readonly perStep: number | null;
  readonly devicePeak: number | null;
  readonly missing: string;
}

/** Route `/steps` (run, rank, ranks, x, x0, x1, px, phase, of): the steps' time by part. */
export interface StepsResponse {
  readonly run: RunSummary;
  readonly x: XKind;
  readonly of: StepsOf;
  readonly rank: number | null;
  readonly xLow: number;
  readonly xHigh: number;
  readonly edges: Float64Array;
  readonly stepsPerColumn: number;
  readonly firstStep: Float64Array;
  readonly shownStep: Float64Array;
  readonly columnRank: Int32Array;
  readonly seconds: Float64Array;
  readonly parts: readonly StepPart[];
  readonly grain: string;
  readonly exact: boolean;
  readonly numRanks: number;
  readonly numSummed: number;
  readonly rates: readonly StepRate[];
  readonly flops: StepFlops;
  readonly profilerSteps: readonly ProfilerStep[];
  readonly absent: readonly AbsentPart[];
  readonly memorySeries: string | null;
  readonly marks: readonly Mark[];
  readonly phases: readonly string[];
}

/** Route `/step_heatmap` (run, rank, ranks, x0, x1, px, rows, phase, part). */
export interface StepHeatmapResponse {
  readonly run: RunSummary;
  readonly series: SeriesInfo | null;
  readonly xLow: number;
  readonly xHigh: number;
  readonly x0: number;
  readonly stepsPerColumn: number;
  readonly numRows: number;
  readonly numColumns: number;
  readonly ranksPerRow: number;
  readonly rowRank: Int32Array;
  readonly values: Uint16Array;
  readonly valueLow: number;
  readonly valueHigh: number;
  readonly capacityBytes: number | null;
  readonly noise: number;
  readonly exact: boolean;
  readonly marks: readonly Mark[];
  readonly absent: readonly AbsentSeries[];
}

/** What a part takes; the parts of a step sum to it. */
export interface StepPartMean {
  readonly name: string;
  readonly label: string;
  readonly help: string;
  readonly seconds: number;
  readonly share: number;
  readonly usual: number | null;
  readonly ofFirst: number | null;
}

/** Route `/stragglers` (run, rank, ranks, phase): who is waited for, and what is slow. */
export interface StragglersResponse {
  readonly run: RunSummary;
  readonly numRanks: number;
  readonly numSteps: number;
  readonly sentence: string;
  readonly stepSeconds: number | null;
  readonly parts: readonly StepPartMean[];
  readonly ranks: TableRows | null;
  readonly late: readonly number[];
  readonly numLeftOut: number;
  readonly part: string;
  readonly findings: readonly Finding[];
}

/** Route `/step` (run, rank, ranks, phase, step): one step on every rank. */
export interface StepResponse {
  readonly run: RunSummary;
  readonly step: number;
  readonly numRanks: number;
  readonly numUnread: number;
  readonly ranks: TableRows;
}

/** How a source's clock was put on the common one. */
export interface TraceClock {
  readonly method: string;
  readonly offsetNs: number;
  readonly errorNs: number | null;
}

/** Something that holds tracks of one rank. */
export interface TraceSource {
  readonly id: string;
  readonly kind: TraceSourceKind;
  readonly name: string;
  readonly title: string;
  readonly rank: number | null;
  readonly cycle: number | null;
  readonly state: TraceState;
  readonly progress: number;
  readonly doing: string;
  readonly problem: Problem | null;
  readonly numBytes: number;
  readonly numSlices: number;
  readonly startNs: number;
  readonly endNs: number;
  readonly clock: TraceClock | null;
  readonly notes: readonly string[];
  readonly facts: readonly string[];
  readonly hasFile: boolean;
}

/** A thread, a stream, the spans of a recorder, or a counter. */
export interface TraceTrack {
  readonly source: number;
  readonly index: number;
  readonly key: string;
  readonly name: string;
  readonly process: string;
  readonly kind: TraceTrackKind;
  readonly rank: number | null;
  readonly device: number | null;
  readonly stream: number | null;
  readonly numSlices: number;
  readonly numLevels: number;
  readonly numInstants: number;
  readonly unit: Unit | null;
  readonly most: number | null;
  readonly least: number | null;
}

/** Training steps; columns of equal length, by start; of the first rank shown. */
export interface TraceSteps {
  readonly number: Int32Array;
  readonly startNs: Float64Array;
  readonly endNs: Float64Array;
}

/** What is shown first: a step, without the empty time at its ends. */
export interface TraceFocus {
  readonly words: string;
  readonly startNs: number;
  readonly endNs: number;
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

/** Route `/trace` (run, rank, ranks, cycle, step, source): what is on the axis, and how far it is. */
export interface TraceResponse {
  readonly run: RunSummary;
  readonly baseNs: string;
  readonly endNs: number;
  readonly sources: readonly TraceSource[];
  readonly tracks: readonly TraceTrack[];
  readonly summary: string;
  readonly steps: TraceSteps;
  readonly focus: TraceFocus | null;
  readonly choices: readonly TraceChoice[];
  readonly numRanks: number;
  readonly shownRanks: readonly number[];
  readonly problems: readonly Problem[];
  readonly stillReading: boolean;
  readonly perfetto: "hosted" | "local";
}

/** A level of a track in a tile. */
export interface TraceLane {
  readonly track: string;
  readonly level: number;
}

/** A counter in a tile: it has a value from one point to the next. */
export interface TraceLine {
  readonly track: string;
  readonly series: string;
  readonly timeNs: Float64Array;
  readonly value: Float64Array;
  readonly reduced: TraceReduced;
}

/** Route `/trace_slices` (run, tracks, t0, t1, px): what is drawn in a window of time. */
export interface TraceSlicesResponse {
  readonly t0: string;
  readonly unitNs: number;
  readonly zoom: number;
  readonly lanes: readonly TraceLane[];
  readonly laneStart: Int32Array;
  readonly start: Int32Array;
  readonly duration: Int32Array;
  readonly row: Int32Array;
  readonly name: Uint16Array;
  readonly family: Uint8Array;
  readonly count: Int32Array;
  readonly busy: Int32Array;
  readonly names: readonly string[];
  readonly families: readonly TraceFamily[];
  readonly lines: readonly TraceLine[];
}

/** One argument of a slice. */
export interface TraceArg {
  readonly name: string;
  readonly value: string;
}

/** A slice that stands in a relation to another one. */
export interface TracePartner {
  readonly relation: "parent" | "launch" | "captured" | "fwdbwd" | "flow";
  readonly words: string;
  readonly when: string;
  readonly category: string;
  readonly outgoing: boolean;
  readonly source: string;
  readonly row: number;
  readonly track: string;
  readonly level: number;
  readonly name: string;
  readonly startNs: number;
  readonly durationNs: number;
}

/** Route `/trace_slice` (run, source, row): everything of one slice or instant. */
export interface TraceSliceResponse {
  readonly source: string;
  readonly row: number;
  readonly track: string;
  readonly level: number;
  readonly name: string;
  readonly category: string;
  readonly family: TraceFamily;
  readonly startNs: string;
  readonly durationNs: number;
  readonly selfNs: number;
  readonly numChildren: number;
  readonly args: readonly TraceArg[];
  readonly argsProblem: string;
  readonly stack: readonly TracePartner[];
  readonly partners: readonly TracePartner[];
}

/** Route `/trace_search` (run, tracks, text, only): what has a text in its name. */
export interface TraceSearchResponse {
  readonly t0: string;
  readonly numHits: number;
  readonly numNames: number;
  readonly tracks: readonly string[];
  readonly track: Uint16Array;
  readonly level: Int32Array;
  readonly row: Int32Array;
  readonly startNs: Float64Array;
  readonly durationNs: Float64Array;
}

/** Route `/trace_range` (run, tracks, t0, t1, by): sums by name over a range of time. */
export interface TraceRangeResponse {
  readonly table: TableRows;
  readonly row: Int32Array;
  readonly source: Uint16Array;
  readonly sources: readonly string[];
}

/** What an analysis says of one trace. */
export interface TraceTable {
  readonly state: TraceState;
  readonly sentences: readonly string[];
  readonly table: TableRows;
  readonly problems: readonly Problem[];
}

/** Route `/trace_idle` (run, source, rank): devices, each before its streams. */
export interface TraceIdleResponse {
  readonly state: TraceState;
  readonly sentences: readonly string[];
  readonly table: TableRows;
  readonly problems: readonly Problem[];
}

/** Route `/trace_path` (run, source, rank, step): the critical path, by name. */
export interface TracePathResponse {
  readonly state: TraceState;
  readonly sentences: readonly string[];
  readonly table: TableRows;
  readonly problems: readonly Problem[];
}

/** One file, whoever wrote it. */
export interface TraceFile {
  readonly id: string;
  readonly name: string;
  readonly path: string;
  readonly worker: string;
  readonly rank: number | null;
  readonly cycle: number | null;
  readonly numBytes: number;
  readonly timeline: boolean;
  readonly recorded: boolean;
  readonly state: TraceFileState;
  readonly problem: Problem | null;
}

/** Route `/traces` (run): the files of traces of a run, by rank, worker and cycle. */
export interface TracesResponse {
  readonly run: RunSummary;
  readonly files: readonly TraceFile[];
  readonly numFiles: number;
  readonly problems: readonly Problem[];
  readonly stillReading: boolean;
}

/** One trace, as the recorder saw it. */
export interface TraceReport {
  readonly id: string;
  readonly rank: number;
  readonly title: string;
  readonly facts: readonly string[];
  readonly problem: string;
}

/** Route `/trace_reports` (run, rank, ranks): by rank and time. */
export interface TraceReportsResponse {
  readonly run: RunSummary;
  readonly reports: readonly TraceReport[];
  readonly absent: readonly SourceStatus[];
  readonly stillReading: boolean;
}

/** Memory by category of one device; x in microseconds since the trace began. */
export interface TraceReportMemory {
  readonly device: string;
  readonly devices: readonly string[];
  readonly xLow: number;
  readonly xHigh: number;
  readonly x0: number;
  readonly xPerColumn: number;
  readonly totalBytes: Float64Array;
  readonly peakX: Float64Array;
  readonly categories: readonly CategorySeries[];
}

/** Route `/trace_report` (run, report, device, x0, x1, px): one report in full. */
export interface TraceReportResponse {
  readonly report: TraceReport;
  readonly summary: string;
  readonly operators: TableRows;
  readonly memory: TraceReportMemory | null;
  readonly missing: string;
}

/** A recorded column that can be drawn. */
export interface SeriesInfo {
  readonly key: string;
  readonly label: string;
  readonly unit: Unit;
  readonly group: SeriesGroup;
  readonly headline: boolean;
  readonly numRanks: number;
  readonly isFlat: boolean;
}

/** A series some source would give, with the reason it is not there. */
export interface AbsentSeries {
  readonly group: SeriesGroup;
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

/** One rank's line; x ascends; columns have equal length. */
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
  readonly highRank: Int32Array;
}

/** Route `/timeline` (run, rank, ranks, pinned, series, x, x0, x1, px, phase). */
export interface TimelineResponse {
  readonly run: RunSummary;
  readonly series: SeriesInfo | null;
  readonly x: XKind;
  readonly xLow: number;
  readonly xHigh: number;
  readonly rowsPerPoint: number;
  readonly lines: readonly RankLine[];
  readonly band: RankBand | null;
  readonly capacityBytes: number | null;
  readonly capacityKind: CapacityKind;
  readonly marks: readonly Mark[];
  readonly available: readonly SeriesInfo[];
  readonly absent: readonly AbsentSeries[];
  readonly phases: readonly string[];
  readonly problems: readonly Problem[];
}

/** Route `/heatmap` (run, ranks, series, x0, x1, px, rows, phase): rank by step. */
export interface HeatmapResponse {
  readonly run: RunSummary;
  readonly series: SeriesInfo | null;
  readonly xLow: number;
  readonly xHigh: number;
  readonly x0: number;
  readonly stepsPerColumn: number;
  readonly numRows: number;
  readonly numColumns: number;
  readonly ranksPerRow: number;
  readonly rowRank: Int32Array;
  readonly values: Uint16Array;
  readonly valueLow: number;
  readonly valueHigh: number;
  readonly capacityBytes: number | null;
  readonly noise: number;
  readonly exact: boolean;
  readonly marks: readonly Mark[];
  readonly absent: readonly AbsentSeries[];
}

/** What each data route answers. */

export interface Responses {
  readonly runs: RunsResponse;
  readonly compare_runs: CompareRunsResponse;
  readonly run_table: RunTableResponse;
  readonly compare: CompareResponse;
  readonly rank_histories: RankHistoriesResponse;
  readonly compare_traces: CompareTracesResponse;
  readonly drop: DropResponse;
  readonly findings: FindingsResponse;
  readonly host: HostResponse;
  readonly stacks: StacksResponse;
  readonly allocations: AllocationsResponse;
  readonly allocation_holders: AllocationHoldersResponse;
  readonly allocation_live: AllocationLiveResponse;
  readonly allocation_block: AllocationBlockResponse;
  readonly allocation_range: AllocationRangeResponse;
  readonly functions: FunctionsResponse;
  readonly histories: HistoriesResponse;
  readonly history: HistoryResponse;
  readonly modules: ModulesResponse;
  readonly module: ModuleResponse;
  readonly module_timeline: ModuleTimelineResponse;
  readonly segments: SegmentsResponse;
  readonly segment_timeline: SegmentTimelineResponse;
  readonly allocator_events: AllocatorEventsResponse;
  readonly snapshot_files: SnapshotFilesResponse;
  readonly overview: OverviewResponse;
  readonly peak_composition: PeakCompositionResponse;
  readonly distributed: DistributedResponse;
  readonly distributed_heatmap: DistributedHeatmapResponse;
  readonly kernels: KernelsResponse;
  readonly operators: OperatorsResponse;
  readonly operator: OperatorResponse;
  readonly operator_memory: OperatorMemoryResponse;
  readonly profile: ProfileResponse;
  readonly module_times: ModuleTimesResponse;
  readonly steps: StepsResponse;
  readonly step_heatmap: StepHeatmapResponse;
  readonly stragglers: StragglersResponse;
  readonly step: StepResponse;
  readonly trace: TraceResponse;
  readonly trace_slices: TraceSlicesResponse;
  readonly trace_slice: TraceSliceResponse;
  readonly trace_search: TraceSearchResponse;
  readonly trace_range: TraceRangeResponse;
  readonly trace_idle: TraceIdleResponse;
  readonly trace_path: TracePathResponse;
  readonly traces: TracesResponse;
  readonly trace_reports: TraceReportsResponse;
  readonly trace_report: TraceReportResponse;
  readonly timeline: TimelineResponse;
  readonly heatmap: HeatmapResponse;
}
