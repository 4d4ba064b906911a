/** Names from the root down: what a link or an export calls a module. */
export function modulePaths(
  names: readonly string[],
  parent: ArrayLike<number>,
): readonly string[] {
  const paths: string[] = [];
  names.forEach((name, id) => {
    const above = paths[parent[id] ?? -1];
    // Lightning names a module by its whole path.
    const isWhole = above === undefined || name.startsWith(`${above}.`);
    paths.push(isWhole ? name : `${above} / ${name}`);
  });
  return paths;
}
