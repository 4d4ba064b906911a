/** The theme: as the page around us, unless the user chose one. */

import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import { readPreference, writePreference } from "../base/preferences";
import type { Theme } from "../base/tokens";
import type { HostPage } from "./host_page";
import type { ThemeChoice } from "./chrome/top_strip";

const CHOICES: readonly ThemeChoice[] = ["auto", "light", "dark"];

export interface ThemeState {
  readonly theme: Theme;
  readonly choice: ThemeChoice;
  readonly next: () => void;
}

export function useTheme(host: HostPage): ThemeState {
  const [choice, setChoice] = useState<ThemeChoice>(
    () => CHOICES.find((one) => one === readPreference("theme")) ?? "auto",
  );
  const [around, setAround] = useState(host.theme);
  useEffect(() => {
    const read = (): void => setAround(host.theme());
    // It may have changed between the first drawing and now.
    read();
    return host.onTheme(read);
  }, [host]);
  const theme = choice === "auto" ? around : choice;
  useLayoutEffect(() => {
    document.documentElement.dataset["theme"] = theme;
  }, [theme]);
  const next = (): void => {
    const following = CHOICES[(CHOICES.indexOf(choice) + 1) % CHOICES.length] ?? "auto";
    writePreference("theme", following);
    setChoice(following);
  };
  return { theme, choice, next };
}
