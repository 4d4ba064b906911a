/** What the comparison of profiles calls its tables and measures. Pure. */

export type ProfileTable = "operators" | "kernels" | "modules" | "memory";

export const TABLES: readonly ProfileTable[] = [
  "operators",
  "kernels",
  "modules",
  "memory",
];

/** Button, hint, heading of the column, and what a trace without any lacks. */
export const TABLE_WORDS: Readonly<
  Record<ProfileTable, readonly [string, string, string, string]>
> = {
  operators: ["Operators", "Time by operator", "Operator", "no operators"],
  kernels: [
    "Kernels",
    "Time by kernel",
    "Kernel",
    "no kernels: it was recorded without a device",
  ],
  modules: [
    "Modules",
    "Time by module",
    "Module",
    "no modules: it was recorded without with_stack",
  ],
  memory: [
    "Memory",
    "Memory by operator, of the device with most events",
    "Operator",
    "no memory events: it was recorded without profile_memory",
  ],
};

/** The route that answers with a table of one trace. */
export const TABLE_ROUTES = {
  operators: "operators",
  kernels: "kernels",
  modules: "module_times",
  memory: "operator_memory",
} as const;

export interface Measure {
  /** The word of the URL and of exports. */
  readonly key: string;
  readonly title: string;
  readonly unit: "seconds" | "bytes" | "count";
  /** The column of the answer. */
  readonly column: string;
  /** By which it becomes the unit. */
  readonly factor: number;
  /** Of one call: it is not divided by steps. */
  readonly isOfCall?: true;
}

function ms(key: string, title: string, column: string): Measure {
  return { key, title, unit: "seconds", column, factor: 1e-3 };
}

function us(key: string, title: string, column: string): Measure {
  return { key, title, unit: "seconds", column, factor: 1e-6, isOfCall: true };
}

function count(key: string, title: string, column: string): Measure {
  return { key, title, unit: "count", column, factor: 1 };
}

function bytes(key: string, title: string, column: string): Measure {
  return { key, title, unit: "bytes", column, factor: 1 };
}

/** Where none was chosen, the first that a trace has is shown. */
export const MEASURES: Readonly<Record<ProfileTable, readonly Measure[]>> = {
  operators: [
    ms("device_self", "Device self", "deviceSelfMs"),
    ms("device_total", "Device total", "deviceTotalMs"),
    ms("host_self", "Host self", "hostSelfMs"),
    ms("host_total", "Host total", "hostTotalMs"),
    count("calls", "Calls", "numCalls"),
  ],
  kernels: [
    ms("total", "Total", "totalMs"),
    us("mean", "Mean", "meanUs"),
    us("max", "Max", "maxUs"),
    count("calls", "Calls", "numCalls"),
  ],
  modules: [
    ms("host", "Host total", "hostMs"),
    ms("host_self", "Host self", "hostSelfMs"),
    ms("device", "Device total", "deviceMs"),
    ms("device_self", "Device self", "deviceSelfMs"),
    ms("backward_host", "Backward host", "backwardHostMs"),
    ms("backward_host_self", "Backward host self", "backwardHostSelfMs"),
    ms("backward_device", "Backward device", "backwardDeviceMs"),
    ms("backward_device_self", "Backward device self", "backwardDeviceSelfMs"),
    count("calls", "Calls", "numCalls"),
  ],
  memory: [
    bytes("self_increase", "Self increase", "selfIncreaseBytes"),
    bytes("increase", "Increase", "increaseBytes"),
    bytes("self_allocated", "Self allocated", "selfAllocatedBytes"),
    bytes("allocated", "Allocated", "allocatedBytes"),
    count("self_allocations", "Self allocations", "selfNumAllocations"),
    count("calls", "Calls", "numCalls"),
  ],
};
