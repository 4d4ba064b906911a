"""The house beside its goals: python tests/house.py.

Prints a table; exits 1 where modules or rooms import in circles, where an import goes up
(collector to plugin, facts or server to pages), where a literal tuple is splatted or a
docstring has four words at most, or where a part of a page cannot be found by the page's
name. Imports are those of run time: at the top of modules and inside functions, without
those under TYPE_CHECKING (`from package import module` counts as the module); circles
"with types" count those too. A room is a package's own folder or module, such as
`memboard.tb_plugin.facts`.

Lines are not counted against anybody: what counts is how many places a change touches.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.empty_names import empty_names  # noqa: E402  # needs the path
from tests.walks import walks  # noqa: E402  # needs the path

PACKAGES = ("collector", "tb_plugin")
PARTS = {
    "answer": "tb_plugin/pages",
    "contract": "tb_plugin/api",
    "page": "frontend/src/pages",
    "tests of its answers": "tests",
}
"""What each page has: a file or folder of its name below each of these."""
PAGES = "frontend/src/app/pages.ts"
GENERATED = re.compile(r"\.gen\.ts$|/static/|/node_modules/|/answers/|/recorded/")
SOURCES = {
    "collector": ("*.py", "*.c", "*.h"),
    "tb_plugin": ("*.py",),
    "frontend/src": ("*.ts", "*.tsx", "*.css"),
    "tests": ("*.py", "*.sh"),
}
FRONTEND_TEST = re.compile(r"\.test\.tsx?$|/test_[a-z_]+\.tsx?$")
BROAD = frozenset(("Exception", "BaseException"))
FIELDS_OF_A_PAIR = 4
WRITTEN_BY_US = "\nWritten by `python -m memboard."
SHARE_OF_A_PAIR = 0.6
"""Classes with so many fields are a pair where each shares so much with the other."""

INSTALLED = {
    "collector/": "memboard/collector/",
    "tb_plugin/": "memboard/tb_plugin/",
}
"""Where a folder of the repository is installed."""


def module_name(path: Path) -> str:
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


def files_of(area: str) -> Iterator[Path]:
    """Sources below an area, generated ones apart."""
    for pattern in SOURCES[area]:
        for path in sorted((ROOT / area).rglob(pattern)):
            if not GENERATED.search(path.as_posix()):
                yield path


@cache
def lines_of(path: Path) -> int:
    """How many lines a file has."""
    return len(path.read_bytes().splitlines())


def lines(area: str, *, tests: bool | None = None) -> int:
    """Lines of an area; of the frontend with or without its tests."""
    return sum(
        lines_of(path)
        for path in files_of(area)
        if tests is None or tests == bool(FRONTEND_TEST.search(path.as_posix()))
    )


@cache
def modules() -> dict[str, Path]:
    """By dotted name: every module of both packages."""
    found = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            found[module_name(path)] = path
    return found


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
    known = modules()
    found = []
    for source, path in known.items():
        for statement in statements(tree_of(path), with_types=with_types):
            if isinstance(statement, ast.Import):
                targets = [alias.name for alias in statement.names]
            else:
                base = statement.module or ""
                inner = [f"{base}.{alias.name}" for alias in statement.names]
                targets = [name if name in known else base for name in inner]
            found += [
                Import(source, target)
                for target in dict.fromkeys(targets)
                if target in known and target != source
            ]
    return tuple(found)


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
    for one in imports(with_types=with_types):
        source, target = level(one.source), level(one.target)
        if source != target and source in graph and target in graph:
            graph[source].add(target)
    return graph


def components(graph: dict[str, set[str]]) -> list[list[str]]:
    """Strongly connected ones, what is imported first (Tarjan, without recursion)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    found: list[list[str]] = []
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
                    at = stack.index(node)
                    found.append(stack[at:])
                    on_stack.difference_update(stack[at:])
                    del stack[at:]
    return found


def floors(package: str, level: Callable[[str], str]) -> int:
    """The longest chain of imports inside a package, each circle taken as one."""
    graph = graph_of(level, package)
    groups = components(graph)
    of = {name: number for number, group in enumerate(groups) for name in group}
    height = [0] * len(groups)
    for number, group in enumerate(groups):  # what is imported comes first
        below = {of[target] for name in group for target in graph[name]} - {number}
        height[number] = 1 + max((height[one] for one in below), default=0)
    return max(height, default=0)


def imports_upward() -> list[tuple[str, str]]:
    """What is below pages imports them."""
    pages = "memboard.tb_plugin.pages."
    below = ("facts", "server", "jobs", "formats", "analysis", "index", "contract")
    return [
        (one.source, one.target)
        for one in imports()
        if one.target.startswith(pages)
        and one.source.split(".")[2:3][0] in below
        and one.source.startswith("memboard.tb_plugin.")
    ]


