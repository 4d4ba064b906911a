"""Generates the frontend's half of the HTTP contract from `tb_plugin/api`.

The shape of a response is written once, in Python. From its syntax tree come
`frontend/src/api/types.gen.ts` (one readonly interface per dataclass, in camelCase)
and `frontend/src/api/readers.gen.ts` (one function per dataclass that turns the
decoded header into that interface and names the field that is wrong). The syntax tree
rather than the classes is read because only it holds the fields' doc comments.

    python -m tb_plugin.typescript            write both files
    python -m tb_plugin.typescript --check    exit 1 where they differ from tb_plugin/api
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

HERE = Path(__file__).resolve().parent
API_FILES = tuple(
    HERE / "api" / f"{name}.py"
    for name in ("__init__", "base", "series", "modules", "functions")
)
"""In the order of what they declare: parts come first."""
TARGET_FOLDER = HERE.parent / "frontend" / "src" / "api"

_BANNER = "// Generated from tb_plugin/api by `npm run gen`. Do not edit.\n"
_PRIMITIVES = {"str": "string", "int": "number", "float": "number", "bool": "boolean"}
_READERS = {"str": "text", "int": "integer", "float": "number", "bool": "flag"}
_COLUMNS = {
    "F64Column": ("Float64Array", "f64Column"),
    "I32Column": ("Int32Array", "i32Column"),
    "U16Column": ("Uint16Array", "u16Column"),
    "U8Column": ("Uint8Array", "u8Column"),
}
_WIDTH = 88


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
                raise ContractError(f"{_at(node)}: an alias needs a value")
            aliases.append(Alias(node.target.id, doc, _words(node.value)))
        elif isinstance(node, ast.ClassDef) and node.name not in _COLUMNS:
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


def _at(node: ast.expr | ast.stmt) -> str:
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
                f"{_at(item)}: {node.name} may hold annotated fields only"
            )
    return Shape(node.name, _clean(ast.get_docstring(node) or ""), tuple(fields))


def _words(node: ast.expr) -> tuple[str, ...]:
    """The words of a `Literal[...]`."""
    if not (isinstance(node, ast.Subscript) and _name(node.value) == "Literal"):
        raise ContractError(f"{_at(node)}: expected Literal[...]")
    items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    words = [i.value for i in items if isinstance(i, ast.Constant)]
    texts = tuple(word for word in words if isinstance(word, str))
    if len(texts) != len(items):
        raise ContractError(f"{_at(node)}: Literal may hold strings only")
    return texts


def _name(node: ast.expr) -> str | None:
    return node.id if isinstance(node, ast.Name) else None


def camel(name: str) -> str:
    """`peak_bytes` -> `peakBytes`: how a field is called in TypeScript."""
    head, *rest = name.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest)


class _Translator:
    """Annotations to TypeScript types and to expressions that read them."""

    def __init__(self, contract: Contract) -> None:
        self._contract = contract
        self._aliases = {alias.name for alias in contract.aliases}

    def type_of(self, node: ast.expr) -> str:
        """The TypeScript type of an annotation."""
        name = _name(node)
        if name is not None:
            if name in _PRIMITIVES:
                return _PRIMITIVES[name]
            if name in _COLUMNS:
                return _COLUMNS[name][0]
            if name in self._contract.names:
                return name
        optional = _optional(node)
        if optional is not None:
            return f"{self.type_of(optional)} | null"
        item = _tuple_item(node)
        if item is not None:
            inner = self.type_of(item)
            return f"readonly ({inner})[]" if "|" in inner else f"readonly {inner}[]"
        if isinstance(node, ast.Subscript):
            return " | ".join(json.dumps(word) for word in _words(node))
        raise ContractError(
            f"{_at(node)}: no wire form for {ast.unparse(node)}; "
            "use str, int, float, bool, a column, Literal, tuple[X, ...] or X | None"
        )

    def reader_of(self, node: ast.expr) -> str:
        """An expression of type `Read<T>` that reads an annotation's value."""
        name = _name(node)
        if name is not None:
            if name in _READERS:
                return _READERS[name]
            if name in _COLUMNS:
                return _COLUMNS[name][1]
            return camel(f"read_{name}")
        optional = _optional(node)
        if optional is not None:
            return f"orNull({self.reader_of(optional)})"
        item = _tuple_item(node)
        if item is not None:
            return f"list({self.reader_of(item)})"
        return f"word({', '.join(json.dumps(word) for word in _words(node))})"

    def interface(self, shape: Shape) -> str:
        """The readonly interface of a dataclass."""
        lines = [*_comment(shape.doc, ""), f"export interface {shape.name} {{"]
        for field in shape.fields:
            lines += _comment(field.doc, "  ")
            lines += _member(camel(field.name), self.type_of(field.annotation))
        return "\n".join([*lines, "}"])

    def reader(self, shape: Shape) -> str:
        """The function that reads a dataclass."""
        name = camel(f"read_{shape.name}")
        lines = [
            f"export const {name}: Read<types.{shape.name}> = (value, at, columns) => {{",
            "  const fields = record(value, at);",
            "  return {",
        ]
        for field in shape.fields:
            read = self.reader_of(field.annotation)
            key = json.dumps(field.name)
            call = f"field(fields, {key}, {read}, at, columns)"
            lines.append(f"    {camel(field.name)}: {call},")
        return "\n".join([*lines, "  };", "};"])


def _optional(node: ast.expr) -> ast.expr | None:
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr)):
        return None
    if not (isinstance(node.right, ast.Constant) and node.right.value is None):
        raise ContractError(f"{_at(node)}: a union may only be X | None")
    return node.left


