import type { ComponentChildren } from "preact";
import type { Labels, SwitchWord } from "../page_state";
import type { Changes, ViewProps } from "../view_props";

export type Option = readonly [
  value: string | number,
  label: string,
  group?: string | undefined,
];

/** Each group is placed where its first option is; null: none is chosen yet. */
export function Choice(props: {
  readonly label: string;
  readonly value: string | number | null;
  readonly onChange: (value: string) => void;
  readonly of: readonly (Option | string | number)[];
  readonly children?: ComponentChildren;
}) {
  const of = props.of.map((option): Option =>
    typeof option === "object" ? option : [option, String(option)],
  );
  const groups = [...new Set(of.map(([, , group]) => group))];
  return (
    <label>
      <span class="quiet">{props.label}</span>{" "}
      <select
        value={props.value ?? ""}
        onChange={(event) => props.onChange(event.currentTarget.value)}
      >
        {props.value === null && <option value="">–</option>}
        {groups.map((group) => {
          const own = of.filter((option) => option[2] === group);
          const options = own.map(([value, label]) => (
            <option key={value} value={value}>
              {label}
            </option>
          ));
          return group === undefined ? (
            options
          ) : (
            <optgroup key={group} label={group}>
              {options}
            </optgroup>
          );
        })}
        {props.children}
      </select>
    </label>
  );
}

export function Segmented<T extends string>(props: {
  readonly label: string;
  readonly title?: string;
  /** Default: all that have labels. */
  readonly options?: readonly T[];
  readonly chosen: T;
  readonly labels: Labels<T> | ((option: T) => Labels<T>[T]);
  readonly disabled?: (option: T) => boolean;
  readonly onChoose: (option: T) => void;
}) {
  const { labels, options = Object.keys(labels) as T[] } = props;
  return (
    <div class="segmented" role="group" aria-label={props.label}>
      {props.title !== undefined && <span class="quiet">{props.title}</span>}
      {options.map((option) => {
        const [text, hint] =
          typeof labels === "function" ? labels(option) : labels[option];
        return (
          <button
            key={option}
            type="button"
            class="button"
            aria-pressed={option === props.chosen}
            title={hint}
            disabled={props.disabled?.(option) === true}
            onClick={() => props.onChoose(option)}
          >
            {text}
          </button>
        );
      })}
    </div>
  );
}

/** Chooses a word of the URL; `leaves`: words that go with it. */
export function Switch<T extends string>(props: {
  readonly view: Pick<ViewProps, "params" | "setParams">;
  readonly of: SwitchWord<T>;
  readonly label: string;
  readonly title?: string;
  readonly disabled?: (option: T) => boolean;
  readonly leaves?: Changes | undefined;
}) {
  const { view, of, leaves, ...rest } = props;
  return (
    <Segmented
      {...rest}
      labels={of.labels}
      chosen={of.read(view.params)}
      onChoose={(option) => view.setParams({ ...of.write(option), ...leaves }, "push")}
    />
  );
}

export function Check(props: {
  readonly label: string;
  readonly note?: string | undefined;
  readonly checked: boolean;
  readonly onChange: () => void;
}) {
  return (
    <label class="row">
      <input type="checkbox" checked={props.checked} onChange={props.onChange} />
      <span>{props.label}</span>
      {props.note !== undefined && <span class="quiet">{props.note}</span>}
    </label>
  );
}

/** null: all rows. */
export function RowChoice(props: {
  readonly label: string;
  readonly names: readonly string[];
  readonly chosen: number | null;
  readonly onChoose: (row: number | null) => void;
}) {
  if (props.names.length < 2) return null;
  return (
    <Choice
      label={props.label}
      value={props.chosen?.toString() ?? ""}
      of={[["", "all"], ...props.names.map((name, row): Option => [row, name])]}
      onChange={(value) => props.onChoose(value === "" ? null : Number(value))}
    />
  );
}

export function TextButton(props: {
  readonly press: () => void;
  readonly title?: string;
  readonly children: ComponentChildren;
}) {
  return (
    <button type="button" class="text-button" title={props.title} onClick={props.press}>
      {props.children}
    </button>
  );
}

/** No tree of calls or modules is nested deeper. */
export const ALL_LEVELS = 64;

/** How many levels of a tree are open. */
export function DepthSelect(props: {
  readonly maxDepth: number;
  readonly chosen: number;
  readonly onChange: (depth: number) => void;
}) {
  const { maxDepth, chosen, onChange } = props;
  if (maxDepth === 0) return null;
  const levels = Array.from({ length: maxDepth }, (_, depth): Option => [
    depth,
    depth.toString(),
  ]);
  return (
    <Choice
      label="Depth"
      value={(chosen >= maxDepth ? ALL_LEVELS : chosen).toString()}
      of={[...levels, [ALL_LEVELS, "all"]]}
      onChange={(depth) => onChange(Number(depth))}
    />
  );
}
