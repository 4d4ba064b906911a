import { formatInteger, formatShare, type ByteUnit } from "../../../../base/bytes";
import { formatQuantity } from "../../../../model/words/quantity";
import { PointerTip, type Reading } from "../../../../widgets/plot/reading";
import { traceColour } from "../paint/lines";
import type { Picture } from "../paint/quads";
import type { Piece } from "../tiles/tile";
import { familyWords, formatNs, formatNsExact } from "../words";
import type { Row } from "./layout";
import type { PlotStage } from "./stage";

export function PlotTip({ stage }: { readonly stage: PlotStage }) {
  const hover = stage.hover.value;
  if (hover === null) return null;
  const { at, piece, row, ns } = hover;
  const { widthPx, heightPx, trace } = stage.now;
  const { theme, byteUnit } = trace.view;
  if (piece === null && row?.track?.kind !== "counter") return null;
  const reading: Reading = {
    title: piece === null ? (row?.label ?? "") : titleOf(piece),
    swatch: piece === null ? undefined : traceColour(theme, piece.family),
    notes: [
      piece !== null
        ? lineOf(piece)
        : row === null
          ? ""
          : counterWords(stage.picture, row, ns, byteUnit),
    ],
  };
  return <PointerTip {...{ at, widthPx, heightPx, reading }} />;
}

function titleOf({ name, count, level }: Piece): string {
  return count > 1 && level >= 0
    ? `${formatInteger(count)} slices, the longest ${name}`
    : name;
}

function lineOf({ family, count, startNs, endNs, level, busyNs }: Piece): string {
  const ns = endNs - startNs;
  if (count > 1) {
    return level < 0
      ? `and ${formatInteger(count - 1)} more within a few pixels: click to zoom in`
      : `busy ${formatShare(busyNs, ns)} of ${formatNs(ns)}: click to zoom in`;
  }
  const time = level < 0 ? formatNs(startNs) : `${formatNs(ns)} (${formatNsExact(ns)})`;
  return `${time} · ${familyWords(family)}`;
}

const REDUCED_WORDS = {
  exact: "",
  highest: "highest of this pixel",
  mean: "mean of this pixel",
} as const;

function counterWords(
  picture: Picture | null,
  { key, track }: Row,
  ns: number,
  byteUnit: ByteUnit,
): string {
  const tiles = picture?.tiles.filter(({ low, high }) => low <= ns && high >= ns);
  const tile = tiles?.findLast((one) => one.linesOf(key).length > 0);
  const lines = tile?.linesOf(key) ?? [];
  const words = lines.map((line) => {
    const value = tile?.valueAt(line, ns) ?? null;
    const said = formatQuantity(value, track?.unit ?? "count", byteUnit);
    const series = lines.length > 1 ? line.series : "";
    return [series, said, REDUCED_WORDS[line.reduced]].filter(Boolean).join(" ");
  });
  return words.join(", ");
}
