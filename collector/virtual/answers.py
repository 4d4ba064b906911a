"""Reads `native/tables/answers.txt`: answers of functions that are not written in C."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import translate
from functools import cache
from pathlib import Path

TABLES = Path(__file__).parent / "native" / "tables"


@dataclass(frozen=True)
class Output:
    """What a function writes through its argument number `argument` (from 1)."""

    argument: int
    kind: str
    value: int = 0


@cache
def _table() -> list[tuple[re.Pattern[str], tuple[Output, ...]]]:
    lines = (TABLES / "answers.txt").read_text().splitlines()
    return [
        (re.compile(translate(pattern)), tuple(map(_output, outputs)))
        for line in lines
        if line.strip() and not line.startswith("#")
        for pattern, *outputs in [line.split()]
    ]


def _output(text: str) -> Output:
    argument, _, kind_and_value = text.partition(":")
    kind, _, value = kind_and_value.partition("=")
    return Output(int(argument), kind, int(value or 0))


def outputs_of(function: str) -> tuple[Output, ...] | None:
    """What a function writes; None for one that is unknown."""
    return next(
        (outputs for pattern, outputs in _table() if pattern.match(function)), None
    )
