/** A frame of a stack that opens in the editor, and the menu that says how. */

import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { readPreference, writePreference } from "../../../base/browser";
import {
  editorMessage,
  isFile,
  linkOf,
  mappingProblem,
  parseFrame,
  parseMapping,
  templateProblem,
  VSCODE_TEMPLATE,
  type SourcePlace,
} from "../../../model/stacks/source_link";
import type { EditorMessage } from "../../../model/stacks/source_link";
import { Popover } from "../../../widgets/menu/menu";
import "./source_frame.css";

const TEMPLATE = "source.template";
const MAPPING = "source.mapping";

const template = signal(readPreference(TEMPLATE) ?? VSCODE_TEMPLATE);
const mapping = signal(readPreference(MAPPING) ?? "");

/** `file(line): function`; a link where its place can be opened. */
export function SourceFrame({ frame }: { readonly frame: string }) {
  const place = parseFrame(frame);
  if (place === null) return <span class="source-frame">{frame}</span>;
  return (
    <SourcePlaceLink place={place}>
      {place.name} <span class="quiet">{whereOf(place)}</span>
    </SourcePlaceLink>
  );
}

/** `file:line`, or the file alone where the line is not known. */
export function whereOf({ filename, line }: SourcePlace): string {
  return line > 0 ? `${filename}:${line}` : filename;
}

/** Words that open a place in the editor, or where the user's link leads. */
export function SourcePlaceLink({
  place,
  children,
}: {
  readonly place: SourcePlace;
  readonly children: ComponentChildren;
}) {
  const paths = parseMapping(mapping.value);
  const where = whereOf(place);
  if (isInEditor() && isFile(place.filename)) {
    return (
      <button
        type="button"
        class="text-button source-frame"
        title={`Open ${where}`}
        onClick={() => openInEditor(editorMessage(place, paths))}
      >
        {children}
      </button>
    );
  }
  const link = linkOf(place, { template: template.value, mapping: paths });
  // Only a page needs a tab of its own: VS Code is another program.
  const tab = /^http/i.test(link ?? "")
    ? { target: "_blank", rel: "noopener noreferrer" }
    : {};
  return link === null ? (
    <span class="source-frame" title={where}>
      {children}
    </span>
  ) : (
    <a class="source-frame" href={link} title={`Open ${link}`} {...tab}>
      {children}
    </a>
  );
}

/** How links to sources are made; kept by the browser. */
export function SourceMenu({
  opens = "right",
}: {
  /** To which side of its word there is room. */
  readonly opens?: "left" | "right";
}) {
  return (
    <Popover
      class={`source-menu opens-${opens}`}
      label="Where links to sources lead"
      button="Source links"
    >
      <Kept
        label="Link"
        value={template.value}
        usual={VSCODE_TEMPLATE}
        problem={templateProblem}
        rows={1}
        onValue={(value) => {
          template.value = value;
          writePreference(TEMPLATE, value);
        }}
        help="vscode://file/{path}:{line}, or a page: https://github.com/me/repo/blob/main/{path}#L{line}"
      />
      <Kept
        label="Paths, one from=>to a line"
        value={mapping.value}
        usual=""
        problem={mappingProblem}
        rows={3}
        onValue={(value) => {
          mapping.value = value;
          writePreference(MAPPING, value);
        }}
        help="The beginning of paths on the machine that trained, and what stands there on this one. The longest that fits is taken; =>to alone is for all paths that are not absolute."
      />
      {isInEditor() && (
        <p class="quiet">VS Code opens the files itself; the link is not used.</p>
      )}
    </Popover>
  );
}

function Kept(props: {
  readonly label: string;
  readonly value: string;
  readonly usual: string;
  readonly rows: number;
  readonly help: string;
  readonly problem: (value: string) => string | null;
  readonly onValue: (value: string) => void;
}) {
  const [typed, setTyped] = useState(props.value);
  const problem = props.problem(typed);
  return (
    <label>
      <span>{props.label}</span>
      <textarea
        aria-label={props.label}
        rows={props.rows}
        spellcheck={false}
        value={typed}
        aria-invalid={problem !== null}
        onInput={(event) => {
          const { value } = event.currentTarget;
          setTyped(value);
          const wanted = value.trim() === "" ? props.usual : value;
          if (props.problem(wanted) === null) props.onValue(wanted);
        }}
      />
      <span class="quiet" role={problem === null ? undefined : "alert"}>
        {problem ?? props.help}
      </span>
    </label>
  );
}

/**
 * VS Code shows TensorBoard in a web view of its own, which opens files for the pages in
 * it. Beside `app/host_page.ts` the only file that touches `parent`.
 */
const WEB_VIEW = /^vscode-webview:|^https:\/\/[^/]*\.vscode-(?:cdn|webview)\.net$/;

/** Origins of the pages around ours, the nearest first; empty where they are not told. */
function originsAround(): readonly string[] {
  const { ancestorOrigins } = window.location as { ancestorOrigins?: DOMStringList };
  return ancestorOrigins === undefined ? [] : Array.from(ancestorOrigins);
}

/** Whether the page stands in VS Code: our frame, TensorBoard's, then the web view. */
function isInEditor(): boolean {
  return (
    window.parent.parent !== window.parent &&
    originsAround().some((origin) => WEB_VIEW.test(origin))
  );
}

/** Asks VS Code to show a line. Only its own page gets to know the path. */
function openInEditor(message: EditorMessage): void {
  const around = originsAround()[1];
  // A page without an origin of its own can be named by no other word.
  const target = around === undefined || around === "null" ? "*" : around;
  window.parent.parent.postMessage(message, target);
}
