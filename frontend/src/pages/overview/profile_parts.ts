/** The time of profiled steps by role, as bars; pure. */

import type { ProfileResponse, ProfileRole } from "../../api/types.gen";

export interface Bar {
  readonly role: ProfileRole;
  /** Shares of the longest step, from 0 to 1, counted from the bottom. */
  readonly from: number;
  readonly to: number;
}

/** Steps that are drawn at most; beyond them the longest of neighbours. */
export const MOST_STEPS = 120;

export interface StepBar {
  readonly index: number;
  readonly step: number;
  readonly durationMs: number;
  readonly bars: readonly Bar[];
}

/** One stacked bar per step; of very many the longest of each group. */
export function stepBars(profile: ProfileResponse): readonly StepBar[] {
  const num = profile.step.length;
  const width = Math.max(1, Math.ceil(num / MOST_STEPS));
  const longest = profile.durationMs.reduce((most, one) => Math.max(most, one), 0);
  const bars: StepBar[] = [];
  for (let first = 0; first < num; first += width) {
    let index = first;
    for (let at = first; at < Math.min(num, first + width); at++) {
      if ((profile.durationMs[at] ?? 0) > (profile.durationMs[index] ?? 0)) index = at;
    }
    bars.push(stepBar(profile, index, longest));
  }
  return bars;
}

function stepBar(profile: ProfileResponse, index: number, longest: number): StepBar {
  let from = 0;
  const bars: Bar[] = [];
  for (const part of profile.parts) {
    const to = from + (longest > 0 ? (part.ms[index] ?? 0) / longest : 0);
    if (to > from) bars.push({ role: part.role, from, to });
    from = to;
  }
  return {
    index,
    step: profile.step[index] ?? 0,
    durationMs: profile.durationMs[index] ?? 0,
    bars,
  };
}

/** The number of a step as an address holds it; null: none, or no number. */
export function stepNumber(word: string | null): number | null {
  return word !== null && /^\d{1,10}$/.test(word) ? Number(word) : null;
}

/** The place of the step that an address names; null: all of them, in the mean. */
export function chosenStep(
  profile: ProfileResponse,
  word: string | null,
): number | null {
  const number = stepNumber(word);
  if (number === null || profile.step.length < 2) return null;
  const found = profile.step.indexOf(number);
  return found < 0 ? null : found;
}

export interface PartTime {
  readonly role: ProfileRole;
  readonly ms: number;
  /** Of the step, or of the time of all steps; 0 to 1. */
  readonly share: number;
}

/** The time by role of one step; where none is chosen, of all of them in the mean. */
export function partTimes(
  profile: ProfileResponse,
  chosen: number | null,
): readonly PartTime[] {
  if (chosen === null) {
    return profile.parts.map(({ role, meanMs, share }) => ({
      role,
      ms: meanMs,
      share,
    }));
  }
  const whole = profile.durationMs[chosen] ?? 0;
  return profile.parts.map((part) => {
    const ms = part.ms[chosen] ?? 0;
    return { role: part.role, ms, share: whole > 0 ? ms / whole : 0 };
  });
}

export function percent(share: number | null): string {
  if (share === null || !Number.isFinite(share)) return "–";
  const value = share * 100;
  return `${value < 9.95 && value !== 0 ? value.toFixed(1) : value.toFixed(0)} %`;
}
