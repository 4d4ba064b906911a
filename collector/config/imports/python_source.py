"""The arguments that a program gives to Composer's profiler, read from its source."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, Final

from collector.config.imports.profilers import NotConstant, is_old_argument
from collector.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_PREFIX: Final = {"TorchProfiler": "torch_prof_", "SystemProfiler": "sys_prof_"}
_INNER: Final = {
    "cyclic_schedule": "schedule",
    "JSONTraceHandler": "json_trace_handler",
}
_SCHEDULE: Final = ("skip_first", "wait", "warmup", "active", "repeat")
_POSITIONS: Final = {"cyclic_schedule": _SCHEDULE}


def arguments_of(path: Path) -> tuple[dict[str, Any], dict[str, int]]:
    """What its calls say: `{"profiler": {...}}`, and the line by path; empty without any.

    Raises:
        ConfigError: it is no Python.
    """
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    except (SyntaxError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is no Python source: {error}.") from error
    found: dict[str, Any] = {}
    lines: dict[str, int] = {}
    for call in ast.walk(tree):
        if isinstance(call, ast.Call):
            for name, value in _arguments(call):
                above, _, leaf = name.rpartition(".")
                into = found.setdefault(above, {}) if above else found
                if isinstance(into, dict):
                    into.setdefault(leaf, value)
                lines.setdefault(f"profiler.{name}", call.lineno)
    return ({"profiler": found} if found else {}), lines


def _arguments(call: ast.Call) -> Iterator[tuple[str, Any]]:
    """Name and value of each, as `Profiler` would be given it."""
    function = call.func
    callee = function.attr if isinstance(function, ast.Attribute) else ""
    callee = function.id if isinstance(function, ast.Name) else callee
    named = [(word.arg, word.value) for word in call.keywords if word.arg]
    named += zip(_POSITIONS.get(callee, ()), call.args, strict=False)
    for name, node in named:
        inner = f"{_INNER[callee]}." if callee in _INNER else _PREFIX.get(callee, "")
        is_old = callee == "Trainer" and is_old_argument(name)
        if not (inner or is_old or callee == "Profiler"):
            continue
        if not _is_call_of(node, _INNER) and name != "trace_handlers":
            is_sensor = callee == "SystemProfiler"
            key = name.removeprefix("profile_") if is_sensor else name
            yield f"{inner}{key}", _value(node)
    if callee == "JSONTraceHandler" and not call.keywords:
        yield "trace_handlers", "JSONTraceHandler()"


def _is_call_of(node: ast.expr, names: dict[str, str]) -> bool:
    """Whether it is a call whose own arguments are read."""
    function = getattr(node, "func", None)
    return getattr(function, "attr", getattr(function, "id", None)) in names


def _value(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return NotConstant(ast.unparse(node)[:200])
