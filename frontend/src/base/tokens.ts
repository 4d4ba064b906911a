/** Canvases cannot read custom properties cheaply; a test compares the style sheet. */

export type Theme = "light" | "dark";

const LIGHT = {
  bg: "#ffffff",
  surface: "#fafafa",
  border: "#ebebeb",
  /** Lines behind data: fainter than borders, or they compete with it. */
  grid: "#ebebeb",
  text: "#212121",
  secondary: "#616161",
  link: "#1568bd",
  bad: "#c62828",
  warn: "#a36100",
  ok: "#2e7d32",
};

export type Tokens = Readonly<typeof LIGHT>;

const DARK: Tokens = {
  bg: "#303030",
  surface: "#3a3a3a",
  border: "#555555",
  grid: "#444444",
  text: "#ffffff",
  secondary: "#bdbdbd",
  link: "#64b5f6",
  bad: "#ef9a9a",
  warn: "#ffcc80",
  ok: "#a5d6a7",
};

export function tokens(theme: Theme): Tokens {
  return theme === "dark" ? DARK : LIGHT;
}
