"""The pickle machine without the opcodes that make it dangerous.

No unpickler runs. The few opcodes that build mappings, lists, texts and numbers are
carried out here; what wants to import or call something leaves a `Refused` in its
place, except for the defaultdict that MemProfiler dumps, which is the mapping it holds.
Memory stays within a small multiple of the number of opcodes: nothing is copied by
being referred to.
"""

from __future__ import annotations

import pickletools
from typing import Any, Final

from tb_plugin.readers.memprofiler.stats import Refused, shown

MAX_OPCODES: Final = 2_000_000
"""Enough for 5,000 snaps."""

_MARK: Final = Refused("the mark")
_MAPPINGS: Final = {
    "collections defaultdict": 1,
    "builtins dict": 0,
    "__builtin__ dict": 0,
}
"""What may be called, by how many arguments: it makes an empty mapping."""

_PUSH_ARGUMENT: Final = {
    *("BININT", "BININT1", "BININT2", "INT", "LONG", "LONG1", "LONG4"),
    *("BINFLOAT", "FLOAT", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
    *("STRING", "BINSTRING", "SHORT_BINSTRING"),
    *("BINBYTES", "SHORT_BINBYTES", "BINBYTES8"),
}
_PUSH_CONSTANT: Final = {
    "NONE": None,
    "NEWTRUE": True,
    "NEWFALSE": False,
    "EMPTY_TUPLE": (),
    "EMPTY_SET": Refused("builtins set"),
    "MARK": _MARK,
}


class PickleMachine:
    """Runs one pickle."""

    def __init__(self) -> None:
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}
        self.position = 0
        """Byte offset of the opcode being carried out."""

    def run(self, data: bytes) -> Any:
        """What the pickle makes: mappings, lists, tuples, scalars and `Refused`.

        Raises:
            ValueError: it is cut off, damaged, or uses what no plain data needs.
        """
        try:
            for count, (opcode, argument, at) in enumerate(pickletools.genops(data)):
                self.position = at or 0
                if count >= MAX_OPCODES:
                    raise ValueError(f"it has more than {MAX_OPCODES:,} opcodes")
                if opcode.name == "STOP":
                    return self._pop(1)[0]
                self._do(opcode.name, argument)
        except (IndexError, KeyError, TypeError, OverflowError) as error:
            raise ValueError(f"its opcodes do not fit together ({error})") from error
        raise ValueError("it has no end")

    def _do(self, name: str, argument: Any) -> None:
        stack = self._stack
        if name in _PUSH_ARGUMENT:
            stack.append(argument)
        elif name in _PUSH_CONSTANT:
            stack.append(_PUSH_CONSTANT[name])
        elif name == "MEMOIZE":
            self._memo[len(self._memo)] = stack[-1]
        elif name in ("BINPUT", "LONG_BINPUT", "PUT"):
            self._memo[argument] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET", "GET"):
            stack.append(self._memo[argument])
        elif name in ("SETITEM", "SETITEMS"):
            self._set_items(self._pop(2) if name == "SETITEM" else self._to_mark())
        else:
            self._do_rarer(name, argument)

    def _do_rarer(self, name: str, argument: Any) -> None:
        stack = self._stack
        match name:
            case "PROTO" | "FRAME":
                pass
            case "EMPTY_DICT":
                stack.append({})
            case "EMPTY_LIST":
                stack.append([])
            case "DICT":
                items = self._to_mark()
                stack.append({})
                self._set_items(items)
            case "LIST":
                stack.append(self._to_mark())
            case "APPEND" | "APPENDS":
                items = self._pop(1) if name == "APPEND" else self._to_mark()
                if isinstance(stack[-1], list):
                    stack[-1].extend(items)
            case "ADDITEMS" | "POP_MARK":
                self._to_mark()
            case "POP" | "BUILD":  # BUILD: the state of an object that was never made
                self._pop(1)
            case "TUPLE":
                stack.append(tuple(self._to_mark()))
            case "TUPLE1" | "TUPLE2" | "TUPLE3":
                stack.append(tuple(self._pop(int(name[-1]))))
            case "GLOBAL":
                stack.append(Refused(argument))
            case "STACK_GLOBAL":
                module, attribute = self._pop(2)
                stack.append(Refused(f"{shown(module)} {shown(attribute)}"))
            case "REDUCE" | "NEWOBJ":
                made, arguments = self._pop(2)
                stack.append(_called(made, arguments))
            case "NEWOBJ_EX":
                stack.append(_refused(self._pop(3)[0]))
            case "OBJ":
                stack.append(_refused(self._to_mark()[0]))
            case "INST":
                self._to_mark()
                stack.append(Refused(argument))
            case _:
                raise ValueError(f"opcode {name} has no place in a file of numbers")

    def _to_mark(self) -> list[Any]:
        at = len(self._stack) - 1
        while at >= 0 and self._stack[at] is not _MARK:
            at -= 1
        if at < 0:
            raise IndexError("a mark is missing")
        taken = self._stack[at + 1 :]
        del self._stack[at:]
        return taken

    def _pop(self, count: int) -> list[Any]:
        at = len(self._stack) - count
        if at < 0:
            raise IndexError("the stack is empty")
        taken = self._stack[at:]
        del self._stack[at:]
        return taken

    def _set_items(self, items: list[Any]) -> None:
        if len(items) % 2:
            raise IndexError("a key without a value")
        target = self._stack[-1]
        if isinstance(target, dict):
            # Other keys than texts name nothing here; they may not even be hashable.
            for key, value in zip(items[::2], items[1::2], strict=True):
                target[key if isinstance(key, str) else shown(key)] = value


def _called(made: Any, arguments: Any) -> Any:
    """What a call would have made: an empty mapping, or nothing of the kind."""
    if isinstance(made, Refused) and isinstance(arguments, tuple):
        most = _MAPPINGS.get(made.name)
        if most is not None and len(arguments) <= most:
            return {}
    return _refused(made)


def _refused(made: Any) -> Refused:
    return made if isinstance(made, Refused) else Refused(shown(made))
