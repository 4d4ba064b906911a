/** From A to B by category: what grew and what shrank, as a waterfall. */

import { useMemo, useRef } from "preact/hooks";
import { tokens } from "../../../base/tokens";
import { figureTitle, originOf } from "../../../model/words/origin";
import { formatSigned } from "../../../model/words/signed";
import { ExportMenu } from "../../../widgets/export/export_menu";
import type { ExportSource } from "../../../widgets/export/source";
import { useWidth } from "../../../widgets/line_chart/use_size";
import { figureOf, type DifferenceProps } from "../difference_parts";
import { SvgView } from "./svg_view";
import { waterfallNodes, waterfallSteps } from "./waterfall";

const WATERFALL_PX = 220;

export function Waterfall({ view, answer }: DifferenceProps) {
  const { theme, byteUnit } = view;
  const box = useRef<HTMLDivElement>(null);
  const widthPx = useWidth(box);
  const steps = useMemo(() => waterfallSteps(answer, theme), [answer, theme]);
  const nodes = waterfallNodes(steps, {
    widthPx,
    heightPx: WATERFALL_PX,
    theme,
    byteUnit,
  });
  const { bg, text } = tokens(theme);
  const origin = originOf(view.run);
  const title = figureTitle("From A to B by category", origin);
  const source: ExportSource = {
    origin,
    name: "difference by category",
    table: () => {
      const table = answer.tables.find(({ by }) => by === "category");
      return {
        numRows: table?.labels.length ?? 0,
        columns: [
          { name: "category", values: table?.labels ?? [] },
          { name: "a_bytes", values: table?.aBytes ?? [] },
          { name: "b_bytes", values: table?.bBytes ?? [] },
        ],
      };
    },
    about: () => ({}),
    figure: () => figureOf(title, nodes, widthPx, WATERFALL_PX, bg, text),
  };
  const said = steps
    .filter(({ kind }) => kind === "change")
    .map(
      ({ label, from, to }) => `${label} ${formatSigned(to - from, "bytes", byteUnit)}`,
    );
  return (
    <section class="compare-waterfall" aria-label="From A to B by category">
      <div class="panel-head">
        <h2>From A to B by category</h2>
        <span class="compare-fill" />
        <ExportMenu subject="the waterfall" source={source} />
      </div>
      <div ref={box}>
        {widthPx > 0 && (
          <SvgView
            label={said.length === 0 ? "No category differs" : said.join(", ")}
            nodes={nodes}
            widthPx={widthPx}
            heightPx={WATERFALL_PX}
          />
        )}
      </div>
    </section>
  );
}
