/** What each headline number is called and means, and what its caveats say. */

import type { Headline } from "../../api/types.gen";

type Key = Headline["key"];
type Caveat = Headline["caveats"][number];

export interface HeadlineWords {
  readonly title: string;
  readonly meaning: string;
  /** What the sparkline shows, where it is not the number itself. */
  readonly line?: string;
}

export const HEADLINES: Readonly<Record<Key, HeadlineWords>> = {
  peak_allocated: {
    title: "Peak allocated",
    meaning: "The most bytes live tensors held at once, on the rank that held most.",
  },
  peak_reserved: {
    title: "Peak reserved",
    meaning:
      "The most bytes PyTorch’s allocator took from the device, used or not, on the rank that took most.",
  },
  headroom: {
    title: "Headroom",
    meaning: "What was left of the device at the fullest moment, on the fullest rank.",
  },
  fragmentation: {
    title: "Fragmentation",
    meaning:
      "Reserved minus allocated at the peak: bytes the allocator held without a tensor in them.",
  },
  non_torch: {
    title: "Outside PyTorch",
    meaning:
      "Device bytes in use that PyTorch’s allocator does not know: contexts, NCCL, other libraries and processes.",
  },
  growth: {
    title: "Growth",
    meaning:
      "How much the memory of the fastest growing rank grows with each step, after warm-up.",
    line: "The line: allocated memory, over the run.",
  },
  rss_peak: {
    title: "Peak RSS",
    meaning: "The most physical memory one training process held.",
  },
  rss_headroom: {
    title: "Memory headroom",
    meaning: "What was left of the memory limit at the fullest moment.",
  },
  rss_growth: {
    title: "RSS growth",
    meaning: "How much the fastest growing training process grows with each step.",
    line: "The line: RSS, over the run.",
  },
  step_time: {
    title: "Step time",
    meaning: "The median time of one training step, on the slowest rank.",
  },
  cpu: {
    title: "CPU",
    meaning: "How busy the busiest host’s processors were.",
  },
  workers_rss: {
    title: "Dataloader workers",
    meaning: "The physical memory of one rank’s dataloader workers together.",
  },
};

export const CAVEATS: Readonly<Record<Caveat, string>> = {
  sampled: "Sampled at intervals: a shorter peak may have been missed.",
  estimated: "Estimated from other numbers, not measured.",
  cumulative_peak:
    "The peak counter was not reset each step, so this is the peak since the start.",
  no_limit: "No memory limit was recorded.",
  few_steps: "Few steps so far: this will settle with more of them.",
  after_warmup: "Steps of the warm-up are left out.",
  one_host: "Measured on one host and taken for all.",
};
