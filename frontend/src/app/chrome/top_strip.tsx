/** The top strip: where one is, and what holds for every page. */

import { BYTE_UNITS, isByteUnit } from "../../base/bytes";
import { unrealNote } from "../../model/words/origin";
import { Icon, type IconName } from "../../widgets/icon/icon";
import { Menu } from "../../widgets/menu/menu";
import { tabsOf } from "../pages";
import type { Shell } from "../shell";

interface ShellProps {
  readonly shell: Shell;
}

const THEME_LOOKS = {
  auto: ["auto", "as TensorBoard"],
  light: ["sun", "light"],
  dark: ["moon", "dark"],
} as const;

export function TopStrip({ shell }: ShellProps) {
  const { run, tab, place, go } = shell;
  const [themeIcon, themeWord] = THEME_LOOKS[shell.themeChoice];
  const note = run === null ? null : unrealNote(run);
  const exports = shell.commands.all.value.filter((one) => one.group === "Export");
  return (
    <header class="top-strip">
      <Button icon="rail" label="Show or hide the rail" press={shell.toggleRail} />
      <div class="crumbs">
        {run !== null && (
          <span class="quiet cut" title={run.name}>
            {run.name}
          </span>
        )}
        <h1>{tab.page}</h1>
        <Tabs shell={shell} />
        {note !== null && (
          <span class="unreal" title={note.join(": ")}>
            <Icon name="info" sizePx={14} />
            <span>{note[0]}</span>
          </span>
        )}
        <RankChip shell={shell} />
      </div>
      <label>
        <span class="off-screen">Unit of sizes</span>
        <select
          title="Unit of sizes"
          value={place.unit}
          onChange={(event) => {
            const unit = event.currentTarget.value;
            if (isByteUnit(unit)) go({ unit }, "replace");
          }}
        >
          {BYTE_UNITS.map((unit) => (
            <option key={unit} value={unit}>
              {unit === "auto" ? "Auto unit" : unit}
            </option>
          ))}
        </select>
      </label>
      <Button icon={themeIcon} label={`Theme: ${themeWord}`} press={shell.nextTheme} />
      <Button icon="link" label="Copy link (C)" press={shell.copyLink} />
      <Menu
        id="export"
        label="Export (E)"
        items={exports}
        empty="This page has nothing to export yet."
      >
        <Icon name="download" />
      </Menu>
      <Button
        icon="help"
        label="Keyboard and help (?)"
        press={() => shell.setOverlay("help")}
      />
    </header>
  );
}

function Tabs({ shell }: ShellProps) {
  const tabs = tabsOf(shell.tab.page);
  if (tabs.length < 2) return null;
  return (
    <nav class="tabs" aria-label={`Tabs of ${shell.tab.page}`}>
      {tabs.map((one) => {
        const absent = shell.empty.find(({ tab }) => tab === one.name);
        return (
          <button
            key={one.name}
            type="button"
            class={absent && "is-empty"}
            title={absent && `${absent.missing}. ${absent.how}`}
            aria-current={one === shell.tab ? "page" : undefined}
            onClick={() => shell.go({ view: one.name })}
          >
            {one.title}
          </button>
        );
      })}
    </nav>
  );
}

/** What all pages are narrowed to: a rank, with its neighbours, or some ranks. */
function RankChip({ shell }: ShellProps) {
  const { place, neighbours, go, chooseRank } = shell;
  const { rank, ranks } = place;
  if (rank === null && ranks === "") return null;
  const step = (to: number | null, icon: IconName, label: string) => (
    <Button
      icon={icon}
      label={to === null ? label : `${label}: ${to}`}
      disabled={to === null}
      press={() => chooseRank(to)}
    />
  );
  const text = rank === null ? `ranks ${ranks}` : `rank ${rank}`;
  return (
    <span class="rank-chip">
      {rank !== null && step(neighbours.before, "left", "Previous rank")}
      <span class="cut" title={text}>
        {text}
      </span>
      {rank !== null && step(neighbours.after, "right", "Next rank")}
      <Button
        icon="cross"
        label="Show all ranks"
        press={() => go(rank === null ? { ranks: "" } : { rank: null })}
      />
    </span>
  );
}

function Button(props: {
  readonly icon: IconName;
  readonly label: string;
  readonly press: () => void;
  readonly disabled?: boolean;
}) {
  return (
    <button
      type="button"
      class="icon-button"
      disabled={props.disabled}
      aria-label={props.label}
      title={props.label}
      onClick={props.press}
    >
      <Icon name={props.icon} />
    </button>
  );
}
