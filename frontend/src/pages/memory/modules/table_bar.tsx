/** Above the module table: tree or list, depth, search, export. */

import type { ModulesResponse } from "../../../api/types.gen";
import { formatInteger } from "../../../base/bytes";
import { ExportMenu } from "../../../widgets/export/export_menu";
import { moduleExport } from "./commands";
import { ALL_LEVELS, FIRST_DEPTH, type ModulesParams } from "./params";
import type { Modules } from "./rows";
import { baselineWords, STATE_WORDS } from "./words";

export interface TableBarProps {
  readonly data: ModulesResponse;
  readonly modules: Modules;
  readonly params: ModulesParams;
  readonly setParams: (changes: Readonly<Record<string, string | null>>) => void;
  readonly numRows: number;
  readonly findBox: { current: HTMLInputElement | null };
}

export function TableBar(props: TableBarProps) {
  const { data, modules, params, setParams } = props;
  return (
    <div class="panel-head modules-bar">
      <h2>{headline(data)}</h2>
      <div class="segmented" role="group" aria-label="Tree or list">
        {[false, true].map((flat) => (
          <button
            key={String(flat)}
            type="button"
            class="button"
            aria-pressed={params.flat === flat}
            onClick={() => setParams({ flat: flat ? "1" : null, depth: null })}
          >
            {flat ? "List" : "Tree"}
          </button>
        ))}
      </div>
      <DepthSelect
        maxDepth={modules.tree.maxDepth}
        chosen={params.depth ?? (params.flat ? ALL_LEVELS : FIRST_DEPTH)}
        setParams={setParams}
      />
      <input
        ref={props.findBox}
        type="text"
        class="modules-find"
        aria-label="Find modules by name or type"
        placeholder="Find modules"
        autocomplete="off"
        spellcheck={false}
        value={params.find}
        onInput={(event) => setParams({ find: event.currentTarget.value })}
      />
      <span class="quiet" role="status">
        {count(params, modules, props.numRows)}
      </span>
      <ExportMenu
        subject="the module table"
        source={moduleExport(data, modules, params)}
      />
    </div>
  );
}

function headline(data: ModulesResponse): string {
  const at = `Modules: ${STATE_WORDS[data.state]}`;
  if (data.baseline === null) return at;
  return `${at}, less ${baselineWords(data.baseline, data.windows)}`;
}

function count(params: ModulesParams, modules: Modules, numRows: number): string {
  const all = modules.tree.numNodes;
  if (params.flat || params.find !== "") {
    return `${formatInteger(numRows)} of ${formatInteger(all)} modules`;
  }
  return all === 1 ? "1 module" : `${formatInteger(all)} modules`;
}

export function DepthSelect(
  props: Pick<TableBarProps, "setParams"> & {
    readonly maxDepth: number;
    readonly chosen: number;
  },
) {
  const { maxDepth, chosen, setParams } = props;
  if (maxDepth === 0) return null;
  return (
    <label>
      <span class="quiet">Depth</span>{" "}
      <select
        value={chosen >= maxDepth ? "all" : chosen.toString()}
        onChange={(event) => setParams({ depth: event.currentTarget.value })}
      >
        {Array.from({ length: maxDepth }, (_, depth) => (
          <option key={depth} value={depth}>
            {depth}
          </option>
        ))}
        <option value="all">all</option>
      </select>
    </label>
  );
}
