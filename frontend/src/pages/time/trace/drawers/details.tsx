/** Below the timeline: the chosen slice or instant in full, or a range summed up. */

import type { TraceRangeResponse, TraceResponse } from "../../../../api/types.gen";
import { formatInteger } from "../../../../base/bytes";
import { Failure } from "../../../../widgets/state/state";
import type { ViewProps } from "../../../shared/view_props";
import { InstantDrawer } from "./instant";
import type { Layout } from "../plot/layout";
import { rangeWords, since, sliceWords, type TraceParams } from "../state/params";
import { around, countTracks } from "../plot/place";
import { RangeDrawer } from "./range";
import { SliceDrawer } from "./slice";
import type { Chosen } from "../state/chosen";
import type { ChosenInstant } from "../state/instants";
import type { Moves } from "../state/moves";
import type { TraceWindow } from "../state/window";

export function Details(props: {
  readonly view: ViewProps;
  readonly params: TraceParams;
  readonly answer: TraceResponse;
  readonly base: bigint;
  readonly layout: Layout;
  readonly chosen: Chosen;
  readonly instant: ChosenInstant;
  readonly sums: TraceRangeResponse | null;
  readonly window: TraceWindow;
  readonly moves: Moves;
}) {
  const { params, base, chosen, moves } = props;
  const { theme, setParams } = props.view;
  const { setWindow } = props.window;
  const { slice, selected } = chosen;
  const { instant } = props.instant;
  const { range, rangeTracks } = params;
  return (
    <>
      {params.slice !== null && chosen.error !== null && (
        <Failure failure={chosen.error} />
      )}
      {slice !== null && selected !== null && (
        <SliceDrawer
          slice={slice}
          answer={props.answer}
          layout={props.layout}
          theme={theme}
          onSlice={(next) => moves.choose(next, true)}
          onFit={() => {
            setWindow(around(selected.startNs, selected.endNs, 0.1));
            moves.scrollTo.value = selected;
          }}
          onFind={(name) => setParams({ find: name.slice(0, 120) })}
          close={() => setParams(sliceWords(null))}
        />
      )}
      {params.instant !== null && props.instant.error !== null && (
        <Failure failure={props.instant.error} />
      )}
      {instant !== null && (
        <InstantDrawer
          instant={instant}
          answer={props.answer}
          theme={theme}
          onSlice={(next) => moves.choose(next, true)}
          onNext={moves.nextInstant}
          close={() => setParams(sliceWords(null))}
        />
      )}
      {slice === null && range !== null && (
        <RangeDrawer
          sums={props.sums}
          spanNs={Number(range.high - range.low)}
          ofTracks={
            rangeTracks === ""
              ? ""
              : `, on ${formatInteger(countTracks(rangeTracks))} chosen tracks`
          }
          theme={theme}
          onSlice={(next) => moves.choose(next, true)}
          onZoom={() =>
            setWindow({ low: since(base, range.low), high: since(base, range.high) })
          }
          close={() => setParams(rangeWords(null, ""))}
        />
      )}
    </>
  );
}
