import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { readPreference, writePreference } from "../../../base/browser";
import {
  EDITORS,
  editorMessage,
  isFile,
  linkOf,
  mappingProblem,
  parseFrame,
  parseMapping,
  templateProblem,
  USUAL_TEMPLATE,
  type SourcePlace,
} from "../../../model/stacks/source_link";
import type { EditorMessage } from "../../../model/stacks/source_link";
import { Popover } from "../../../widgets/menu/menu";
import "./source_frame.css";

const TEMPLATE = "source.template";
const MAPPING = "source.mapping";

const template = signal(readPreference(TEMPLATE) ?? USUAL_TEMPLATE);
const mapping = signal(readPreference(MAPPING) ?? "");

/** Editors chosen so far: each is shown in the field for the link. */
const numChosen = signal(0);

function chooseTemplate(value: string): void {
  template.value = value;
  writePreference(TEMPLATE, value);
}

/** `file(line): function`; a link where the file can be opened. */
export function SourceFrame({ frame }: { readonly frame: string }) {
  const place = parseFrame(frame);
  if (place === null) return <span class="source-frame">{frame}</span>;
  return (
    <SourcePlaceLink place={place}>
      {place.name} <span class="quiet">{whereOf(place)}</span>
    </SourcePlaceLink>
  );
}

/** `file:line`, or the file alone. */
export function whereOf({ filename, line }: SourcePlace): string {
  return line > 0 ? `${filename}:${line}` : filename;
}

/** Opens the place in the editor, or the user's link. */
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
  // Only a web page needs a tab: VS Code is another program.
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

export function SourceMenu({
  opens = "right",
}: {
  /** The side with room. */
  readonly opens?: "left" | "right";
}) {
  return (
    <Popover
      class={`source-menu opens-${opens}`}
      label="Target of source links"
      button="Source links"
    >
      <p class="quiet">
        Open files in{" "}
        {Object.entries(EDITORS).map(([name, link]) => (
          <button
            type="button"
            key={name}
            class="text-button"
            aria-pressed={template.value === link}
            onClick={() => {
              chooseTemplate(link);
              numChosen.value += 1;
            }}
          >
            {name}
          </button>
        ))}
      </p>
      <Kept
        key={numChosen.value}
        label="Link"
        value={template.value}
        usual={USUAL_TEMPLATE}
        problem={templateProblem}
        rows={1}
        onValue={chooseTemplate}
        help="An editor's link, or a page: https://github.com/me/repo/blob/main/{path}#L{line}"
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
        help="Prefixes of paths on the training machine, and their replacements on this one. The longest match is used; =>to alone applies to all relative paths."
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
 * VS Code shows TensorBoard in a web view, which opens files for the pages in it. Only
 * this file and `app/host_page.ts` touch `parent`.
 */
const WEB_VIEW = /^vscode-webview:|^https:\/\/[^/]*\.vscode-(?:cdn|webview)\.net$/;

/** Origins of the frames around ours, nearest first; empty where unknown. */
function originsAround(): readonly string[] {
  const { ancestorOrigins } = window.location as { ancestorOrigins?: DOMStringList };
  return ancestorOrigins === undefined ? [] : Array.from(ancestorOrigins);
}

/** Frames in VS Code: ours, TensorBoard's, then the web view. */
function isInEditor(): boolean {
  return (
    window.parent.parent !== window.parent &&
    originsAround().some((origin) => WEB_VIEW.test(origin))
  );
}

/** Only VS Code's own page may receive the path. */
function openInEditor(message: EditorMessage): void {
  const around = originsAround()[1];
  // A page with an opaque origin has no other address.
  const target = around === undefined || around === "null" ? "*" : around;
  window.parent.parent.postMessage(message, target);
}
