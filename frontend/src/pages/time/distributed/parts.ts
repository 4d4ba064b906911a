/** The parts of a profiled step on a rank: words and colours. Pure. */

import type { DistributedPart } from "../../../api/types.gen";
import type { Theme } from "../../../base/tokens";
import { familyColour, type WorkKind } from "../profiled/family_colours";

export type RankPart = "computation" | "overlap" | "communication" | "other";

export const RANK_PARTS: readonly RankPart[] = [
  "computation",
  "overlap",
  "communication",
  "other",
];

/** A part's name, and what it is. The four of a step add up to its time. */
export const PART_WORDS: Readonly<Record<RankPart, readonly [string, string]>> = {
  computation: [
    "computation",
    "Time in which kernels other than collectives ran, and no collective. Without a device: operators and annotations on the host, but not what only starts a collective or waits for it (c10d::, FSDP::), nor what a collective runs itself.",
  ],
  overlap: [
    "overlapped",
    "Time in which a collective and computation ran at once: communication that is hidden",
  ],
  communication: [
    "exposed",
    "Communication that nothing hides: a collective ran, and no computation. Waiting for other ranks is part of it.",
  ],
  other: [
    "other",
    "Step − computation − exposed − overlapped: loading, the host’s own time, copies, waiting",
  ],
};

const COLOUR_OF: Readonly<Record<RankPart, WorkKind>> = {
  computation: "kernel",
  overlap: "hidden",
  communication: "communication",
  other: "other",
};

export function rankPartColour(theme: Theme, part: RankPart): string {
  return familyColour(theme, COLOUR_OF[part]);
}

/** What the heatmap compares: what distinguishes ranks first. */
export const RANK_HEATS: readonly DistributedPart[] = [
  "communication",
  "overlap",
  "computation",
  "other",
  "step",
];

export const HEAT_WORDS: Readonly<Record<DistributedPart, readonly [string, string]>> =
  {
    communication: ["Exposed communication", PART_WORDS.communication[1]],
    overlap: ["Hidden communication", PART_WORDS.overlap[1]],
    computation: ["Computation", PART_WORDS.computation[1]],
    other: ["Other", PART_WORDS.other[1]],
    step: [
      "Step time",
      "Time of the step, to the end of the device work it launched: the sum of the others",
    ],
  };

/** Of the URL's word; the usual one where it says none of them. */
export function rankHeat(
  word: string | undefined,
  usual: DistributedPart = "communication",
): DistributedPart {
  return RANK_HEATS.find((one) => one === word) ?? usual;
}
