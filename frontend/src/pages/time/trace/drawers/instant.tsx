/** The chosen instant, in full: when, where, in what, with which arguments. */

import type { TraceInstantResponse, TraceResponse } from "../../../../api/types.gen";
import { formatInstant } from "../../../../base/durations";
import type { Theme } from "../../../../base/tokens";
import { Drawer } from "../../../shared/panels/drawer";
import { Arguments, Fact, LiesIn } from "./arguments";
import { KIND_WORDS } from "../tiles/instants";
import { markColour } from "../paint/instants";
import type { SliceRef } from "../state/params";
import { formatNs, formatNsExact } from "../words";

export function InstantDrawer(props: {
  readonly instant: TraceInstantResponse;
  readonly answer: TraceResponse;
  readonly theme: Theme;
  readonly onSlice: (slice: SliceRef) => void;
  readonly onNext: (sign: 1 | -1) => void;
  readonly close: () => void;
}) {
  const { instant, answer, theme } = props;
  const { category } = instant;
  const sinceBase = Number(BigInt(instant.timeNs) - BigInt(answer.baseNs));
  const track = answer.tracks.find(
    (one) => `${answer.sources[one.source]?.id ?? ""}:${one.index}` === instant.track,
  );
  const rank = track?.rank ?? null;
  return (
    <Drawer
      label="The chosen instant"
      title={
        <>
          <span
            class="row-table-swatch"
            style={{ background: markColour(theme, instant.kind) }}
          />
          <span class="trace-drawer-name">{instant.name}</span>
        </>
      }
      actions={
        <>
          <button
            type="button"
            class="text-button"
            title="Comma"
            onClick={() => props.onNext(-1)}
          >
            Previous instant
          </button>
          <button
            type="button"
            class="text-button"
            title="Full stop"
            onClick={() => props.onNext(1)}
          >
            Next instant
          </button>
        </>
      }
      close={props.close}
    >
      <div class="trace-drawer">
        <dl class="trace-facts">
          <Fact name="At">
            {formatNs(sinceBase)}{" "}
            <span class="quiet">
              {formatNsExact(sinceBase)} since the beginning,{" "}
              {formatInstant(Number(BigInt(instant.timeNs) / 1_000_000n))}
            </span>
          </Fact>
          <Fact name="On">
            {track === undefined ? instant.track : `${track.name} · ${track.process}`}
            {rank !== null && <span class="quiet"> rank {rank}</span>}
          </Fact>
          <Fact name="Category">
            {instant.kind === "other" && category !== ""
              ? category
              : KIND_WORDS[instant.kind]}
          </Fact>
          <LiesIn stack={instant.stack} onSlice={props.onSlice} />
        </dl>
        <div>
          <Arguments args={instant.args} problem={instant.argsProblem} />
        </div>
      </div>
    </Drawer>
  );
}
