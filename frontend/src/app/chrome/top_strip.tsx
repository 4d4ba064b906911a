import { BYTE_UNITS } from "../../base/bytes";
import { unrealNote } from "../../model/words/origin";
import { Icon, IconButton, type IconName } from "../../widgets/icon/icon";
import { Menu } from "../../widgets/menu/menu";
import { tabsOf } from "../pages";
import type { Shell } from "../shell/shell";

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
      <IconButton
        large
        icon="rail"
        label="Show or hide the rail"
        onClick={shell.toggleRail}
      />
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
            const { selectedIndex } = event.currentTarget;
            go({ unit: BYTE_UNITS[selectedIndex] ?? "auto" }, "replace");
          }}
        >
          {BYTE_UNITS.map((unit) => (
            <option key={unit} value={unit}>
              {unit === "auto" ? "Auto unit" : unit}
            </option>
          ))}
        </select>
      </label>
      <IconButton
        large
        icon={themeIcon}
        label={`Theme: ${themeWord}`}
        onClick={shell.nextTheme}
      />
      <IconButton large icon="link" label="Copy link (C)" onClick={shell.copyLink} />
      <Menu
        id="export"
        label="Export (E)"
        items={exports}
        empty="This page has nothing to export yet."
      >
        <Icon name="download" />
      </Menu>
      <IconButton
        large
        icon="help"
        label="Keyboard and help (?)"
        onClick={() => shell.setOverlay("help")}
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

function RankChip({ shell }: ShellProps) {
  const { place, neighbours, go, chooseRank } = shell;
  const { rank, ranks } = place;
  if (rank === null && ranks === "") return null;
  const step = (to: number | null, icon: IconName, label: string) => (
    <IconButton
      large
      icon={icon}
      label={to === null ? label : `${label}: ${to}`}
      disabled={to === null}
      onClick={() => chooseRank(to)}
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
      <IconButton
        large
        icon="cross"
        label="Show all ranks"
        onClick={() => go(rank === null ? { ranks: "" } : { rank: null })}
      />
    </span>
  );
}
