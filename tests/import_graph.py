"""Modules of both packages and what each imports: the graph, its circles and floors.

Imports are those of run time: at the top of modules and inside functions, without those
under TYPE_CHECKING, unless types are asked for (`from package import module` counts as
the module). A room is a package's own folder or module, such as `memboard.tb_plugin.facts`.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("collector", "tb_plugin")
INSTALLED = {
    "collector/": "memboard/collector/",
    "tb_plugin/": "memboard/tb_plugin/",
    ".package/": "",
}
"""Where a folder of the repository is installed."""


def module_name(path: Path) -> str:
    """Dotted, as it is installed: `memboard.collector.session`."""
    name = path.relative_to(ROOT).with_suffix("").as_posix()
    for folder, place in INSTALLED.items():
        if name.startswith(folder):
            name = place + name.removeprefix(folder)
            break
    return ".".join(part for part in name.split("/") if part != "__init__")


@dataclass(frozen=True)
class Import:
    """One module imports another."""

    source: str
    target: str


@cache
def modules() -> dict[str, Path]:
    """By dotted name: every module of both packages, and of the one around them."""
    package = ROOT / ".package"
    paths = [*package.glob("*.py"), *package.glob("memboard/*.py")]
    for folder in PACKAGES:
        paths += (ROOT / folder).rglob("*.py")
    return {module_name(path): path for path in sorted(paths)}


@cache
def tree_of(path: Path) -> ast.Module:
    """A file, parsed."""
    return ast.parse(path.read_text(encoding="utf-8"))


def is_typing(node: ast.AST) -> bool:
    """Whether it is `if TYPE_CHECKING`."""
    if not isinstance(node, ast.If):
        return False
    test = node.test
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")
    return name == "TYPE_CHECKING"


def statements(
    node: ast.AST, *, with_types: bool
) -> Iterator[ast.Import | ast.ImportFrom]:
    """Import statements, those in functions too; of run time alone or with types."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.Import, ast.ImportFrom)):
            yield child
        elif is_typing(child) and not with_types:
            assert isinstance(child, ast.If)
            for other in child.orelse:
                yield from statements(other, with_types=with_types)
        else:
            yield from statements(child, with_types=with_types)


@cache
def imports(*, with_types: bool = False) -> tuple[Import, ...]:
    """Every import of one of our modules by another, one entry per statement's module."""
    ours = modules()
    edges = []
    for source, path in ours.items():
        for statement in statements(tree_of(path), with_types=with_types):
            if isinstance(statement, ast.Import):
                targets = [alias.name for alias in statement.names]
            else:
                base = statement.module or ""
                inner = [f"{base}.{alias.name}" for alias in statement.names]
                targets = [target if target in ours else base for target in inner]
            edges += [
                Import(source, target)
                for target in dict.fromkeys(targets)
                if target in ours and target != source
            ]
    return tuple(edges)


def module(name: str) -> str:
    """A module, as itself."""
    return name


def room(name: str) -> str:
    """The folder or module of its package that a module belongs to."""
    return ".".join(name.split(".")[:3])


def circles(
    level: Callable[[str], str], *, with_types: bool = False
) -> list[list[str]]:
    """Groups of modules or rooms that import one another."""
    graph = graph_of(level, with_types=with_types)
    return [group for group in components(graph) if len(group) > 1]


def graph_of(
    level: Callable[[str], str], package: str = "", *, with_types: bool = False
) -> dict[str, set[str]]:
    """By module or room: what it imports; of one package alone where one is named."""
    graph: dict[str, set[str]] = {
        level(name): set() for name in modules() if name.startswith(package)
    }
    for edge in imports(with_types=with_types):
        source, target = level(edge.source), level(edge.target)
        if source != target and source in graph and target in graph:
            graph[source].add(target)
    return graph


def components(graph: dict[str, set[str]]) -> list[list[str]]:
    """Strongly connected ones, what is imported first (Tarjan, without recursion)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    groups: list[list[str]] = []
    for root, beside in graph.items():
        if root in index:
            continue
        work = [(root, iter(sorted(beside)))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, rest = work[-1]
            for target in rest:
                if target not in index:
                    index[target] = low[target] = len(index)
                    stack.append(target)
                    on_stack.add(target)
                    work.append((target, iter(sorted(graph[target]))))
                    break
                if target in on_stack:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    first = stack.index(node)
                    groups.append(stack[first:])
                    on_stack.difference_update(stack[first:])
                    del stack[first:]
    return groups


def floors(package: str, level: Callable[[str], str]) -> int:
    """The longest chain of imports inside a package, each circle taken as one."""
    graph = graph_of(level, package)
    groups = components(graph)
    group_of = {name: number for number, group in enumerate(groups) for name in group}
    height = [0] * len(groups)
    for number, group in enumerate(groups):  # what is imported comes first
        below = {group_of[target] for name in group for target in graph[name]}
        below.discard(number)
        height[number] = 1 + max((height[lower] for lower in below), default=0)
    return max(height, default=0)


def imports_between(source: str, target: str) -> int:
    """Modules below one prefix that import one below another, each pair once."""
    return len(
        {
            (edge.source, edge.target)
            for edge in imports()
            if edge.source.startswith(source) and edge.target.startswith(target)
        }
    )
