/** From A to B by category, module or line: what grew and what shrank, as a waterfall. */

import { useMemo, useRef, useState } from "preact/hooks";
import type { CompareTable } from "../../../api/types.gen";
import { figureTitle, originOf } from "../../../model/words/origin";
import { formatSigned } from "../../../model/words/signed";
import { ExportMenu } from "../../../widgets/export/export_menu";
import { figureOf } from "../../../widgets/export/figure";
import type { ExportSource } from "../../../widgets/export/source";
import { fitted, useWidth } from "../../../widgets/plot/canvas";
import { Segmented } from "../../shared/controls/choices";
import type { ViewProps } from "../../shared/view_props";
import { ROW_WORDS } from "../params";
import { usualPart } from "../parts";
import { paintWaterfall, waterfallPx, waterfallSteps } from "./waterfall";

export function Waterfall(props: {
  readonly view: ViewProps;
  /** At least one. */
  readonly parts: readonly CompareTable[];
  /** At which moment, where the sides do not say it. */
  readonly of: string;
  readonly culprits: ReadonlySet<string>;
}) {
  const { view, parts, of, culprits } = props;
  const { theme, byteUnit } = view;
  const box = useRef<HTMLDivElement>(null);
  const widthPx = useWidth(box);
  const [wanted, setWanted] = useState<CompareTable["by"] | null>(null);
  const shown = parts.find(({ by }) => by === wanted) ?? usualPart(parts);
  const steps = useMemo(
    () => (shown === undefined ? [] : waterfallSteps(shown, theme, culprits)),
    [shown, theme, culprits],
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
        { name: "a_bytes", values: shown.aBytes },
        { name: "b_bytes", values: shown.bBytes },
      ],
    }),
    about: () => ({ of }),
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
          words={(one) => ROW_WORDS[one]}
          onChoose={setWanted}
        />
        <span class="quiet">{of}</span>
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
