import { BYTE_UNITS } from "../../base/bytes";
import { unrealNote } from "../../model/words/origin";
import { Icon, IconButton, type IconName } from "../../widgets/icon/icon";
import { Menu } from "../../widgets/menu/menu";
import { tabsOf, type Tab } from "../pages";
import type { Shell } from "../shell/shell";

const THEME_LOOKS = {
  auto: ["auto", "as TensorBoard"],
  light: ["sun", "light"],
  dark: ["moon", "dark"],
} as const;

type StripProps = Omit<Shell, "message" | "view">;

export function TopStrip(props: StripProps) {
  const { address, openRun, look, commands } = props;
  const { place, go } = address;
  const { run } = openRun;
  const { tab } = props.pages;
  const [themeIcon, themeWord] = THEME_LOOKS[look.themeChoice];
  const note = run === null ? null : unrealNote(run);
  const exports = commands.all.value.filter((command) => command.group === "Export");
  return (
    <header class="top-strip">
      <IconButton
        large
        icon="rail"
        label="Show or hide the rail"
        onClick={look.toggleRail}
      />
      <div class="crumbs">
        {run !== null && (
          <span class="quiet cut" title={run.name}>
            {run.name}
          </span>
        )}
        <h1>{tab.page}</h1>
        <Tabs tab={tab} openRun={openRun} go={go} />
        {note !== null && (
          <span class="unreal" title={note.join(": ")}>
            <Icon name="info" sizePx={14} />
            <span>{note[0]}</span>
          </span>
        )}
        <RankChip address={address} openRun={openRun} />
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
        onClick={look.nextTheme}
      />
      <IconButton large icon="link" label="Copy link (C)" onClick={props.copyLink} />
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
        onClick={() => props.overlays.setOverlay("help")}
      />
    </header>
  );
}

function Tabs(props: {
  readonly tab: Tab;
  readonly openRun: Shell["openRun"];
  readonly go: Shell["address"]["go"];
}) {
  const { tab: shown, openRun, go } = props;
  const tabs = tabsOf(shown.page);
  if (tabs.length < 2) return null;
  return (
    <nav class="tabs" aria-label={`Tabs of ${shown.page}`}>
      {tabs.map((tab) => {
        const absent = openRun.empty.find((empty) => empty.tab === tab.name);
        return (
          <button
            key={tab.name}
            type="button"
            class={absent && "is-empty"}
            title={absent && `${absent.missing}. ${absent.how}`}
            aria-current={tab === shown ? "page" : undefined}
            onClick={() => go({ view: tab.name })}
          >
            {tab.title}
          </button>
        );
      })}
    </nav>
  );
}

function RankChip({ address, openRun }: Pick<Shell, "address" | "openRun">) {
  const { place, go, chooseRank } = address;
  const { neighbours } = openRun;
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
