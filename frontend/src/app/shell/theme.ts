import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import { readPreference, writePreference } from "../../base/browser";
import type { Theme } from "../../base/tokens";
import type { HostPage } from "../host_page";

const THEMES = ["auto", "light", "dark"] as const;

/** Outlives the page; `usual` where nothing was chosen. */
export function usePreference(name: string, usual: () => string) {
  const [value, setValue] = useState(() => readPreference(name) ?? usual());
  const set = (next: string): void => {
    writePreference(name, next);
    setValue(next);
  };
  return [value, set] as const;
}

/** As the page around ours, unless the user chose one. */
export function useTheme(host: HostPage) {
  const [kept, keep] = usePreference("theme", () => "auto");
  const themeChoice = THEMES.find((option) => option === kept) ?? "auto";
  const [around, setAround] = useState(host.theme);
  useEffect(() => {
    const read = (): void => setAround(host.theme());
    // It may have changed between the first render and now.
    read();
    return host.onTheme(read);
  }, [host]);
  const theme: Theme = themeChoice === "auto" ? around : themeChoice;
  useLayoutEffect(() => {
    document.documentElement.dataset["theme"] = theme;
  }, [theme]);
  const nextTheme = (): void =>
    keep(THEMES[(THEMES.indexOf(themeChoice) + 1) % THEMES.length] ?? "auto");
  return { theme, themeChoice, nextTheme };
}