def upward() -> list[Import]:
    """Imports of the plugin by the collector."""
    return [
        one
        for one in imports()
        if one.source.startswith("memboard.collector")
        and one.target.startswith("memboard.tb_plugin")
    ]


def broad_excepts() -> int:
    """Handlers of everything: `except:`, `except Exception`, `suppress(Exception)`."""
    return sum(
        _catches_all(node)
        for path in modules().values()
        for node in ast.walk(tree_of(path))
    )


def _catches_all(node: ast.AST) -> bool:
    kinds: list[ast.expr | None] = []
    if isinstance(node, ast.ExceptHandler):
        kinds = [*node.type.elts] if isinstance(node.type, ast.Tuple) else [node.type]
    elif isinstance(node, ast.Call):
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        kinds = [*node.args] if name == "suppress" else []
    return any(
        one is None or (isinstance(one, ast.Name) and one.id in BROAD) for one in kinds
    )


def families() -> dict[str, int]:
    """By folder and first word: three and more files that share the word."""
    found: Counter[str] = Counter()
    for area in ("collector", "tb_plugin", "frontend/src"):
        for path in files_of(area):
            word, rest, _ = path.name.partition("_")
            if rest and word and not FRONTEND_TEST.search(path.as_posix()):
                found[f"{path.parent.relative_to(ROOT).as_posix()}/{word}_*"] += 1
    return {name: number for name, number in found.items() if number >= 3}


def settings() -> int:
    """Rows of the documented table of settings."""
    text = (ROOT / "tb_plugin/docs/settings.md").read_text(encoding="utf-8")
    return len(
        set(re.findall(r"^\|[^\n]*\| `(MEMBOARD_[A-Z0-9_]+)` \|", text, re.MULTILINE))
    )


def largest() -> Iterator[tuple[str, str]]:
    """The largest files, and the folders with most files."""
    sizes: dict[str, int] = {}
    folders: dict[str, int] = defaultdict(int)
    for area in ("collector", "tb_plugin", "frontend/src"):
        for path in files_of(area):
            sizes[path.relative_to(ROOT).as_posix()] = lines_of(path)
            folders[path.parent.relative_to(ROOT).as_posix()] += 1
    for name in sorted(sizes, key=lambda one: -sizes[one])[:5]:
        yield name, f"{sizes[name]} lines"
    for name in sorted(folders, key=lambda one: -folders[one])[:5]:
        yield f"{name}/", f"{folders[name]} files"


def imports_between(source: str, target: str) -> int:
    """Modules below one prefix that import one below another, each pair once."""
    return len(
        {
            (one.source, one.target)
            for one in imports()
            if one.source.startswith(source) and one.target.startswith(target)
        }
    )


def imports_of_other_pages() -> set[tuple[str, str]]:
    """Modules of one page that import one of another page."""
    found = set()
    for one in imports():
        source, target = (name.split(".") for name in (one.source, one.target))
        pages = ["memboard", "tb_plugin", "pages"]
        is_of_pages = source[:3] == target[:3] == pages and len(target) > 4
        if is_of_pages and source[3] != target[3]:
            found.add((one.source, one.target))
    return found


def splatted() -> list[str]:
    """Literal tuples that are splatted, which hides what each value is."""
    return [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in modules().values()
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Starred) and isinstance(node.value, ast.Tuple)
    ]


def short_docstrings() -> list[str]:
    """Docstrings of four words at most, which say no more than the name."""
    found = []
    for path in modules().values():
        if path.name in ("sections.py", "settings.py"):
            continue  # their docstrings are the documentation of settings
        for node in ast.walk(tree_of(path)):
            body = getattr(node, "body", ())
            for child in body if isinstance(body, list) else ():
                text = _text_of(child)
                if text and len(text.split()) <= 4:
                    found.append(f"{path.relative_to(ROOT)}:{child.lineno}")
    return found


def _text_of(node: ast.AST) -> str:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        value = node.value.value
        return value if isinstance(value, str) else ""
    return ""


def fields_of_classes() -> Iterator[tuple[str, frozenset[str]]]:
    """Every class with at least four fields, and the names of those it declares itself.

    Modules that a command of ours writes repeat what is declared elsewhere.
    """
    for path in modules().values():
        if WRITTEN_BY_US in path.read_text(encoding="utf-8")[:500]:
            continue
        for node in ast.walk(tree_of(path)):
            if not isinstance(node, ast.ClassDef):
                continue
            fields = frozenset(
                child.target.id
                for child in node.body
                if isinstance(child, ast.AnnAssign)
                and isinstance(child.target, ast.Name)
            )
            if len(fields) >= FIELDS_OF_A_PAIR:
                yield f"{path.relative_to(ROOT)}:{node.name}", fields


