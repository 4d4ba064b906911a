/** What is drawn as one line: the highest of it everywhere. Pure. */

import type { TimelineResponse } from "../../api/types.gen";
import type { Envelope } from "../../model/peaks";
import { alignTo, mergeX } from "../../model/table";

/** The highest of everything drawn, at every x at which something is. */
export function envelopeOf(answer: TimelineResponse): Envelope {
  const { band, lines } = answer;
  const columns = lines.map(({ x, y }) => ({ x, y }));
  if (band !== null) columns.push({ x: band.x, y: band.high });
  const x = mergeX(columns.map((column) => column.x));
  const y = new Float64Array(x.length).fill(NaN);
  for (const column of columns) {
    alignTo(x, column.x, column.y).forEach((value, i) => {
      const highest = y[i] ?? NaN;
      if (value > highest || Number.isNaN(highest)) y[i] = value;
    });
  }
  return { x, y };
}
