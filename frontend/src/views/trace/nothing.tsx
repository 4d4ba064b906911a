/** What stands where no trace is: what was looked for, and how to record one. */

import { useState } from "preact/hooks";
import { copyText } from "../../base/clipboard";
import { Nothing } from "../../widgets/state/state";

const SNIPPET = `import collector

with collector.record(
    "runs/my_run", model=model, optimizer=optimizer,
    schedule={"wait": 10, "warmup": 2, "active": 3, "repeat": 2},
    torch_profiler=True,
) as rec:
    for batch in loader:
        with rec.span("augment"):
            ...
        rec.step()`;

export function NoTrace({ hasNumbers }: { readonly hasNumbers: boolean }) {
  const [copied, setCopied] = useState(false);
  return (
    <Nothing title="No spans and no profiler traces in this run">
      <p>
        {hasNumbers
          ? "Its memory and host numbers are drawn below. "
          : "Looked for recorded spans and for trace files of any profiler. "}
        Record spans and torch’s profiler with one setting; or put{" "}
        <code>*.pt.trace.json(.gz)</code> files into the run’s folder.
      </p>
      <div class="snippet">
        <pre tabIndex={0}>{SNIPPET}</pre>
        <button
          type="button"
          class="button"
          onClick={() => {
            void copyText(SNIPPET).then(setCopied);
          }}
        >
          {copied ? "Copied" : "Copy"}
        </button>
      </div>
      <p class="quiet">It fills by itself when the first arrives.</p>
    </Nothing>
  );
}