def _tuple_item(node: ast.expr) -> ast.expr | None:
    if not (isinstance(node, ast.Subscript) and _name(node.value) == "tuple"):
        return None
    items = node.slice.elts if isinstance(node.slice, ast.Tuple) else []
    ends_open = (
        len(items) == 2
        and isinstance(items[1], ast.Constant)
        and items[1].value is Ellipsis
    )
    if not ends_open:
        raise ContractError(f"{_at(node)}: write tuple[X, ...]")
    return items[0]


def _comment(doc: str, indent: str) -> list[str]:
    if not doc:
        return []
    # Nothing in a doc comment may close it early.
    lines = doc.replace("*/", "* /").splitlines()
    if len(lines) == 1:
        return [f"{indent}/** {lines[0]} */"]
    return [
        f"{indent}/**",
        *(f"{indent} * {line}".rstrip() for line in lines),
        f"{indent} */",
    ]


def _member(name: str, kind: str) -> list[str]:
    line = f"  readonly {name}: {kind};"
    if len(line) <= _WIDTH or " | " not in kind or kind.startswith("readonly"):
        return [line]
    words = "".join(f"\n    | {word}" for word in kind.split(" | "))
    return [f"  readonly {name}:{words};"]


def types_file(contract: Contract) -> str:
    """The text of `types.gen.ts`."""
    translator = _Translator(contract)
    parts = [_BANNER.rstrip(), f"export const API_VERSION = {contract.version};"]
    for alias in contract.aliases:
        words = "".join(f"\n  | {json.dumps(word)}" for word in alias.words)
        comment = "".join(f"{line}\n" for line in _comment(alias.doc, ""))
        parts.append(f"{comment}export type {alias.name} ={words};")
    parts += [translator.interface(shape) for shape in contract.shapes]
    routes = [f"  readonly {_route(s)}: {s.name};" for s in contract.routes]
    parts.append(
        "/** What each data route answers. */\n"
        "export interface Responses {\n" + "\n".join(routes) + "\n}"
    )
    return "\n\n".join(parts) + "\n"


def readers_file(contract: Contract) -> str:
    """The text of `readers.gen.ts`."""
    translator = _Translator(contract)
    bodies: list[str] = []
    for alias in contract.aliases:
        words = ", ".join(json.dumps(word) for word in alias.words)
        name = camel(f"read_{alias.name}")
        bodies.append(
            f"export const {name}: Read<types.{alias.name}> = word(\n  {words},\n);"
        )
    bodies += [translator.reader(shape) for shape in _callees_first(contract)]
    entries = "\n".join(
        f"  {_route(shape)}: {{ response: {json.dumps(shape.name)}, "
        f"read: {camel(f'read_{shape.name}')} }},"
        for shape in contract.routes
    )
    bodies.append(
        "/** Per route: the response's name on the wire and how to read it. */\n"
        "export const routes: {\n"
        "  readonly [R in keyof types.Responses]: {\n"
        "    readonly response: string;\n"
        "    readonly read: Read<types.Responses[R]>;\n"
        "  };\n} = {\n" + entries + "\n};"
    )
    text = "\n\n".join(bodies)
    used = sorted(
        name
        for name in [*_READERS.values(), *(c[1] for c in _COLUMNS.values()), *_TOOLS]
        if re.search(rf"\b{name}\b", text)
    )
    imports = "".join(f"  {name},\n" for name in used)
    head = (
        f"{_BANNER}\n"
        f'import {{\n{imports}  type Read,\n}} from "./check";\n'
        'import type * as types from "./types.gen";\n\n'
    )
    return head + text + "\n"


_TOOLS = ("field", "list", "orNull", "record", "word")


def _callees_first(contract: Contract) -> tuple[Shape, ...]:
    """Constants must exist before they are used; the contract declares parts first."""
    seen: set[str] = set()
    for shape in contract.shapes:
        for field in shape.fields:
            for node in ast.walk(field.annotation):
                name = _name(node) if isinstance(node, ast.expr) else None
                later = {s.name for s in contract.shapes} - seen
                if name in later:
                    raise ContractError(
                        f"{_at(field.annotation)}: {name} must be declared "
                        f"before {shape.name}, which uses it"
                    )
        seen.add(shape.name)
    return contract.shapes


def _route(shape: Shape) -> str:
    """The route as the server spells it: the page's requests are made of it."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", shape.name.removesuffix("Response")).lower()


def read_contract() -> Contract:
    """The contract as `tb_plugin/api` declares it now."""
    return parse(
        *(file.read_text(encoding="utf-8") for file in API_FILES),
        files=[f"api/{file.name}" for file in API_FILES],
    )


def generate() -> dict[Path, str]:
    """Both files' paths and texts."""
    contract = read_contract()
    return {
        TARGET_FOLDER / "types.gen.ts": types_file(contract),
        TARGET_FOLDER / "readers.gen.ts": readers_file(contract),
    }


def main(argv: list[str] | None = None) -> int:
    """Writes the generated files, or with `--check` compares them."""
    parser = argparse.ArgumentParser(prog="python -m tb_plugin.typescript")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    options = parser.parse_args(argv)
    stale: list[Path] = []
    for path, text in generate().items():
        if options.check:
            current = path.read_text(encoding="utf-8") if path.exists() else None
            if current != text:
                stale.append(path)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
    for path in stale:
        sys.stderr.write(f"{path} differs from tb_plugin/api: run `npm run gen`\n")
    return 1 if stale else 0


if __name__ == "__main__":
    raise SystemExit(main())
