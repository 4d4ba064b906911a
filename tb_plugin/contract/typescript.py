"""Generates the frontend's half of the HTTP contract from `tb_plugin/api`.

The shape of a response is written once, in Python. From its syntax tree come
`frontend/src/api/types.gen.ts` (one readonly interface per dataclass, in camelCase)
and `frontend/src/api/readers.gen.ts` (one function per dataclass that turns the
decoded header into that interface and names the field that is wrong).

    python -m tb_plugin.contract.typescript            write both files
    python -m tb_plugin.contract.typescript --check    exit 1 where they differ from tb_plugin/api
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tb_plugin.contract.declarations import (
    COLUMNS,
    ContractError,
    name_of,
    optional_of,
    place_of,
    read_contract,
    tuple_item_of,
    words_of,
)

if TYPE_CHECKING:
    from tb_plugin.contract.declarations import Contract, Shape

TARGET_FOLDER = Path(__file__).resolve().parents[2] / "frontend" / "src" / "api"

_BANNER = "// Generated from tb_plugin/api by `npm run gen`. Do not edit.\n"
_PRIMITIVES = {"str": "string", "int": "number", "float": "number", "bool": "boolean"}
_READERS = {"str": "text", "int": "integer", "float": "number", "bool": "flag"}
_ARRAYS = ("Float64Array", "Int32Array", "Uint16Array", "Uint8Array")
_COLUMNS = {
    name: (array, name[0].lower() + name[1:])
    for name, array in zip(COLUMNS, _ARRAYS, strict=True)
}
"""A column's type, and the function that reads one."""
_WIDTH = 88


def camel(name: str) -> str:
    """`peak_bytes` -> `peakBytes`: how a field is called in TypeScript."""
    head, *rest = name.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest)


def wire_name(name: str) -> str:
    """`peakBytes` -> `peak_bytes`: what the page makes of a name, in `api/check.ts`."""
    return re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


class _Translator:
    """Annotations to TypeScript types and to expressions that read them."""

    def __init__(self, contract: Contract) -> None:
        self._contract = contract
        self._aliases = {alias.name for alias in contract.aliases}

    def type_of(self, node: ast.expr) -> str:
        """The TypeScript type of an annotation."""
        name = name_of(node)
        if name is not None:
            if name in _PRIMITIVES:
                return _PRIMITIVES[name]
            if name in _COLUMNS:
                return _COLUMNS[name][0]
            if name in self._contract.names:
                return name
        optional = optional_of(node)
        if optional is not None:
            return f"{self.type_of(optional)} | null"
        item = tuple_item_of(node)
        if item is not None:
            inner = self.type_of(item)
            return f"readonly ({inner})[]" if "|" in inner else f"readonly {inner}[]"
        if isinstance(node, ast.Subscript):
            return " | ".join(json.dumps(word) for word in words_of(node))
        raise ContractError(
            f"{place_of(node)}: no wire form for {ast.unparse(node)}; "
            "use str, int, float, bool, a column, Literal, tuple[X, ...] or X | None"
        )

    def reader_of(self, node: ast.expr) -> str:
        """An expression of type `Read<T>` that reads an annotation's value."""
        name = name_of(node)
        if name is not None:
            if name in _READERS:
                return _READERS[name]
            if name in _COLUMNS:
                return _COLUMNS[name][1]
            return camel(f"read_{name}")
        optional = optional_of(node)
        if optional is not None:
            return f"orNull({self.reader_of(optional)})"
        item = tuple_item_of(node)
        if item is not None:
            return f"list({self.reader_of(item)})"
        return f"word({', '.join(json.dumps(word) for word in words_of(node))})"

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
        lines = [f"export const {name} = shape<types.{shape.name}>({{"]
        for field in shape.fields:
            key = camel(field.name)
            if wire_name(key) != field.name:
                raise ContractError(
                    f"{place_of(field.annotation)}: the page cannot tell {field.name} from "
                    f"{key}; start each part of a name with a letter"
                )
            lines.append(f"  {key}: {self.reader_of(field.annotation)},")
        return "\n".join([*lines, "});"])


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
        f"  {_route(shape)}: {camel(f'read_{shape.name}')},"
        for shape in contract.routes
    )
    bodies.append(
        "/** How to read what each route answers. */\n"
        "export const routes: {\n"
        "  readonly [R in keyof types.Responses]: Read<types.Responses[R]>;\n"
        "} = {\n" + entries + "\n};"
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


_TOOLS = ("list", "orNull", "shape", "word")


def _callees_first(contract: Contract) -> tuple[Shape, ...]:
    """Constants must exist before they are used; the contract declares parts first."""
    seen: set[str] = set()
    for shape in contract.shapes:
        for field in shape.fields:
            for node in ast.walk(field.annotation):
                name = name_of(node) if isinstance(node, ast.expr) else None
                later = {s.name for s in contract.shapes} - seen
                if name in later:
                    raise ContractError(
                        f"{place_of(field.annotation)}: {name} must be declared "
                        f"before {shape.name}, which uses it"
                    )
        seen.add(shape.name)
    return contract.shapes


def _route(shape: Shape) -> str:
    """The route as the server spells it: the page's requests are made of it."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", shape.name.removesuffix("Response")).lower()


def generate() -> dict[Path, str]:
    """Both files' paths and texts."""
    contract = read_contract()
    return {
        TARGET_FOLDER / "types.gen.ts": types_file(contract),
        TARGET_FOLDER / "readers.gen.ts": readers_file(contract),
    }


def main(argv: list[str] | None = None) -> int:
    """Writes the generated files, or with `--check` compares them."""
    parser = argparse.ArgumentParser(prog="python -m tb_plugin.contract.typescript")
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
