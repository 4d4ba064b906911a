"""Variables that are called `found`, `one` or the like: counted, by area."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT = Path(__file__).resolve().parent.parent

EMPTY_NAMES: Final = frozenset(
    ("found", "one", "at", "known", "held", "what", "words", "given", "said")
)
"""They say nothing of what a variable contains."""


def empty_names(paths: Iterable[Path]) -> Counter[str]:
    """By area: variables and parameters of modules that have an empty name.

    `what` may stand beside `remedy`: errors are made of what, where and remedy.
    """
    numbers: Counter[str] = Counter()
    for path in paths:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        numbers[area_of(path)] += sum(
            name in EMPTY_NAMES for name in _bound_names(tree)
        )
    return numbers


def area_of(path: Path) -> str:
    """The room that a module of Python belongs to, as a folder."""
    parts = path.relative_to(ROOT).parts
    return "/".join(parts[:2]) if parts[0] == "tb_plugin" and parts[2:] else parts[0]


def _bound_names(tree: ast.Module) -> Iterator[str]:
    """Variables and parameters, without fields of classes."""
    fields = {
        id(statement.target)
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for statement in node.body
        if isinstance(statement, ast.AnnAssign)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.arguments):
            names = [arg.arg for arg in (*node.args, *node.kwonlyargs)]
            is_error = "remedy" in names
            yield from (name for name in names if not (is_error and name == "what"))
            yield from (arg.arg for arg in (node.vararg, node.kwarg) if arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            if id(node) not in fields:
                yield node.id
        elif isinstance(node, ast.ExceptHandler) and node.name:
            yield node.name
