/** The live bytes of both histories over each other. */

import { useMemo, useRef, useState } from "preact/hooks";
import type { HistoryDevice } from "../../../api/types.gen";
import { formatBytes } from "../../../base/bytes";
import { tokens } from "../../../base/tokens";
import { figureTitle, originOf } from "../../../model/words/origin";
import { ExportMenu } from "../../../widgets/export/export_menu";
import type { ExportSource } from "../../../widgets/export/source";
import { useWidth } from "../../../widgets/line_chart/use_size";
import { Segmented } from "../../shared/controls/choices";
import type { ViewProps } from "../../shared/view_props";
import type { DifferenceProps } from "../two";
import { curveOf, overlayNodes, placeOf, type OverlayAxis } from "./overlay";
import { figureOf, SvgView } from "./svg_view";

const OVERLAY_PX = 190;

export function Overlay({ view, answer, a, b }: DifferenceProps) {
  const { theme, byteUnit } = view;
  const box = useRef<HTMLDivElement>(null);
  const widthPx = useWidth(box);
  const [wanted, setWanted] = useState<OverlayAxis>("share");
  const timed = a.hasTimes && b.hasTimes;
  const axis = wanted === "time" && !timed ? "share" : wanted;
  const nodes = useMemo(
    () =>
      overlayNodes(curveOf(a, axis), curveOf(b, axis), {
        axis,
        widthPx,
        heightPx: OVERLAY_PX,
        theme,
        byteUnit,
        aAt: placeOf(a, axis, answer.a.moment.moment),
        bAt: placeOf(b, axis, answer.b.moment.moment),
      }),
    [a, b, axis, widthPx, theme, byteUnit, answer],
  );
  const { bg, text } = tokens(theme);
  const origin = originOf(view.run);
  const title = figureTitle("Live bytes of A and B", origin);
  const source: ExportSource = {
    origin,
    name: "live bytes of A and B",
    table: () => {
      const [of, other] = [curveOf(a, axis), curveOf(b, axis)];
      const num = of.x.length + other.x.length;
      return {
        numRows: num,
        columns: [
          {
            name: "side",
            values: [...of.x].map(() => "A").concat([...other.x].map(() => "B")),
          },
          { name: axis, values: Float64Array.of(...of.x, ...other.x) },
          {
            name: "active_bytes",
            values: Float64Array.of(...of.bytes, ...other.bytes),
          },
        ],
      };
    },
    about: () => ({ axis }),
    figure: () => figureOf(title, nodes, widthPx, OVERLAY_PX, bg, text),
  };
  return (
    <section aria-label="Live bytes of A and B">
      <div class="panel-head">
        <h2>Live bytes of both</h2>
        <Segmented
          label="What stands at the same place"
          options={["share", "event", "time"] as const}
          chosen={axis}
          words={(one) =>
            one === "share"
              ? ["From begin to end", "Each history stretched to the same width"]
              : one === "event"
                ? ["Events", "The same number of events"]
                : [
                    "Time",
                    timed
                      ? "The same time since the first event"
                      : "Not both files have times",
                  ]
          }
          disabled={(one) => one === "time" && !timed}
          onChoose={setWanted}
        />
        <span class="quiet compare-key">
          <span class="compare-line is-A" /> A <span class="compare-line is-B" /> B
        </span>
        <span class="compare-fill" />
        <ExportMenu subject="the timelines" source={source} />
      </div>
      <div ref={box}>
        {widthPx > 0 && (
          <SvgView
            label={`The history of A peaks at ${peakText(a, byteUnit)}, that of B at ${peakText(b, byteUnit)}`}
            nodes={nodes}
            widthPx={widthPx}
            heightPx={OVERLAY_PX}
          />
        )}
      </div>
    </section>
  );
}

function peakText(device: HistoryDevice, byteUnit: ViewProps["byteUnit"]): string {
  const peak = device.peaks.find(({ level }) => level === "active");
  return formatBytes(peak?.bytes ?? null, byteUnit);
}
