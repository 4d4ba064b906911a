"""The house beside its goals: python tests/house.py.

Prints a table; exits 1 where modules or rooms import in circles, where an import goes up
(collector to plugin, facts or server to pages), where a literal tuple or list is splatted or a
docstring has four words at most, or where a part of a page cannot be found by the page's
name. Imports are those of run time; circles "with types" count the others too.

Lines are not counted against anybody: what counts is how many places a change touches.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter, defaultdict
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.empty_names import empty_names  # noqa: E402  # needs the path
from tests.import_graph import (  # noqa: E402
    PACKAGES,
    Import,
    circles,
    floors,
    imports,
    imports_between,
    module,
    modules,
    room,
    tree_of,
)
from tests.walks import walks  # noqa: E402  # needs the path

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


def imports_upward() -> list[tuple[str, str]]:
    """What is below pages imports them."""
    pages = "memboard.tb_plugin.pages."
    below = ("facts", "server", "jobs", "formats", "analysis", "index", "contract")
    return [
        (edge.source, edge.target)
        for edge in imports()
        if edge.target.startswith(pages)
        and edge.source.split(".")[2:3][0] in below
        and edge.source.startswith("memboard.tb_plugin.")
    ]


def upward() -> list[Import]:
    """Imports of the plugin by the collector."""
    return [
        edge
        for edge in imports()
        if edge.source.startswith("memboard.collector")
        and edge.target.startswith("memboard.tb_plugin")
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
        kind is None or (isinstance(kind, ast.Name) and kind.id in BROAD)
        for kind in kinds
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
    for name in sorted(sizes, key=lambda path: -sizes[path])[:5]:
        yield name, f"{sizes[name]} lines"
    for name in sorted(folders, key=lambda path: -folders[path])[:5]:
        yield f"{name}/", f"{folders[name]} files"


def imports_of_other_pages() -> set[tuple[str, str]]:
    """Modules of one page that import one of another page."""
    found = set()
    for edge in imports():
        source, target = (name.split(".") for name in (edge.source, edge.target))
        pages = ["memboard", "tb_plugin", "pages"]
        is_of_pages = source[:3] == target[:3] == pages and len(target) > 4
        if is_of_pages and source[3] != target[3]:
            found.add((edge.source, edge.target))
    return found


def splatted() -> list[str]:
    """Literal tuples and lists that are splatted, which hides what each value is."""
    return [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in modules().values()
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Starred)
        and isinstance(node.value, (ast.Tuple, ast.List))
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
    wrong += [f"{edge.source} imports {edge.target}" for edge in upward()]
    wrong += [f"{source} imports {target}" for source, target in imports_upward()]
    wrong += [f"{place}: a literal is splatted" for place in splatted()]
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
