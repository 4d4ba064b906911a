/**
 * Give each id a slot (a colour) and keep it while the id stays: what was blue before
 * a refetch is blue after it. New ids take the slot used least.
 */
export function assignSlots(
  ids: readonly string[],
  previous: ReadonlyMap<string, number>,
  numSlots: number,
): ReadonlyMap<string, number> {
  const slots = new Map<string, number>();
  const used = new Array<number>(numSlots).fill(0);
  const take = (id: string, slot: number): void => {
    slots.set(id, slot);
    used[slot] = (used[slot] ?? 0) + 1;
  };
  for (const id of ids) {
    const slot = previous.get(id);
    if (slot !== undefined && slot < numSlots) take(id, slot);
  }
  for (const id of ids) {
    if (!slots.has(id)) take(id, used.indexOf(Math.min(...used)));
  }
  return slots;
}
