/** What the parts of a difference share: their props, and how they are exported. */

import type { CompareResponse, HistoryDevice } from "../../api/types.gen";
import type { ExportSource, Figure } from "../../widgets/export/source";
import { svg, svgDocument, type SvgNode } from "../../widgets/export/svg";
import type { ViewProps } from "../shared/view_props";
import type { CompareParams } from "./params";

export interface DifferenceProps {
  readonly view: ViewProps;
  readonly params: CompareParams;
  readonly answer: CompareResponse;
  readonly a: HistoryDevice;
  readonly b: HistoryDevice;
  readonly exporter: { current: ExportSource | null };
}

/** Nodes of a page's picture as one of their own, with its title above. */
export function figureOf(
  title: string,
  nodes: readonly SvgNode[],
  widthPx: number,
  heightPx: number,
  background: string,
  text: string,
): Figure {
  return {
    widthPx,
    heightPx: heightPx + 32,
    svg: svgDocument(
      widthPx,
      heightPx + 32,
      title,
      svg("rect", {
        x: 0,
        y: 0,
        width: widthPx,
        height: heightPx + 32,
        fill: background,
      }),
      svg("text", { x: 8, y: 20, "font-size": 14, fill: text }, title),
      svg("g", { transform: "translate(0 32)" }, ...nodes),
    ),
  };
}

/** Which moment a side is, in exported files. */
export function about({
  reference,
  device,
  moment,
  run,
}: CompareResponse["a"]): unknown {
  return { run: run.name, history: reference.id, device, moment: moment.moment };
}
