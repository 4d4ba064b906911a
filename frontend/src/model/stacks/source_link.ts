/**
 * Frames and paths come from files that anyone may have written: a link is only made of
 * a template that the user chose, or ours, and a path cannot leave its place in it.
 */

export interface SourcePlace {
  readonly filename: string;
  /** From 1; 0: not known. */
  readonly line: number;
  readonly name: string;
}

/** Editors on the machine that shows the page, by the links that they open; the first is usual. */
export const EDITORS = {
  "VS Code": "vscode://file/{path}:{line}",
  PyCharm: "pycharm://open?file=/{path}&line={line}",
} as const;

export const USUAL_TEMPLATE = EDITORS["VS Code"];

export interface SourceSettings {
  /** With `{path}` and `{line}`. */
  readonly template: string;
  readonly mapping: readonly PathMapping[];
}

/** From paths of the machine that trained to those of the one that shows. */
interface PathMapping {
  readonly from: string;
  readonly to: string;
}

const FRAME = /^(.+)\((\d{1,9})\): (.*)$/s;

/** Not `<string>`, `<frozen importlib._bootstrap>` or `??`, which are in no file. */
export function isFile(filename: string): boolean {
  return filename !== "" && !/^[<?]/.test(filename);
}

/** `file(line): function`, as torch's profiler writes it. */
export function parseFrame(frame: string): SourcePlace | null {
  const match = FRAME.exec(frame);
  const [, filename = "", line = "0", name = ""] = match ?? [];
  if (!isFile(filename)) return null;
  return { filename, line: Math.max(1, Number(line)), name };
}

/**
 * `from=>to` per line. `=>to`: relative paths, of which the profiler cut off
 * `sys.path`.
 */
export function parseMapping(text: string): readonly PathMapping[] {
  return text.split(/[\r\n]+/).flatMap((line) => {
    const arrow = line.indexOf("=>");
    if (arrow < 0) return [];
    return [{ from: line.slice(0, arrow).trim(), to: line.slice(arrow + 2).trim() }];
  });
}

/** null: all lines are valid. */
export function mappingProblem(text: string): string | null {
  const wrong = text
    .split(/[\r\n]+/)
    .map((line) => line.trim())
    .find((line) => line !== "" && parseMapping(line).length === 0);
  return wrong === undefined
    ? null
    : `"${wrong}" is not understood: write from=>to, such as /workspace/=>/home/me/repo/.`;
}

/** Its longest known beginning is replaced. */
export function mappedPath(path: string, mapping: readonly PathMapping[]): string {
  let best: PathMapping | null = null;
  for (const rule of mapping) {
    const fits = rule.from === "" ? !isAbsolute(path) : path.startsWith(rule.from);
    if (fits && rule.from.length > (best?.from.length ?? -1)) best = rule;
  }
  return best === null ? path : best.to + path.slice(best.from.length);
}

/** Of programs, which open whole paths alone. */
const EDITOR = /^(?:vscode:\/\/file|pycharm:\/\/open\?file=)\//i;

/** No path can change the host. */
const PAGE = /^https?:\/\/[^/?#{}\\\s]+\//i;

/** null: it is allowed. */
export function templateProblem(template: string): string | null {
  if (!EDITOR.test(template) && !PAGE.test(template)) {
    return "It must begin with vscode://file/, pycharm://open?file=/, or http:// or https:// and a host.";
  }
  return template.includes("{path}") ? null : "It must hold {path}.";
}

function isAbsolute(path: string): boolean {
  return path.startsWith("/") || /^[A-Za-z]:[\\/]/.test(path);
}

export function linkOf(place: SourcePlace, settings: SourceSettings): string | null {
  const { template } = settings;
  if (templateProblem(template) !== null) return null;
  const path = mappedPath(place.filename, settings.mapping).replaceAll("\\", "/");
  const parts = path.split("/");
  // A path that climbs would leave the template's folder.
  if (parts.some((part) => part === ".." || part === ".")) return null;
  if (EDITOR.test(template) && !isAbsolute(path)) return null;
  const encoded = parts
    .filter((part) => part !== "")
    .map(encodedPart)
    .join("/")
    .replace(/^([A-Za-z])%3A(?=\/)/, "$1:");
  if (encoded === "") return null;
  // Functions, because `replaceAll` would interpret a `$&` of a path.
  const effectiveTemplate =
    place.line > 0 ? template : template.replace(/(?:[:#]L?|&line=)\{line\}/, "");
  return effectiveTemplate
    .replaceAll("{path}", () => encoded)
    .replaceAll("{line}", () => String(place.line));
}

/** Half a surrogate pair cannot be encoded; a replacement character can. */
function encodedPart(part: string): string {
  try {
    return encodeURIComponent(part);
  } catch {
    return encodeURIComponent(part.replaceAll(/[\ud800-\udfff]/g, "\ufffd"));
  }
}

/** Read by VS Code's TensorBoard host; its lines count from 0. */
export interface EditorMessage {
  readonly filename: string;
  readonly line: number;
}

export function editorMessage(
  place: SourcePlace,
  mapping: readonly PathMapping[],
): EditorMessage {
  return {
    filename: mappedPath(place.filename, mapping),
    line: Math.max(0, place.line - 1),
  };
}
