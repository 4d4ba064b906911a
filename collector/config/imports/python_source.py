"""The arguments that a program's source gives to Composer's profiler and callbacks."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, Final

from memboard.collector.config.imports.callbacks import CALLBACKS, SECTION
from memboard.collector.config.imports.profilers import is_old_argument
from memboard.collector.config.imports.result import UNPACKED, NotConstant
from memboard.collector.errors import ConfigError

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
    """What its calls say: `{"profiler": {...}, "callbacks": {...}}`, and the line by path.

    Without such calls both are empty.

    Raises:
        ConfigError: it cannot be read, or is no Python.
    """
    try:
        tree = ast.parse(path.read_bytes(), str(path))
    except OSError as error:
        reason = error.strerror or error
        raise ConfigError(f"cannot read {path}: {reason}. Correct the path.") from error
    except (SyntaxError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is no Python source: {error}.") from error
    profiler: dict[str, Any] = {}
    lines: dict[str, int] = {}
    for call in ast.walk(tree):
        if isinstance(call, ast.Call):
            for name, value in _arguments(call):
                above, _, leaf = name.rpartition(".")
                into = profiler.setdefault(above, {}) if above else profiler
                if isinstance(into, dict):
                    into.setdefault(leaf, value)
                lines.setdefault(f"profiler.{name}", call.lineno)
    plain = {"profiler": profiler, SECTION: _callbacks(tree, lines)}
    return {name: values for name, values in plain.items() if values}, lines


def _callbacks(tree: ast.AST, lines: dict[str, int]) -> dict[str, Any]:
    """The arguments of each of Composer's callbacks that memory and speed have, by class."""
    callbacks: dict[str, Any] = {}
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and (name := _callee(call)) in CALLBACKS:
            arguments = callbacks.setdefault(name, {})
            lines.setdefault(f"{SECTION}.{name}", call.lineno)
            for key, node in _given(call, tuple(CALLBACKS[name].keys)):
                arguments.setdefault(key, _value(key, node))
                lines.setdefault(f"{SECTION}.{name}.{key}", call.lineno)
    return callbacks


def _callee(call: ast.Call) -> str:
    function = call.func
    callee = function.attr if isinstance(function, ast.Attribute) else ""
    return function.id if isinstance(function, ast.Name) else callee


def _given(
    call: ast.Call, positions: tuple[str, ...]
) -> Iterator[tuple[str, ast.expr]]:
    """Name and value of each argument."""
    for word in call.keywords:
        yield word.arg or UNPACKED, word.value
    yield from zip(positions, call.args, strict=False)


def _arguments(call: ast.Call) -> Iterator[tuple[str, Any]]:
    """Name and value of each, as `Profiler` would be given it."""
    callee = _callee(call)
    for name, node in _given(call, _POSITIONS.get(callee, ())):
        inner = f"{_INNER[callee]}." if callee in _INNER else _PREFIX.get(callee, "")
        is_old = callee == "Trainer" and is_old_argument(name)
        if not (inner or is_old or callee == "Profiler"):
            continue
        if not _is_call_of(node, _INNER) and name != "trace_handlers":
            is_sensor = callee == "SystemProfiler"
            key = name.removeprefix("profile_") if is_sensor else name
            yield f"{inner}{key}", _value(name, node)
    if callee == "JSONTraceHandler" and not call.keywords:
        yield "trace_handlers", "JSONTraceHandler()"


def _is_call_of(node: ast.expr, names: dict[str, str]) -> bool:
    """Whether it is a call whose own arguments are read."""
    function = getattr(node, "func", None)
    return getattr(function, "attr", getattr(function, "id", None)) in names


def _value(name: str, node: ast.expr) -> Any:
    text = ast.unparse(node)[:200]
    if name == UNPACKED:
        return NotConstant(f"{UNPACKED}{text}")
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError):
        return NotConstant(text)
