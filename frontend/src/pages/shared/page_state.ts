/**
 * URL state of a page, each word declared once: its name, parser, default and writer.
 */

import { useMemo } from "preact/hooks";
import type { Changes, ViewProps } from "./view_props";

export type Params = ReadonlyMap<string, string>;

export interface Word<T> {
  /** Malformed words count as absent. */
  read(params: Params): T;
  /** null removes a word: defaults are not written. */
  write(value: T): Changes;
}

type Schema = Readonly<Record<string, Word<unknown>>>;

export type PageState<S extends Schema> = {
  readonly [K in keyof S]: S[K] extends Word<infer T> ? T : never;
};

function word<T>(
  name: string,
  parse: (text: string) => T,
  write: (value: T) => string | null,
): Word<T> {
  return {
    read: (params) => parse(params.get(name) ?? ""),
    write: (value) => ({ [name]: write(value) }),
  };
}

export function text(name: string): Word<string> {
  return word(name, String, (value) => (value === "" ? null : value));
}

/** null where absent, as in queries. */
export function optional(name: string): Word<string | null> {
  return word<string | null>(
    name,
    (param) => (param === "" ? null : param),
    (value) => value,
  );
}

/** `usual` is the default. */
export function oneOf<T extends string, U extends T | null>(
  name: string,
  options: readonly T[],
  usual: U,
): Word<T | U> {
  return word<T | U>(
    name,
    (param) => options.find((option) => option === param) ?? usual,
    (value) => (value === usual ? null : value),
  );
}

/** The label and the hint of each option. */
export type Labels<T extends string> = Readonly<
  Record<T, readonly [label: string, hint: string]>
>;

export interface SwitchWord<T extends string> extends Word<T> {
  readonly labels: Labels<T>;
}

/** One of the options that have labels. */
export function switched<T extends string>(
  name: string,
  labels: Labels<T>,
  usual: NoInfer<T>,
): SwitchWord<T> {
  return { ...oneOf<T, T>(name, Object.keys(labels) as T[], usual), labels };
}

export function flag(name: string): Word<boolean> {
  return word(
    name,
    (param) => param === "1",
    (value) => (value ? "1" : null),
  );
}

/** An integer of at least `least`. */
export function whole(name: string, least = 0): Word<number | null> {
  return word<number | null>(
    name,
    (param) => (/^-?\d{1,12}$/.test(param) && +param >= least ? Number(param) : null),
    (value) => (value === null ? null : String(value)),
  );
}

/** `low` is the default and is not written. */
export function between(name: string, low: number, high: number): Word<number> {
  return word(
    name,
    (param) => {
      const value = Number.parseFloat(param);
      return value > low ? Math.min(value, high) : low;
    },
    (value) => (value > low ? String(value) : null),
  );
}

export function readState<S extends Schema>(schema: S, params: Params): PageState<S> {
  const read = Object.entries(schema).map(([key, stateWord]) => [
    key,
    stateWord.read(params),
  ]);
  return Object.fromEntries(read) as PageState<S>;
}

export function writeState<S extends Schema>(
  schema: S,
  changes: Partial<PageState<S>>,
): Changes {
  const written = Object.entries(changes).map(([key, value]) =>
    schema[key]?.write(value),
  );
  return Object.assign({}, ...written) as Changes;
}

/** "push": the back button undoes the change. */
export function usePageState<S extends Schema>(
  { params, setParams }: Pick<ViewProps, "params" | "setParams">,
  schema: S,
): readonly [
  PageState<S>,
  (changes: Partial<PageState<S>>, how?: "replace" | "push") => void,
] {
  const state = useMemo(() => readState(schema, params), [schema, params]);
  return [state, (changes, how) => setParams(writeState(schema, changes), how)];
}
