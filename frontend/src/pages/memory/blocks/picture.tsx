import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { formatBytes } from "../../../base/bytes";
import { formatSeconds } from "../../../base/durations";
import { useDebouncedUrl } from "../../../base/debounced_url";
import { originOf } from "../../../model/words/origin";
import { sameView, type Viewport } from "../../../render/viewport";
import { atMoment } from "../../../widgets/block_stack/axis";
import { BlockStack } from "../../../widgets/block_stack/block_stack";
import { spansAt } from "../../../widgets/block_stack/marks";
import { Icon } from "../../../widgets/icon/icon";
import { Menu } from "../../../widgets/menu/menu";
import { TextButton } from "../../shared/controls/choices";
import { writeState } from "../../shared/page_state";
import { momentName, momentWords, peakOf } from "../history/moment";
import { foundWords } from "./search";
import { BLOCKS } from "./state";
import type { Blocks } from "./use_blocks";

/** Height of everything above and below the picture in the frame. */
const AROUND_PX = 420;
const LEAST_PX = 220;
const MOST_PX = 460;

export function Picture({ of }: { readonly of: Blocks }) {
  const { view, state, momentPlace, shown, picture, stage, actions, anchor, stacks } =
    of;
  const { axis, tiles } = picture;
  const heightPx = usePictureHeight();
  const searchText = useMemo(
    () => foundWords(tiles.at(-1), of.search, view.byteUnit),
    [tiles, of.search, view.byteUnit],
  );
  const tellAddress = useViewWords(of);
  const item = (id: string, label: string, run: () => void) => ({ id, label, run });
  return (
    <>
      <BlockStack
        of={picture}
        stage={stage}
        label={of.label}
        title={<Readout of={of} />}
        bar={
          <>
            <span
              class="quiet small allocations-found"
              role="status"
              title={searchText.long}
            >
              {searchText.short}
            </span>
            {anchor !== peakOf(momentPlace.device)?.moment && (
              <TextButton title="Pin the highest moment (P)" press={actions.toPeak}>
                Peak
              </TextButton>
            )}
            {actions.ooms.some(({ moment }) => moment !== anchor) && (
              <TextButton
                title="Pin the next out-of-memory error"
                press={actions.toOom}
              >
                <span class="tone-bad">Out of memory</span>
              </TextButton>
            )}
            <Menu
              label="More of this picture"
              empty=""
              items={[
                item(
                  "mark",
                  state.mark === null ? "Mark this moment (M)" : "Mark again (M)",
                  actions.mark,
                ),
                item("compare", "Compare…", actions.compare),
                item("height", "Fit the height to the visible part (H)", () =>
                  stage.fitHeight(),
                ),
              ]}
            >
              <Icon name="more" />
            </Menu>
          </>
        }
        subject="the picture of allocations"
        origin={originOf(view.run)}
        about={{
          history: momentPlace.history,
          device: momentPlace.device.device,
          order: of.order,
          colour: state.colour,
          axis: axis.kind,
          min_bytes: tiles.at(-1)?.answer.minBytes ?? null,
          note: "Blocks below min_bytes are summed up in the picture and not listed.",
        }}
        shell={view}
        onOnly={(only) => actions.set({ only })}
        onView={(seen, settled) => {
          shown.look(seen, settled);
          tellAddress(seen.view);
        }}
        onPin={({ moment, block }) => {
          const life = writeState(BLOCKS, { life: block?.life ?? null });
          view.setParams({ ...momentWords(moment, momentPlace), ...life });
        }}
        onRange={(from, to) => {
          const low = Math.max(0, axis.momentAt(from));
          const high = Math.max(low + 1, axis.momentAt(to) + 1);
          actions.set({ range: { low, high }, life: null });
        }}
        heightPx={heightPx}
        loading={shown.loading}
        anchor={anchor}
        exact={of.exact}
      />
      {picture.matches !== null && tiles.length > 0 && stacks === null && (
        <p class="quiet">The stacks are still being read; the search waits for them.</p>
      )}
    </>
  );
}

/** The viewport in the URL; call the returned function with each new one. */
function useViewWords({ stage, state, view }: Blocks): (now: Viewport) => void {
  const { x, y } = state;
  const { params, setParams } = view;
  /** As the URL said; the stage reports it as it does a gesture's. */
  const followed = useRef(stage.view);
  const write = useDebouncedUrl({
    params,
    setParams,
    names: Object.keys(writeState(BLOCKS, { x: null, y: null })),
    follow: () => {
      const { x0, x1, y0, y1 } = stage.world;
      stage.setView({
        x0: x?.low ?? x0,
        x1: x?.high ?? x1,
        y0: y?.high ?? y0,
        y1: y?.low ?? y1,
      });
      followed.current = stage.view;
    },
    atFirst: true,
  });
  return (now) => {
    const { x0, x1, y0, y1 } = now;
    const { world } = stage;
    const wide = x0 <= world.x0 && x1 >= world.x1;
    const tall = y1 <= world.y1 && y0 >= world.y0;
    write(
      () =>
        writeState(BLOCKS, {
          x: wide ? null : { low: x0, high: x1 },
          y: tall ? null : { low: y1, high: y0 },
        }),
      sameView(now, followed.current) ? "replace" : "push",
    );
  };
}

function Readout({ of }: { readonly of: Blocks }) {
  const { stage, picture, anchor, anchored, device, view } = of;
  const { axis, tiles, marks } = picture;
  const { byteUnit } = view;
  const { value: hover } = stage.hovered;
  const tile = hover?.tile ?? tiles[0];
  if (tile === undefined) return <span class="quiet">drawing…</span>;
  const moment = hover?.moment ?? anchor;
  const column = hover?.column ?? tile.columnOf(moment);
  const { moment: moments, active, reserved } = tile.answer.columns;
  // A column stands for many events: it has the bytes of one.
  const drawn = (bytes: Float64Array): number =>
    moments[column] === moment ? (bytes[column] ?? NaN) : NaN;
  const exact = anchored?.moment === moment ? anchored : null;
  const seconds = device.hasTimes && moment >= 0 ? axis.msOf(moment) / 1e3 : NaN;
  const [step] = spansAt(marks, axis.xOf(moment));
  const facts = [
    [atMoment(moment), momentName(device, moment)].filter(Boolean).join(", "),
    Number.isNaN(seconds) ? "" : formatSeconds(seconds),
    step?.label ?? "",
  ];
  return (
    <span class="allocations-readout" aria-hidden="true">
      <b>{formatBytes(exact?.activeBytes ?? drawn(active), byteUnit)}</b>{" "}
      <span class="quiet small">
        live of {formatBytes(exact?.reservedBytes ?? drawn(reserved), byteUnit)}{" "}
        reserved {facts.filter(Boolean).join(" · ")}
      </span>
    </span>
  );
}

/** As tall as the frame allows, so that the legend stays in sight. */
function usePictureHeight(): number {
  const [framePx, setFramePx] = useState(window.innerHeight);
  useEffect(() => {
    // A hidden TensorBoard tab gives its iframe no size.
    const follow = (): void => setFramePx((px) => window.innerHeight || px);
    window.addEventListener("resize", follow);
    return () => window.removeEventListener("resize", follow);
  }, []);
  return Math.min(Math.max(framePx - AROUND_PX, LEAST_PX), MOST_PX);
}
