import type { TableRows } from "../../../api/types.gen";
import { commandsOf, useCommands } from "../../../base/commands";
import { Segmented } from "../../shared/controls/choices";
import { oneOf, usePageState } from "../../shared/page_state";
import type { ViewProps } from "../../shared/view_props";
import { columnOf } from "../profiled/answer_table";
import { ProfiledPage } from "../profiled/profiled_page";
import { MemoryTab } from "./memory/tab";
import { OperatorDetails } from "./time/details";

const PARTS = ["time", "memory"] as const;
const WORDS = { tab: oneOf("tab", PARTS, "time") };

const PART_WORDS = {
  time: ["Time", "Calls and times on the host and on devices"],
  memory: ["Memory", "What operators allocated, when, and for how long"],
} as const;

const OPTIONS = [
  ["name", "Name", "One row per operator"],
  ["shapes", "Name and shapes", "One row per operator and shapes of its inputs"],
] as const;
const UNCHOSEN = { operator: null, shapes: null };

export function OperatorsView(view: ViewProps) {
  const { params, setParams } = view;
  const [{ tab }] = usePageState(view, WORDS);
  const close = (): void => setParams(UNCHOSEN);
  useCommands(tab === "time" ? view.commands : undefined, () =>
    commandsOf("operators", "Operators", [
      ["close", "Close the chosen operator", close, "Escape"],
    ]),
  );
  const tabs = (
    <Segmented
      label="Operator view"
      options={PARTS}
      chosen={tab}
      words={(one) => PART_WORDS[one]}
      onChoose={(one) =>
        setParams({ tab: one === "time" ? null : one, sort: null }, "push")
      }
    />
  );
  const [name, shapes] = [params.get("operator") ?? "", params.get("shapes") ?? ""];
  const textsOf = (table: TableRows, row: number): readonly string[] =>
    ["name", "shapes"].map((key) => columnOf(table, key)?.texts[row] ?? "");
  if (tab === "memory") {
    return <MemoryTab view={view} tabs={tabs} />;
  }
  return (
    <ProfiledPage
      view={view}
      route="operators"
      options={OPTIONS}
      search="Search operators"
      leaves={UNCHOSEN}
      tabs={tabs}
      isChosen={(table, row) => {
        const [own, ownShapes] = textsOf(table, row);
        return name !== "" && own === name && ownShapes === shapes;
      }}
      onChoose={(table, row) => {
        const [operator = "", ownShapes = ""] = textsOf(table, row);
        setParams({ operator, shapes: ownShapes === "" ? null : ownShapes });
      }}
      inspector={(data) =>
        name !== "" && (
          <OperatorDetails
            key={`${name} ${shapes}`}
            view={view}
            answer={data}
            name={name}
            shapes={data.by === "shapes" ? shapes : null}
            close={close}
          />
        )
      }
    />
  );
}
