/** The top strip: where one is, and what holds for every page. */

import type { RunSummary } from "../../api/types.gen";
import { BYTE_UNITS, isByteUnit, type ByteUnit } from "../../base/bytes";
import type { RankChoice } from "../../pages/shared/rank_choice";
import { Icon } from "../../widgets/icon/icon";
import { Menu, type MenuItem } from "../../widgets/menu/menu";
import { unrealNote } from "../../model/words/origin";
import { type Tab, tabsOf } from "../pages";

export type ThemeChoice = "auto" | "light" | "dark";

export interface TopStripProps {
  readonly run: RunSummary | null;
  readonly tab: Tab;
  readonly chooseTab: (name: string) => void;
  readonly choice: RankChoice;
  readonly chooseRank: (rank: number | null) => void;
  /** The next rank that exists; null at the end or where no rank is chosen. */
  readonly neighbours: {
    readonly before: number | null;
    readonly after: number | null;
  };
  readonly clearFilter: () => void;
  readonly byteUnit: ByteUnit;
  readonly setByteUnit: (unit: ByteUnit) => void;
  readonly themeChoice: ThemeChoice;
  readonly nextTheme: () => void;
  readonly exports: readonly MenuItem[];
  readonly exportOpened: number;
  readonly copyLink: () => void;
  readonly showHelp: () => void;
  readonly toggleRail: () => void;
}

const THEME_ICONS = { auto: "auto", light: "sun", dark: "moon" } as const;
const THEME_WORDS = { auto: "as TensorBoard", light: "light", dark: "dark" } as const;

export function TopStrip(props: TopStripProps) {
  const themeLabel = `Theme: ${THEME_WORDS[props.themeChoice]}`;
  return (
    <header class="top-strip">
      <button
        type="button"
        class="icon-button"
        aria-label="Show or hide the rail"
        title="Show or hide the rail"
        onClick={props.toggleRail}
      >
        <Icon name="rail" />
      </button>
      <Crumbs {...props} />
      <label class="unit-switch">
        <span class="off-screen">Unit of sizes</span>
        <select
          title="Unit of sizes"
          value={props.byteUnit}
          onChange={(event) => {
            const unit = event.currentTarget.value;
            if (isByteUnit(unit)) props.setByteUnit(unit);
          }}
        >
          {BYTE_UNITS.map((unit) => (
            <option key={unit} value={unit}>
              {unit === "auto" ? "Auto unit" : unit}
            </option>
          ))}
        </select>
      </label>
      <Button
        icon={THEME_ICONS[props.themeChoice]}
        label={themeLabel}
        run={props.nextTheme}
      />
      <Button icon="link" label="Copy link (C)" run={props.copyLink} />
      <Menu
        label="Export (E)"
        items={props.exports}
        opened={props.exportOpened}
        empty="This page has nothing to export yet."
      >
        <Icon name="download" />
      </Menu>
      <Button icon="help" label="Keyboard and help (?)" run={props.showHelp} />
    </header>
  );
}

function Button(props: {
  readonly icon: Parameters<typeof Icon>[0]["name"];
  readonly label: string;
  readonly run: () => void;
}) {
  return (
    <button
      type="button"
      class="icon-button"
      aria-label={props.label}
      title={props.label}
      onClick={props.run}
    >
      <Icon name={props.icon} />
    </button>
  );
}

function Crumbs(props: TopStripProps) {
  const { choice, neighbours, run } = props;
  const note = run === null ? null : unrealNote(run);
  return (
    <div class="crumbs">
      {props.run !== null && (
        <>
          <span class="crumb-run" title={props.run.name}>
            {props.run.name}
          </span>
          <span class="quiet" aria-hidden="true">
            /
          </span>
        </>
      )}
      <h1>{props.tab.page}</h1>
      <Tabs {...props} />
      {note !== null && (
        <span class="unreal" title={note[1]}>
          <Icon name="info" sizePx={14} />
          {note[0]}
        </span>
      )}
      {choice.rank !== null && (
        <span class="rank-chip">
          <Step to={neighbours.before} icon="left" word="Previous" {...props} />
          <span>rank {choice.rank}</span>
          <Step to={neighbours.after} icon="right" word="Next" {...props} />
          <button
            type="button"
            aria-label="Show all ranks"
            title="Show all ranks"
            onClick={() => props.chooseRank(null)}
          >
            <Icon name="cross" sizePx={12} />
          </button>
        </span>
      )}
      {choice.rank === null && choice.filter !== "" && (
        <span class="rank-chip">
          <span class="rank-chip-text" title={`ranks ${choice.filter}`}>
            ranks {choice.filter}
          </span>
          <button
            type="button"
            aria-label="Draw all ranks"
            title="Draw all ranks"
            onClick={props.clearFilter}
          >
            <Icon name="cross" sizePx={12} />
          </button>
        </span>
      )}
    </div>
  );
}

function Tabs({ tab, chooseTab }: TopStripProps) {
  const tabs = tabsOf(tab.page);
  if (tabs.length < 2) return null;
  return (
    <nav class="tabs" aria-label={`Tabs of ${tab.page}`}>
      {tabs.map((one) => (
        <button
          key={one.name}
          type="button"
          aria-current={one === tab ? "page" : undefined}
          onClick={() => chooseTab(one.name)}
        >
          {one.title}
        </button>
      ))}
    </nav>
  );
}

function Step(props: {
  readonly to: number | null;
  readonly icon: "left" | "right";
  readonly word: string;
  readonly chooseRank: (rank: number | null) => void;
}) {
  const label = `${props.word} rank`;
  return (
    <button
      type="button"
      disabled={props.to === null}
      aria-label={label}
      title={props.to === null ? label : `${label}: ${props.to}`}
      onClick={() => props.chooseRank(props.to)}
    >
      <Icon name={props.icon} sizePx={12} />
    </button>
  );
}
