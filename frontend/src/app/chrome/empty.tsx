import type { ForeignFiles, RunsResponse } from "../../api/types.gen";
import { formatInteger } from "../../base/bytes";
import { CopyIcon } from "../../widgets/icon/icon";
import { ProblemList } from "../../widgets/problem_list/problem_list";

function snippet(logdir: string): string {
  // Recordings are local; a store gets a mirror.
  const place = logdir.includes("://")
    ? `"runs/my_run", remote=${JSON.stringify(`${logdir}/{run_name}`)}`
    : JSON.stringify(`${logdir}/my_run`);
  return `import memboard as mb
with mb.record(${place}, model=model, optimizer=optimizer) as rec:
    ...  # the loop as it is, and at the end of each step: rec.step()`;
}

const FOREIGN_WORDS: Readonly<Record<ForeignFiles["kind"], string>> = {
  tfevents: "TensorBoard event files without MemBoard’s data",
  memprofiler: "memory profiles of other tools",
  other: "other files",
};

export function Empty({ runs }: { readonly runs: RunsResponse }) {
  const [logdir] = runs.logdirs;
  return (
    <main class="empty">
      <h1 class="lead">No memory data yet</h1>
      <p>
        Searched{" "}
        {runs.logdirs.length === 0 ? (
          <>no folder: TensorBoard was started without a logdir.</>
        ) : (
          runs.logdirs.map((path, i) => (
            <>
              {i > 0 && ", "}
              <code>{path}</code>
            </>
          ))
        )}
      </p>
      <p class="quiet" role="status">
        Waiting for data. This page updates automatically.
      </p>
      <Snippet
        title="Record a training: three lines"
        text={snippet((logdir ?? "runs").replace(/\/+$/, ""))}
      />
      <Snippet title="Explore first, with simulated data" text="memboard demo" />
      <Snippet
        title="Open a memory snapshot or a profiler’s trace"
        text="memboard open snapshot.pickle"
      />
      <p class="quiet">
        {runs.dropLimitBytes > 0 && "Or drop the file here, onto this page. "}
        Snapshots and traces in the folder appear automatically.
      </p>
      {runs.foreign.length > 0 && (
        <>
          <h2>Found, but not MemBoard’s</h2>
          <ul>
            {runs.foreign.map((files) => (
              <li key={files.kind}>
                {FOREIGN_WORDS[files.kind]} ({formatInteger(files.numFiles)}), such as{" "}
                <code>{files.example}</code>
              </li>
            ))}
          </ul>
        </>
      )}
      {runs.problems.length > 0 && (
        <>
          <h2>
            {runs.problems.some((problem) => problem.severity === "error")
              ? "Could not be read"
              : "Not read yet"}
          </h2>
          <ProblemList problems={runs.problems} />
        </>
      )}
    </main>
  );
}

function Snippet({ title, text }: { readonly title: string; readonly text: string }) {
  return (
    <>
      <h2>{title}</h2>
      <div class="snippet">
        <pre tabIndex={0}>{text}</pre>
        <CopyIcon label="Copy" text={text} />
      </div>
    </>
  );
}
