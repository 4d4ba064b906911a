/**
 * Allocations: what lived when, block by block, through one allocator history. The
 * pointer reads every block; below stands who holds the memory at that moment.
 */

import { useMemo } from "preact/hooks";
import { HistoryFrame } from "../history/frame";
import type { ViewProps } from "../../shared/view_props";
import "./blocks.css";
import { History } from "./history";
import { readAllocations } from "./state/params";

export function BlocksView(props: ViewProps) {
  const params = useMemo(() => readAllocations(props.params), [props.params]);
  return (
    <HistoryFrame view={props} history={params.history} device={params.device}>
      {({ answer, facts, device }) => (
        <History
          key={`${answer.reference.id} ${device.device}`}
          view={props}
          params={params}
          answer={answer}
          facts={facts}
          device={device}
        />
      )}
    </HistoryFrame>
  );
}
