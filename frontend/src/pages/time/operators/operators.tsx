import type { TableRows } from "../../../api/types.gen";
import { commandsOf, useCommands } from "../../../base/commands";
import { Switch } from "../../shared/controls/choices";
import { switched, text, usePageState } from "../../shared/page_state";
import type { ViewProps } from "../../shared/view_props";
import { columnOf } from "../../shared/table/columns";
import { ProfiledPage } from "../profiled/profiled_page";
import { MemoryTab } from "./memory/tab";
import { OperatorDetails } from "./time/details";

const WORDS = {
  tab: switched(
    "tab",
    {
      time: ["Time", "Calls and times on the host and on devices"],
      memory: ["Memory", "What operators allocated, when, and for how long"],
    },
    "time",
  ),
  operator: text("operator"),
  shapes: text("shapes"),
};

const BY = {
  name: ["Name", "One row per operator"],
  shapes: ["Name and shapes", "One row per operator and shapes of its inputs"],
  category: ["Category", "One row per kind of work on devices"],
} as const;
const UNCHOSEN = { operator: null, shapes: null };

export function OperatorsView(view: ViewProps) {
  const [{ tab, operator: name, shapes }, setState] = usePageState(view, WORDS);
  const close = (): void => view.setParams(UNCHOSEN);
  useCommands(tab === "time" ? view.commands : undefined, () =>
    commandsOf("operators", "Operators", [
      ["close", "Close the chosen operator", close, "Escape"],
    ]),
  );
  const tabs = (
    <Switch view={view} of={WORDS.tab} label="Operator view" leaves={{ sort: null }} />
  );
  if (tab === "memory") return <MemoryTab view={view} tabs={tabs} />;
  const textOf = (table: TableRows, key: string, row: number): string =>
    columnOf(table, key)?.texts[row] ?? "";
  return (
    <ProfiledPage
      view={view}
      route="operators"
      by={BY}
      search="Search operators"
      leaves={UNCHOSEN}
      tabs={tabs}
      isChosen={(table, row) =>
        name !== "" &&
        textOf(table, "name", row) === name &&
        textOf(table, "shapes", row) === shapes
      }
      onChoose={(table, row, by) =>
        by === "category"
          ? view.setParams({ by: null, text: textOf(table, "name", row) }, "push")
          : setState({
              operator: textOf(table, "name", row),
              shapes: textOf(table, "shapes", row),
            })
      }
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
