/**
 * Blocks: what is in memory at a moment, block by block, and who allocated it. The
 * picture is one allocator history; beside it stands where the memory of its moment
 * went, or the block that was chosen.
 */

import { useSignal } from "@preact/signals";
import { useMemo, useRef } from "preact/hooks";
import { HistoryFrame } from "../history/frame";
import type { ViewProps } from "../../shared/view_props";
import "./blocks.css";
import { NOTHING_FOUND } from "./found";
import { History } from "./history";
import { readAllocations } from "./state/params";
import { PictureBar } from "./toolbar";

export function BlocksView(props: ViewProps) {
  const params = useMemo(() => readAllocations(props.params), [props.params]);
  const findBox = useRef<HTMLInputElement>(null);
  const found = useSignal(NOTHING_FOUND);
  return (
    <HistoryFrame
      view={props}
      history={params.history}
      device={params.device}
      tools={(open) =>
        open !== null && (
          <PictureBar
            facts={open.facts}
            device={open.device}
            params={params}
            setParams={props.setParams}
            found={found}
            findBox={findBox}
          />
        )
      }
    >
      {({ answer, facts, device }) => (
        <History
          key={`${answer.reference.id} ${device.device}`}
          view={props}
          params={params}
          answer={answer}
          facts={facts}
          device={device}
          found={found}
          findBox={findBox}
        />
      )}
    </HistoryFrame>
  );
}
