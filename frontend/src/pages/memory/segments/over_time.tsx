import { useMemo, useState } from "preact/hooks";
import { counted, formatBytes } from "../../../base/bytes";
import { originOf } from "../../../model/words/origin";
import { atMoment, BlockAxis } from "../../../widgets/block_stack/axis";
import { BlockStack, useBlockStage } from "../../../widgets/block_stack/block_stack";
import { NO_LINES } from "../../../widgets/block_stack/paint/colours";
import { drawnMarks } from "../../../widgets/block_stack/marks";
import type { BlockPicture } from "../../../widgets/block_stack/picture";
import { Waiting } from "../../../widgets/state/state";
import { Segmented } from "../../shared/controls/choices";
import { useTiles } from "../tiles/use_tiles";
import type { OpenSegments } from "./params";

const PICTURE_PX = 420;
const HEADROOM = 1.05;

const ORDERS = {
  category: ["Kind", "Small, large and private pools stacked"],
  allocation: ["Order", "All in order of reservation, as memory_viz stacks them"],
} as const;

export function OverTime({ view, open, stacks, moment, go, ...props }: OpenSegments) {
  const { device, place } = open;
  const label = `${props.label} over time`;
  const { theme, byteUnit } = view;
  const [order, setOrder] = useState<keyof typeof ORDERS>("category");
  const [only, setOnly] = useState("");
  const axis = useMemo(() => new BlockAxis(device, "event"), [device]);
  const { tiles, look, loading, error } = useTiles(view.client, {
    kind: "segments",
    place,
    axis: "event",
    order,
    colour: "category",
  });
  const ofPart = tiles.at(-1)?.answer.marks ?? null;
  const marks = useMemo(
    () => drawnMarks(device.marks, axis, ofPart),
    [device, axis, ofPart],
  );
  const peak = device.peaks.find(({ level }) => level === "reserved")?.bytes ?? 1;
  const picture: BlockPicture = {
    device,
    axis,
    marks,
    tiles,
    stacks,
    only,
    moment,
    theme,
    byteUnit,
    topBytes: peak * HEADROOM,
    matches: null,
    culprits: NO_LINES,
    life: null,
    marked: null,
    stack: null,
    range: null,
  };
  const stage = useBlockStage(picture);
  const num = tiles[0]?.answer.lives.life.length ?? 0;
  return (
    <>
      <Waiting
        error={error}
        hasContent={num > 0}
        note="MemBoard retries automatically."
      />
      <BlockStack
        of={picture}
        stage={stage}
        label={label}
        bar={
          <>
            <span class="chart-axis-name quiet small">
              {num > 0 && `${counted(num, "piece")} drawn`}
            </span>
            <Segmented
              label="Stacking order"
              chosen={order}
              labels={ORDERS}
              onChoose={setOrder}
            />
          </>
        }
        subject="the segments over time"
        origin={originOf(view.run)}
        about={{ device: device.device, order }}
        shell={view}
        onOnly={setOnly}
        onView={look}
        onPin={(hover) => go(hover.moment)}
        onRange={() => undefined}
        heightPx={PICTURE_PX}
        loading={loading}
        anchor={moment}
      />
      <p class="quiet">
        A click chooses the moment; Map shows its segments. Highest:{" "}
        {formatBytes(peak, byteUnit)} reserved; now {atMoment(moment)}.
      </p>
    </>
  );
}
