/** The bar above a long table of a trace: which trace, what a row is, how many, which. */

import type { ComponentChildren } from "preact";
import { Segmented } from "../../shared/controls/choices";
import { SearchBox } from "../../shared/controls/search_box";
import { TopChoice } from "./top_choice";
import type { ViewProps } from "../../shared/view_props";

/** What a table of this bar is asked by; the route's words. */
export function profiledQuery(view: ViewProps, by: string) {
  const text = view.params.get("text") ?? "";
  return {
    run: view.run.id,
    rank: view.ranks.rank,
    source: view.params.get("source") ?? null,
    by,
    text: text === "" ? null : text,
  };
}

export function ProfiledBar<By extends string>(props: {
  readonly view: ViewProps;
  /** What a row may be; the first is the usual one. */
  readonly options: readonly By[];
  readonly by: By;
  readonly words: Readonly<Record<By, readonly [text: string, hint: string]>>;
  /** What else leaves the URL with the choice of a row. */
  readonly leaves: Readonly<Record<string, null>>;
  readonly searchLabel: string;
  /** Stands first. */
  readonly children: ComponentChildren;
}) {
  const { view } = props;
  return (
    <div class="trace-bar">
      {props.children}
      <Segmented
        label="What a row is"
        options={props.options}
        chosen={props.by}
        words={(option) => props.words[option]}
        onChoose={(option) => {
          const by = option === props.options[0] ? null : option;
          view.setParams({ by, ...props.leaves }, "push");
        }}
      />
      <TopChoice view={view} />
      <SearchBox
        label={props.searchLabel}
        text={view.params.get("text") ?? ""}
        onText={(value) => view.setParams({ text: value === "" ? null : value })}
        commands={view.commands}
      />
    </div>
  );
}
