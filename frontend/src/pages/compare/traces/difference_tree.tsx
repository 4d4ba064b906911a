import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { TableRows } from "../../../api/types.gen";
import { Tree } from "../../../model/tree";
import type { RowColumn } from "../../../widgets/row_table/columns";
import { DepthSelect } from "../../shared/controls/choices";
import { SearchBox } from "../../shared/controls/search_box";
import { TreeTable } from "../../shared/table/answer_table";
import type { PartProps } from "../params";

const NAME_PX = 280;
const FIRST_DEPTH = 3;

/** Names with those of the rows around them, which come before. */
export function pathsOf(parent: Int32Array, names: readonly string[]): string[] {
  const paths: string[] = [];
  names.forEach((name, row) => {
    const around = paths[parent[row] ?? -1];
    paths.push(around === undefined ? name : `${around} / ${name}`);
  });
  return paths;
}

/** Rows below rows: calls or modules of both traces, each at its place. */
export function DifferenceTree(
  props: PartProps & {
    readonly table: TableRows;
    readonly parent: Int32Array;
    readonly heightPx: number;
    readonly about: Readonly<Record<string, unknown>>;
    readonly children: ComponentChildren;
  },
) {
  const { view, table, parent, params, change, children, heightPx, about } = props;
  const [depth, setDepth] = useState(FIRST_DEPTH);
  const [selected, setSelected] = useState<number | null>(null);
  const tree = useMemo(() => new Tree(parent), [parent]);
  const [named, ...columns] = table.columns;
  const names = named?.texts ?? [];
  const paths = useMemo(() => pathsOf(parent, names), [parent, names]);
  const before = useMemo((): readonly RowColumn[] => {
    const column: RowColumn = {
      key: named?.key ?? "",
      title: named?.title ?? "",
      numeric: false,
      isTree: true,
      width: `minmax(${NAME_PX}px, 3fr)`,
      values: names,
      exported: { name: named?.key ?? "", values: paths },
      cell: (row) => ({ text: names[row] ?? "", title: paths[row] ?? "" }),
    };
    return [column];
  }, [named, paths]);
  const numbers = useMemo(() => ({ ...table, columns }), [table]);
  return (
    <TreeTable
      view={view}
      table={numbers}
      before={before}
      word="sort"
      tree={tree}
      names={paths}
      texts={names}
      find={params.find}
      depth={depth}
      selected={selected}
      onSelect={setSelected}
      heightPx={heightPx}
      about={about}
      shell={view}
      head={
        <>
          {children}
          <DepthSelect maxDepth={tree.maxDepth} chosen={depth} onChange={setDepth} />
          <SearchBox
            label="Find in the table"
            text={params.find}
            onText={(find) => change({ find })}
            commands={view.commands}
          />
        </>
      }
    />
  );
}
