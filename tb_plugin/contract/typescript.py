"""The page's types, from the structs of `tb_plugin/api`.

    python -m memboard.tb_plugin.contract.typescript            write frontend/src/api/types.gen.ts
    python -m memboard.tb_plugin.contract.typescript --check    exit 1 where it differs from them

The shape of a response is declared once, in Python. Each struct becomes a readonly
interface whose fields are in camelCase, as `frontend/src/api/decode.ts` makes them.
Tables of words (`ACTION_WORDS`) are constants of the page too.
"""

from __future__ import annotations

import argparse
import json
import pkgutil
import re
import sys
from importlib import import_module
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
from msgspec import Struct

from memboard.tb_plugin import api
from memboard.tb_plugin.api.base import API_VERSION, Columns

TARGET = Path(__file__).resolve().parents[2] / "frontend/src/api/types.gen.ts"

_BANNER = "// Generated from tb_plugin/api by `npm run gen`. Do not edit."
_PRIMITIVES = {
    str: "string",
    int: "number",
    float: "number",
    bool: "boolean",
    NoneType: "null",
}
_ARRAYS = {
    np.float64: "Float64Array",
    np.int32: "Int32Array",
    np.uint16: "Uint16Array",
    np.uint8: "Uint8Array",
}


class ContractError(Exception):
    """`tb_plugin/api` holds a type that has no meaning on the wire."""


def camel(name: str) -> str:
    # `peak_bytes` -> `peakBytes`
    head, *rest = name.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest)


def type_of(hint: Any, aliases: dict[Any, str]) -> str:
    """The TypeScript type of an annotation; `aliases`: names of `Literal`s.

    Raises:
        ContractError: it has none.
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return aliases.get(hint) or " | ".join(map(json.dumps, arguments))
    if origin in (Union, UnionType):
        return " | ".join(type_of(argument, aliases) for argument in arguments)
    if origin is tuple and arguments[1:] == (...,):
        item = type_of(arguments[0], aliases)
        return f"readonly ({item})[]" if " " in item else f"readonly {item}[]"
    if origin is np.ndarray:
        (scalar,) = get_args(arguments[1])
        return _ARRAYS[scalar]
    if isinstance(hint, type) and issubclass(hint, Struct):
        return hint.__name__
    if hint in _PRIMITIVES:
        return _PRIMITIVES[hint]
    raise ContractError(f"{hint} has no form on the wire")


def interface(struct: type[Struct], aliases: dict[Any, str]) -> str:
    """A struct as a readonly interface.

    Raises:
        ContractError: naming the field that has no form on the wire.
    """
    members = [
        f"  readonly {camel(field)}: {_member(struct, field, hint, aliases)};"
        for field, hint in get_type_hints(struct).items()
    ]
    doc = (struct.__doc__ or "").partition("\n")[0].replace("*/", "* /")
    comment = f"/** {doc} */\n" if doc else ""
    head = f"{comment}export interface {struct.__name__} {{"
    return "\n".join([head, *members, "}"])


def _member(struct: type, field: str, hint: Any, aliases: dict[Any, str]) -> str:
    try:
        return type_of(hint, aliases)
    except ContractError as error:
        raise ContractError(f"{struct.__name__}.{field}: {error}") from None


def types_file() -> str:
    # The text of `types.gen.ts`
    places = pkgutil.walk_packages(api.__path__, f"{api.__name__}.")
    modules = [import_module(place.name) for place in places]
    aliases: dict[Any, str] = {}
    structs: dict[str, type[Struct]] = {}
    texts_by_name: dict[str, dict[str, str]] = {}
    for module in modules:
        for name, value in vars(module).items():
            if get_origin(value) is Literal:
                aliases[value] = name
            elif isinstance(value, type) and value.__module__ == module.__name__:
                structs[name] = value
            elif isinstance(value, dict) and name.isupper():
                texts_by_name[name] = value
    del structs[Columns.__name__]
    routes = [
        f"  readonly {route_of(name)}: {name};"
        for name in structs
        if name.endswith("Response") and name != "ErrorResponse"
    ]
    parts = [
        _BANNER,
        f"export const API_VERSION = {API_VERSION};",
        *(
            f"export const {name} = {json.dumps(texts)} as const;"
            for name, texts in texts_by_name.items()
        ),
        *(f"export type {n} = {type_of(a, {})};" for a, n in aliases.items()),
        *(interface(struct, aliases) for struct in structs.values()),
        "/** What each data route answers. */",
        "\n".join(["export interface Responses {", *routes, "}"]),
    ]
    return "\n\n".join(parts) + "\n"


def route_of(response: str) -> str:
    """`StepHeatmapResponse` -> `step_heatmap`, as the server spells it."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", response.removesuffix("Response")).lower()


def main(argv: list[str] | None = None) -> int:
    """Write the file, or with `--check` compare it."""
    parser = argparse.ArgumentParser(
        prog="python -m memboard.tb_plugin.contract.typescript"
    )
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    options = parser.parse_args(argv)
    text = types_file()
    if not options.check:
        TARGET.write_text(text, encoding="utf-8", newline="\n")
    elif not TARGET.exists() or TARGET.read_text(encoding="utf-8") != text:
        sys.stderr.write(f"{TARGET} differs from tb_plugin/api: run `npm run gen`\n")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
