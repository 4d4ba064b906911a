import { useState } from "preact/hooks";
import { useCommands, type Commands } from "../../base/commands";
import { Icon } from "../icon/icon";
import { Menu, type MenuItem } from "../menu/menu";
import { download, pngOf } from "./download";
import { exportCsv, exportJson, fileStem, type ExportSource } from "./source";

export interface ExportShell {
  readonly commands: Commands;
  readonly say: (sentence: string) => void;
  readonly copyMarkdown: (markdown: string) => void;
}

function exportsOf(
  source: ExportSource,
  say: (sentence: string) => void,
): readonly MenuItem[] {
  const { figure = null } = source;
  const item = (
    id: "csv" | "json" | "png" | "svg",
    label: string,
    content: () => Promise<Blob> | string,
  ): MenuItem => {
    const write = async (): Promise<void> =>
      download(fileStem(source), id, await content());
    const fail = (error: unknown): void =>
      say(
        `The export failed: ${error instanceof Error ? error.message : String(error)}`,
      );
    return { id, label, run: () => void write().catch(fail) };
  };
  return [
    item("csv", "CSV: the data shown", () => exportCsv(source)),
    item("json", "JSON: the data shown", () => exportJson(source)),
    ...(figure === null
      ? []
      : [
          item("png", "PNG picture", () => pngOf(figure())),
          item("svg", "SVG picture", () => figure().svg),
        ]),
  ];
}

/** `subject`: such as "the heatmap"; null: nothing to export yet. */
export function useExports(
  shell: ExportShell | undefined,
  subject: string,
  source: ExportSource | null,
): void {
  const title = `${subject.slice(0, 1).toUpperCase()}${subject.slice(1)}`;
  const hasFigure = typeof source?.figure === "function";
  useCommands(
    shell?.commands,
    () =>
      shell === undefined || source === null
        ? []
        : exportsOf(source, shell.say).map(({ id, run }) => ({
            id: `export.${subject.replaceAll(" ", "_")}.${id}`,
            label: `${title} as ${id.toUpperCase()}`,
            group: "Export",
            run,
          })),
    [subject, source === null, hasFigure],
  );
}

export function ExportMenu(props: {
  readonly source: ExportSource;
  readonly subject: string;
  readonly shell?: ExportShell | undefined;
}) {
  const { source, subject, shell } = props;
  const [failure, setFailure] = useState<string | null>(null);
  useExports(shell, subject, source);
  return (
    <>
      {failure !== null && (
        <span role="alert" class="quiet">
          {failure}
        </span>
      )}
      <Menu
        label={`Export ${subject}`}
        empty="Nothing to export."
        items={exportsOf(source, setFailure)}
      >
        <Icon name="download" />
      </Menu>
    </>
  );
}
