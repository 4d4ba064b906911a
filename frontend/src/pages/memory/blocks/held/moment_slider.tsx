import { useEffect, useMemo, useRef } from "preact/hooks";
import { atMoment, BlockAxis } from "../../../../widgets/block_stack/axis";
import { drawnMarks } from "../../../../widgets/block_stack/marks";
import { Scrubber } from "../../../../widgets/scrubber/scrubber";
import { momentName } from "../../history/moment";
import { useMoment } from "../../history/use_history";
import type { Blocks } from "../use_blocks";

/**
 * Dragging shows each moment at once, in the flamegraph and in the picture; at rest it is
 * pinned. The range is that of the picture.
 */
export function MomentSlider({ of }: { readonly of: Blocks }) {
  const { view, device, momentPlace, stage, anchor } = of;
  const { theme, byteUnit } = view;
  const [moment, setMoment] = useMoment(view, momentPlace);
  const axis = useMemo(() => new BlockAxis(device, "event"), [device]);
  const marks = useMemo(() => drawnMarks(device.marks, axis), [device, axis]);
  const hasMoved = useRef(false);
  useEffect(() => {
    if (hasMoved.current) stage.clearCursor();
    hasMoved.current = false;
  }, [anchor]);
  if (device.numEvents === 0) return null;
  const name = momentName(device, moment);
  return (
    <Scrubber
      label="Moment of the flamegraph"
      device={device}
      axis={axis}
      marks={marks}
      moment={moment}
      chosen={of.state.range}
      onChosen={(range) => {
        const { flameBytes } = of.state;
        const isMoment = flameBytes === "moment";
        of.actions.set({
          range,
          life: null,
          flameBytes: isMoment ? "allocated" : flameBytes,
        });
      }}
      valueText={atMoment(moment) + (name === "" ? "" : `, ${name}`)}
      onMoment={(next) => {
        setMoment(next);
        hasMoved.current = next !== anchor;
        stage.reveal(next);
        const { axis: drawn } = of.picture;
        stage.moveTo(drawn.inside(drawn.xOf(next)), null);
      }}
      theme={theme}
      byteUnit={byteUnit}
    />
  );
}
