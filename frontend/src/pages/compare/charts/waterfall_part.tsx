/** From A to B by category, module or line: what grew and what shrank, as a waterfall. */

import { useMemo, useRef, useState } from "preact/hooks";
import { figureTitle, originOf } from "../../../model/words/origin";
import { formatSigned } from "../../../model/words/signed";
import { ExportMenu } from "../../../widgets/export/export_menu";
import { figureOf } from "../../../widgets/export/figure";
import type { ExportSource } from "../../../widgets/export/source";
import { fitted, useWidth } from "../../../widgets/plot/canvas";
import { Segmented } from "../../shared/controls/choices";
import type { ViewProps } from "../../shared/view_props";
import { PART_TITLES, type PartBy, type Parts } from "../groups";
import { paintWaterfall, waterfallPx, waterfallSteps } from "./waterfall";

export function Waterfall(props: {
  readonly view: ViewProps;
  /** At least one. */
  readonly parts: readonly Parts[];
}) {
  const { view, parts } = props;
  const { theme, byteUnit } = view;
  const box = useRef<HTMLDivElement>(null);
  const widthPx = useWidth(box);
  const [wanted, setWanted] = useState<PartBy>("category");
  const shown = parts.find(({ by }) => by === wanted) ?? parts[0];
  const steps = useMemo(
    () => (shown === undefined ? [] : waterfallSteps(shown, theme)),
    [shown, theme],
  );
  if (shown === undefined) return null;
  const { by } = shown;
  const look = { widthPx, theme, byteUnit };
  const heightPx = waterfallPx(steps);
  const origin = originOf(view.run);
  const source: ExportSource = {
    origin,
    name: `difference by ${by}`,
    table: () => ({
      numRows: shown.labels.length,
      columns: [
        { name: by, values: shown.labels },
        { name: "a_bytes", values: shown.a },
        { name: "b_bytes", values: shown.b },
      ],
    }),
    about: () => ({ of: shown.of }),
    figure: () =>
      figureOf({
        title: figureTitle(`From A to B by ${by}`, origin),
        ...{ theme, widthPx, heightPx, legend: [] },
        paint: (pen) => paintWaterfall(pen, steps, look),
      }),
  };
  const said = steps
    .filter(({ kind }) => kind === "change")
    .map(
      ({ label, from, to }) => `${label} ${formatSigned(to - from, "bytes", byteUnit)}`,
    );
  return (
    <section aria-label={`From A to B by ${by}`}>
      <div class="panel-head">
        <h2>From A to B</h2>
        <Segmented
          label="By what from A to B"
          options={parts.map((one) => one.by)}
          chosen={by}
          words={(one) => [PART_TITLES[one], `By ${PART_TITLES[one].toLowerCase()}`]}
          onChoose={setWanted}
        />
        <span class="quiet">{shown.of}</span>
        <span class="compare-fill" />
        <ExportMenu subject="the waterfall" source={source} />
      </div>
      <div ref={box}>
        <canvas
          ref={(canvas) => {
            const context = widthPx > 0 ? fitted(canvas, widthPx, heightPx) : null;
            if (context !== null) paintWaterfall(context, steps, look);
          }}
          role="img"
          aria-label={said.length === 0 ? `No ${by} differs` : said.join(", ")}
        />
      </div>
    </section>
  );
}
