"""The HTTP contract as `tb_plugin/api` declares it, read from its syntax trees.

The syntax tree rather than the classes is read because only it holds the fields' doc
comments.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

HERE = Path(__file__).resolve().parents[1]
API_FILES = tuple(
    HERE / "api" / f"{name}.py"
    for name in (
        "__init__",
        "base",
        "series",
        "modules",
        "functions",
        "histories",
        "allocations",
        "segments",
        "trace",
        "trace_reports",
        "traces",
        "profile",
        "operators",
        "distributed",
        "compare",
        "verdict",
        "steps",
        "drop",
    )
)
"""In the order of what they declare: parts come first."""

COLUMNS = ("F64Column", "I32Column", "U16Column", "U8Column")
"""Arrays of numbers, which follow the header."""


class ContractError(Exception):
    """`tb_plugin/api` holds something that has no meaning on the wire."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a dataclass of the contract."""

    name: str
    annotation: ast.expr
    doc: str


@dataclass(frozen=True, slots=True)
class Shape:
    """One dataclass of the contract."""

    name: str
    doc: str
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Alias:
    """A named union of words, e.g. `Unit`."""

    name: str
    doc: str
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Contract:
    """Everything `tb_plugin/api` declares, in its order."""

    version: int
    aliases: tuple[Alias, ...]
    shapes: tuple[Shape, ...]

    @property
    def names(self) -> frozenset[str]:
        """Names an annotation may use beside the primitives and columns."""
        return frozenset([*(a.name for a in self.aliases), *self._shape_names])

    @property
    def _shape_names(self) -> tuple[str, ...]:
        return tuple(shape.name for shape in self.shapes)

    @property
    def routes(self) -> tuple[Shape, ...]:
        """The responses that travel as a binary body: one route each."""
        return tuple(
            shape
            for shape in self.shapes
            if shape.name.endswith("Response") and shape.name != "ErrorResponse"
        )


def parse(*sources: str, files: Sequence[str] = ("api.py",)) -> Contract:
    """Reads the contract out of the texts of its files, in their order.

    Raises:
        ContractError: naming the line of what cannot be put on the wire.
    """
    body = [
        node
        for source, file in zip(sources, files, strict=True)
        for node in _body(source, file)
    ]
    version: int | None = None
    aliases: list[Alias] = []
    shapes: list[Shape] = []
    for position, node in enumerate(body):
        doc = _doc_after(body, position)
        if isinstance(node, ast.Assign) and _target(node) == "API_VERSION":
            version = ast.literal_eval(node.value)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            if node.value is None:
                raise ContractError(f"{place_of(node)}: an alias needs a value")
            aliases.append(Alias(node.target.id, doc, words_of(node.value)))
        elif isinstance(node, ast.ClassDef) and node.name not in COLUMNS:
            shapes.append(_shape(node))
    if version is None:
        raise ContractError("API_VERSION is not set")
    return Contract(version, tuple(aliases), tuple(shapes))


def _body(source: str, file: str) -> list[ast.stmt]:
    """A file's statements, every node of which knows where it stands."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        node.file = file  # type: ignore[attr-defined]
    return tree.body


def place_of(node: ast.expr | ast.stmt) -> str:
    """Where a node stands, for a person."""
    return f"{getattr(node, 'file', '')}:{node.lineno}"


def _target(node: ast.Assign) -> str | None:
    target = node.targets[0]
    return target.id if isinstance(target, ast.Name) else None


def _doc_after(body: list[ast.stmt], position: int) -> str:
    """The string literal that stands after a statement: its doc comment."""
    following = body[position + 1] if position + 1 < len(body) else None
    if (
        isinstance(following, ast.Expr)
        and isinstance(following.value, ast.Constant)
        and isinstance(following.value.value, str)
    ):
        return _clean(following.value.value)
    return ""


def _clean(text: str) -> str:
    lines = [line.strip() for line in text.strip().splitlines()]
    return "\n".join(lines)


def _shape(node: ast.ClassDef) -> Shape:
    fields: list[Field] = []
    for position, item in enumerate(node.body):
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            doc = _doc_after(node.body, position)
            fields.append(Field(item.target.id, item.annotation, doc))
        elif not (isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant)):
            raise ContractError(
                f"{place_of(item)}: {node.name} may hold annotated fields only"
            )
    return Shape(node.name, _clean(ast.get_docstring(node) or ""), tuple(fields))


def words_of(node: ast.expr) -> tuple[str, ...]:
    """The words of a `Literal[...]`."""
    if not (isinstance(node, ast.Subscript) and name_of(node.value) == "Literal"):
        raise ContractError(f"{place_of(node)}: expected Literal[...]")
    items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    words = [i.value for i in items if isinstance(i, ast.Constant)]
    texts = tuple(word for word in words if isinstance(word, str))
    if len(texts) != len(items):
        raise ContractError(f"{place_of(node)}: Literal may hold strings only")
    return texts


def name_of(node: ast.expr) -> str | None:
    """A bare name; None where an annotation is more than that."""
    return node.id if isinstance(node, ast.Name) else None


def optional_of(node: ast.expr) -> ast.expr | None:
    """The X of `X | None`; None where it is no union."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr)):
        return None
    if not (isinstance(node.right, ast.Constant) and node.right.value is None):
        raise ContractError(f"{place_of(node)}: a union may only be X | None")
    return node.left


def tuple_item_of(node: ast.expr) -> ast.expr | None:
    """The X of `tuple[X, ...]`; None where it is no tuple."""
    if not (isinstance(node, ast.Subscript) and name_of(node.value) == "tuple"):
        return None
    items = node.slice.elts if isinstance(node.slice, ast.Tuple) else []
    ends_open = (
        len(items) == 2
        and isinstance(items[1], ast.Constant)
        and items[1].value is Ellipsis
    )
    if not ends_open:
        raise ContractError(f"{place_of(node)}: write tuple[X, ...]")
    return items[0]


def read_contract() -> Contract:
    """The contract as `tb_plugin/api` declares it now."""
    return parse(
        *(file.read_text(encoding="utf-8") for file in API_FILES),
        files=[f"api/{file.name}" for file in API_FILES],
    )
