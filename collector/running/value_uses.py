"""Whether a line that reads a value of the device only shows it, by the source of the line.

`print(loss.item())` decides nothing; `if loss > 1`, `x[mask]`, `counts.tolist()` as sizes
do. It is followed from the expression that reads, through arithmetic, text, containers and
names, to all of its uses. What cannot be followed, as an attribute, an argument of a function
or a returned value, counts as deciding.
"""

from __future__ import annotations

import ast
import linecache
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from types import CodeType

_READS: Final = frozenset({"item", "tolist", "cpu", "numpy", "float", "int", "double"})
"""Functions and methods that hand the value on as it is."""
_TRANSFORMS: Final = frozenset(
    {"abs", "exp", "format", "log", "max", "mean", "min", "round", "sqrt", "str", "sum"}
)
_MATHEMATICS: Final = frozenset({"math", "np", "numpy", "torch"})
_SHOWS: Final = frozenset(
    {
        "add_scalar",
        "add_scalars",
        "critical",
        "debug",
        "error",
        "exception",
        "info",
        "log",
        "log_dict",
        "log_metrics",
        "print",
        "set_description",
        "set_postfix",
        "set_postfix_str",
        "warning",
    }
)
_PASSES_ON: Final = (
    ast.BinOp,
    ast.UnaryOp,
    ast.JoinedStr,
    ast.FormattedValue,
    ast.Dict,
    ast.List,
    ast.Tuple,
    ast.Set,
    ast.Starred,
    ast.keyword,
)
_SCOPES: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.Module)
_MAX_DEPTH: Final = 8
"""Names through which a value is followed."""


def is_only_shown(code: CodeType, instruction: int) -> bool:
    """Whether the value that an instruction reads is only printed, logged or dropped.

    False also where the source is not there, or Python (before 3.11) does not say which
    expression an instruction is of.
    """
    positions = getattr(code, "co_positions", None)
    if positions is None or instruction < 0:
        return False
    place = next(islice(positions(), instruction // 2, None), None)
    source = None if place is None else _source(code.co_filename)
    if source is None or place is None:
        return False
    line, end_line, column, end_column = place
    for node in source.calls.get(line, ()):
        span = (node.end_lineno, node.col_offset, node.end_col_offset)
        if span == (end_line, column, end_column):
            return _name(node) in _READS and source.shows(node, 0)
    return False


class _Source:
    """The expressions of a file."""

    def __init__(self, tree: ast.Module) -> None:
        self._parents = {
            child: node
            for node in ast.walk(tree)
            for child in ast.iter_child_nodes(node)
        }
        self.calls: dict[int | None, list[ast.Call]] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                self.calls.setdefault(node.lineno, []).append(node)

    def shows(self, node: ast.AST, depth: int) -> bool:
        """Whether an expression's value goes nowhere but to where it is shown."""
        while True:
            child, node = node, self._parents[node]
            if isinstance(node, ast.Expr):
                return True
            if isinstance(node, _PASSES_ON):
                continue
            if isinstance(node, ast.Attribute):
                call = self._parents[node]
                if not isinstance(call, ast.Call) or call.func is not node:
                    return False
                if node.attr not in _READS | _TRANSFORMS:
                    return False
                node = call
            elif isinstance(node, ast.Call):
                if _shows(node):
                    return True
                if _name(node) not in _READS | _TRANSFORMS:
                    return False
            elif isinstance(node, ast.Subscript):
                if node.value is not child:
                    return False
            elif isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
                return self._names_show(node, depth)
            else:
                return False

    def _names_show(
        self, node: ast.Assign | ast.AugAssign | ast.AnnAssign, depth: int
    ) -> bool:
        """Whether each use of the names that an assignment gives the value is shown."""
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if depth >= _MAX_DEPTH:
            return False
        for target in targets:
            if not isinstance(target, ast.Name):
                return False
            scope = self._scope(node, target.id)
            for use in ast.walk(scope):
                if not isinstance(use, ast.Name) or use.id != target.id:
                    continue
                if isinstance(use.ctx, ast.Load) and not self.shows(use, depth + 1):
                    return False
        return True

    def _scope(self, node: ast.AST, variable: str) -> ast.AST:
        """The function or module whose name it is; of a global or outer one the module."""
        while not isinstance(node, _SCOPES):
            node = self._parents[node]
        outer = any(
            isinstance(statement, (ast.Global, ast.Nonlocal))
            and variable in statement.names
            for statement in ast.walk(node)
        )
        while outer and node in self._parents:
            node = self._parents[node]
        return node


def _name(call: ast.Call) -> str:
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _shows(call: ast.Call) -> bool:
    """Whether a call prints or logs: `wandb.log`, not `math.log`."""
    function = call.func
    owner = function.value if isinstance(function, ast.Attribute) else None
    if isinstance(owner, ast.Name) and owner.id in _MATHEMATICS:
        return False
    return _name(call) in _SHOWS


@lru_cache(maxsize=64)
def _source(file: str) -> _Source | None:
    try:
        return _Source(ast.parse("".join(linecache.getlines(file))))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
