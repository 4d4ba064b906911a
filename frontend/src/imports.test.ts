import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { preProcessFile } from "typescript";
import { expect, it } from "vitest";

const SRC = import.meta.dirname;

function sources(): readonly string[] {
  return readdirSync(SRC, { recursive: true, encoding: "utf8" }).filter((path) =>
    /\.tsx?$/.test(path),
  );
}

/** By file: those that it imports, be it only for types. */
function importGraph(): ReadonlyMap<string, readonly string[]> {
  const paths = new Set(sources());
  const graph = new Map<string, readonly string[]>();
  for (const path of paths) {
    const { importedFiles } = preProcessFile(readFileSync(join(SRC, path), "utf8"));
    const targets = importedFiles.flatMap(({ fileName }) => {
      const target = normalize(join(dirname(path), fileName));
      return [`${target}.ts`, `${target}.tsx`].filter((file) => paths.has(file));
    });
    graph.set(path, targets);
  }
  return graph;
}

/** Of each circle one: the files in the order in which they import one another. */
function circles(
  graph: ReadonlyMap<string, readonly string[]>,
): readonly (readonly string[])[] {
  const done = new Set<string>();
  const circles: (readonly string[])[] = [];
  const visit = (file: string, way: readonly string[]): void => {
    const start = way.indexOf(file);
    if (start >= 0) circles.push([...way.slice(start), file]);
    if (start >= 0 || done.has(file)) return;
    for (const target of graph.get(file) ?? []) visit(target, [...way, file]);
    done.add(file);
  };
  for (const file of graph.keys()) visit(file, []);
  return circles;
}

it("no files import one another in a circle, not even for types", () => {
  const graph = importGraph();
  expect(graph.get("app/app.tsx")).toContain("app/shell/shell.ts");
  expect(circles(graph)).toEqual([]);
});

it("a circle is found", () => {
  const graph = new Map([
    ["a", ["b"]],
    ["b", ["c"]],
    ["c", ["b", "d"]],
    ["d", []],
  ]);
  expect(circles(graph)).toEqual([["b", "c", "b"]]);
});
