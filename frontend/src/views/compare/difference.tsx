/** Two moments set against each other: numbers, waterfall, timelines, flamegraph, table. */

import type { DifferenceProps } from "./difference_parts";
import { ChangeFlame } from "./flame_part";
import { Headline } from "./headline";
import { Overlay } from "./overlay_part";
import { Rows } from "./rows_part";
import { Waterfall } from "./waterfall_part";

export function Difference(props: DifferenceProps) {
  const { view, answer } = props;
  return (
    <>
      <div class="compare-top">
        <Headline answer={answer} byteUnit={view.byteUnit} />
        <Waterfall {...props} />
      </div>
      <Overlay {...props} />
      <ChangeFlame {...props} />
      <Rows {...props} />
    </>
  );
}
