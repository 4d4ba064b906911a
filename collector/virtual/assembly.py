"""The source of a stub: jumps to what is written in C, and answers for the rest."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from memboard.collector.virtual.answers import outputs_of

if TYPE_CHECKING:
    from memboard.collector.virtual.answers import Output
    from memboard.collector.virtual.symbols import StubSymbols

_REGISTERS = ("%rdi", "%rsi", "%rdx", "%rcx", "%r8", "%r9")
"""Registers of the first six arguments on x86-64 Linux; others are on the stack."""

_FAILING = {"libnvidia-ml": 3, "libcufile": 5001}
"""Not supported, driver not initialized: what unwritten functions of these answer."""

_NO_WORK = re.compile("Set|Get|Create|Load|Destroy|[bB]ufferSize|Plan")
"""In names of functions that put nothing on a stream: no node of a CUDA graph."""


def assembly_of(stub: StubSymbols, written: set[str]) -> str:
    """The assembly of one stub. Every call that is not written in C is counted."""
    code = [".text"]
    names = [".section .rodata", f'.Llibrary: .asciz "{stub.family}"']
    calls = [".data", ".balign 8", ".Lhandles: .quad 0x766770000000"]
    answer = _FAILING.get(stub.family, 0)
    for number, symbol in enumerate(sorted(stub.symbols)):
        code += [f".globl {symbol}", f".type {symbol}, @function", f"{symbol}:"]
        if symbol in written:
            code.append(f"  jmp *vgpu_{symbol}@GOTPCREL(%rip)")
            continue
        for output in outputs_of(symbol) or ():
            code += _writing(output)
        code += [
            f"  lea .Lcall{number}(%rip), %rdi",
            "  jmp *vgpu_count_call@GOTPCREL(%rip)",
        ]
        works = int(not _NO_WORK.search(symbol))
        names.append(f'.Lname{number}: .asciz "{symbol}"')
        calls.append(
            f".Lcall{number}: .quad .Llibrary, .Lname{number}, 0, {answer}, {works}"
        )
    return "\n".join([*code, *names, *calls, _NO_EXECUTABLE_STACK, ""])


_NO_EXECUTABLE_STACK = '.section .note.GNU-stack,"",@progbits'


def _writing(output: Output) -> list[str]:
    """Writes through one argument, unless it is NULL."""
    index = output.argument - 1
    beyond = index - len(_REGISTERS)
    place = _REGISTERS[index] if beyond < 0 else f"{8 + 8 * beyond}(%rsp)"
    store = {
        "int": [f"  movl ${output.value}, (%rax)"],
        "size": [f"  movq ${output.value}, (%rax)"],
        "handle": [
            "  mov $64, %r11d",
            "  lock xadd %r11, .Lhandles(%rip)",
            "  mov %r11, (%rax)",
        ],
    }[output.kind]
    return [f"  mov {place}, %rax", "  test %rax, %rax", "  je 1f", *store, "1:"]


def version_script(stub: StubSymbols) -> str:
    """The linker's script that gives each symbol its version; "" where none has one."""
    by_version: dict[str, list[str]] = {}
    for symbol, version in sorted(stub.symbols.items()):
        if version:
            by_version.setdefault(version, []).append(symbol)
    return "".join(
        f"{version} {{ global: {'; '.join(names)}; }};\n"
        for version, names in by_version.items()
    )