def pairs_of_classes() -> list[tuple[str, str]]:
    """Classes of which each declares 60 % of its fields under the other's names too."""
    return [
        (name, other_name)
        for (name, fields), (other_name, others) in combinations(fields_of_classes(), 2)
        if len(fields & others) >= SHARE_OF_A_PAIR * max(len(fields), len(others))
    ]


def statements_of_python() -> int:
    """Statements of the product, docstrings apart."""
    return sum(
        isinstance(node, ast.stmt) and not _text_of(node)
        for path in modules().values()
        for node in ast.walk(tree_of(path))
    )


def table() -> Iterator[tuple[str, str, str]]:
    """(measure, today, goal)."""
    facts, pages = "memboard.tb_plugin.facts", "memboard.tb_plugin.pages"
    report = "memboard.tb_plugin.cli.report"
    yield "imports of another page", str(len(imports_of_other_pages())), "<= 8"
    server = imports_between("memboard.tb_plugin.server", f"{pages}.")
    yield "server -> pages", str(server), "0"
    yield "facts -> pages", str(imports_between(facts, f"{pages}.")), "0"
    yield "report -> pages", str(imports_between(report, f"{pages}.")), "<= 4"
    yield "collector -> tb_plugin", str(len(upward())), "0"
    for level in (module, room):
        yield f"circles of {level.__name__}s", str(len(circles(level))), "0"
    with_types = [len(group) for group in circles(module, with_types=True)]
    yield (
        "circles of modules with types, the largest",
        f"{len(with_types)}, {max(with_types, default=0)}",
        "<= 4, 4",
    )
    for package in PACKAGES:
        of_rooms, of_modules = (
            floors(f"memboard.{package}", level) for level in (room, module)
        )
        yield f"floors of {package}: rooms, modules", f"{of_rooms}, {of_modules}", ""
    yield "splatted literals", str(len(splatted())), "0"
    yield "docstrings of at most four words", str(len(short_docstrings())), "0"
    yield "pairs of classes that share 60 %", str(len(pairs_of_classes())), "<= 40"
    empty = {area: num for area, num in empty_names(modules().values()).items() if num}
    for area, num in sorted(empty.items()):
        yield f"empty names in {area}", f"{num:,}", "0"
    yield "empty names of variables", f"{sum(empty.values()):,}", "0"
    yield "statements of Python", f"{statements_of_python():,}", ""
    yield "broad excepts", str(broad_excepts()), ""
    found = families()
    yield "families of prefixes", f"{len(found)}, {sum(found.values())} files", "0"
    yield "settings", str(settings()), ""
    for name, found_size in largest():
        yield f"  {name}", found_size, "400" if "lines" in found_size else "12"
    for name, goal, files in walks():
        yield f"files entered: {name}", str(len(files)), f"<= {goal}"


def parts_not_found() -> Iterator[str]:
    """Parts of pages that do not lie where the page's name says."""
    pages = re.findall(r"^    (\w+): async", (ROOT / PAGES).read_text(), re.MULTILINE)
    assert pages, f"{PAGES} names no tab"
    for page in pages:
        names = re.compile(rf"(test_)?{page}(_\w+)?(\.\w+)*")
        for part, folder in PARTS.items():
            paths = (ROOT / folder).rglob("*")
            if not any(names.fullmatch(path.name) for path in paths):
                yield f"The {part} of page {page!r} is nowhere below {folder}."


def faults() -> list[str]:
    """Circles, imports of what lies above, and pages whose parts cannot be found."""
    wrong = [
        f"An import circle: {' '.join(sorted(group))}"
        for level in (module, room)
        for group in circles(level)
    ]
    wrong += [f"{one.source} imports {one.target}" for one in upward()]
    wrong += [f"{source} imports {target}" for source, target in imports_upward()]
    wrong += [f"{place}: a literal tuple is splatted" for place in splatted()]
    wrong += [
        f"{place}: a docstring of at most four words" for place in short_docstrings()
    ]
    return [*wrong, *parts_not_found()]


def main() -> int:
    """Print the table and what is wrong; 1 where something is.

    With `--pairs` and `--circles`: those that the table counts.
    """
    if "--pairs" in sys.argv:
        print("\n".join(f"{name}  {other}" for name, other in pairs_of_classes()))
    if "--circles" in sys.argv:
        for group in circles(module, with_types=True):
            print("  ".join(sorted(group)))
    for measure, today, goal in table():
        print(f"{measure:48} {today:>18}   {goal}")
    wrong = faults()
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
