import { formatBytes, formatBytesExact } from "../../base/bytes";
import { categoryLabel } from "../../model/category";
import { Legend, Swatch, type LegendEntry } from "../plot/legend";
import { PointerTip } from "../plot/reading";
import type { BlockStage } from "./stage";
import { groupLabel, tileColours } from "./paint/colours";
import { GUTTER } from "./paint/paint";
import type { BlockHover, BlockPicture } from "./picture";
import type { BlockTile } from "./tile";
import type { Reading } from "../plot/reader";

export function BlockLegend(props: {
  readonly stage: BlockStage;
  readonly of: BlockPicture;
  readonly whole: BlockTile;
  readonly anchor: number;
  /** Exact bytes by group at `anchor`; null: read from the tile. */
  readonly exact: ReadonlyMap<string, number> | null;
  readonly onOnly: (key: string) => void;
}) {
  const { stage, whole, onOnly, anchor } = props;
  const { byteUnit, only } = props.of;
  const { colours } = tileColours(whole, props.of);
  const { value: hover } = stage.hovered;
  const { tile, column } = hover ?? { tile: whole, column: whole.columnOf(anchor) };
  const exact = hover === null ? props.exact : null;
  const bytesOf = (key: string): number => {
    if (exact !== null) return exact.get(key) ?? 0;
    // Tiles may list groups in different orders.
    const group = tile.answer.groups.findIndex((candidate) => candidate.key === key);
    return tile.bytesOf(group)[column] ?? 0;
  };
  const shown = whole.answer.groups
    .map((group, i) => ({ group, key: group.key, colour: colours[i] ?? "", i }))
    .filter(
      ({ group, i }) =>
        group.key === only || whole.bytesOf(i).some((bytes) => bytes > 0),
    )
    .reverse();
  const items = shown.map(({ group, key, colour }): LegendEntry => {
    const [label, own, isAlone] = [groupLabel(group), bytesOf(key), only === key];
    const hint = isAlone ? "Click to show all" : "Click to show only this";
    return {
      label,
      colour,
      isAlone,
      isHidden: only !== "" && !isAlone,
      help: `${label}: ${formatBytesExact(own)}. ${hint}`,
      value: formatBytes(own, byteUnit),
    };
  });
  // What is beside the picture has the numbers of the pinned moment.
  const isAtRest = hover === null && props.exact !== null;
  const { minBytes, bands } = tile.answer;
  return (
    <div class={isAtRest ? "block-legend is-at-rest" : "block-legend"}>
      <Legend
        items={items}
        onToggle={(i) => onOnly(only === shown[i]?.key ? "" : (shown[i]?.key ?? ""))}
      />
      {bands.length > 0 && minBytes > 0 && (
        <span
          class="quiet"
          title="Too thin to draw one by one: summed up by category. Zoom in to see them."
        >
          <Swatch colour="var(--secondary)" hatch="var(--bg)" /> hatched: blocks below{" "}
          {formatBytes(minBytes, byteUnit)}
        </span>
      )}
    </div>
  );
}

/** What is under the pointer; null: nothing is drawn there. */
export function readingOf(
  { block, rest, tile }: BlockHover,
  of: BlockPicture,
): Reading | null {
  const bytes = block?.size ?? rest?.bytes;
  if (bytes === undefined) return null;
  const { groups, bands, minBytes } = tile.answer;
  const { colours, bandColours } = tileColours(tile, of);
  const which = block?.group ?? rest?.band ?? -1;
  const group = (block === null ? bands : groups)[which];
  // The category of a line, where known: the line itself is below.
  const { category = null, stack = null } = group ?? {};
  const name =
    group === undefined || (stack !== null && category === "unknown")
      ? ""
      : category === null
        ? groupLabel(group)
        : categoryLabel(category);
  const least = formatBytes(minBytes, of.byteUnit);
  const thin = `in blocks below ${least}; zoom in to see them`;
  const line = block === null ? "" : (of.stacks?.stackLabel(block.stack) ?? "");
  return {
    title: `${formatBytes(bytes, of.byteUnit)} ${name}`.trimEnd(),
    swatch: (block === null ? bandColours : colours)[which],
    notes: block === null ? [{ text: thin, class: "quiet" }] : [line],
  };
}

export function BlockCard({
  stage,
  of,
}: {
  readonly stage: BlockStage;
  readonly of: BlockPicture;
}) {
  const { value: hover } = stage.hovered;
  const reading = hover && readingOf(hover, of);
  if (hover === null || reading === null) return null;
  return (
    <PointerTip {...GUTTER} {...stage.size} point={hover.point} reading={reading} />
  );
}
