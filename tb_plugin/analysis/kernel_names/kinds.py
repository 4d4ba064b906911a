"""The kind of a kernel by its name: its category, matrix cores, communication.

One table says it for all pages. A name that fits no rule is not known: it is of category
`other`, and whether it uses matrix cores is None, never False.
"""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

KernelCategory: TypeAlias = Literal[
    "matmul",
    "convolution",
    "attention",
    "norm",
    "reduction",
    "elementwise",
    "copy",
    "communication",
    "other",
]
Communication: TypeAlias = Literal["yes", "no", "asked"]
"""asked: the name says that data move across ranks, and belongs to no known library."""

COMMUNICATION_VARIABLE: Final = "MEMBOARD_PLUGIN_COMMUNICATION_KERNELS"
"""Names of kernels that communicate, or parts of them, with commas between."""
COMPUTATION_VARIABLE: Final = "MEMBOARD_PLUGIN_COMPUTATION_KERNELS"
"""Likewise of kernels that do not."""
RULES: Final = Path(__file__).with_name("rules.tsv")
MAX_LETTERS: Final = 4_000
"""Of a name that are looked at: template arguments may go on for far more."""
_ASKED: Final = "communication?"


class KernelKind(NamedTuple):
    category: KernelCategory
    matrix_cores: bool | None
    """Tensor cores, or AMD's matrix cores; None: the name does not say."""
    communication: Communication


class Rule(NamedTuple):
    """A row of the table."""

    keywords: tuple[str, ...]
    """One of them is in the name: far cheaper to look for than the pattern."""
    pattern: re.Pattern[str] | None
    kind: KernelKind
    kind_on_cdna: KernelKind

    def fits(self, lower_name: str) -> bool:
        return any(keyword in lower_name for keyword in self.keywords) and (
            self.pattern is None or self.pattern.search(lower_name) is not None
        )


UNKNOWN: Final = KernelKind("other", None, "no")


def kernel_kind(kernel_name: str, *, on_cdna: bool = False) -> KernelKind:
    """The kind by the first rule that fits.

    `on_cdna`: the device is one of AMD's Instinct, where every product of Triton's uses
    matrix cores; elsewhere that depends on data types, which names do not say.
    """
    lower_name = kernel_name[:MAX_LETTERS].lower()
    for rule in kernel_rules():
        if rule.fits(lower_name):
            return rule.kind_on_cdna if on_cdna else rule.kind
    return UNKNOWN


def communicates(kernel_name: str) -> bool:
    """Whether a kernel moves data between devices, or waits for other devices."""
    return kernel_kind(kernel_name).communication == "yes"


@cache
def kernel_rules() -> tuple[Rule, ...]:
    """What the user says, then the rows of the table, in order."""
    lines = RULES.read_text(encoding="utf-8").splitlines()
    return (
        *_user_rules(COMMUNICATION_VARIABLE, KernelKind("communication", False, "yes")),
        *_user_rules(COMPUTATION_VARIABLE, UNKNOWN),
        *(_rule(line) for line in lines if not line.startswith("#")),
    )


def _user_rules(variable: str, kind: KernelKind) -> Iterator[Rule]:
    keywords = [
        part.strip().lower() for part in os.environ.get(variable, "").split(",")
    ]
    keywords = [*filter(None, keywords)]
    if keywords:
        yield Rule(tuple(keywords), None, kind, kind)


def _rule(line: str) -> Rule:
    keywords, pattern, category, cores = line.split("\t")
    kinds = [
        _kind(category, is_used)
        for is_used in (
            {"yes": True, "no": False}.get(cores),
            {"yes": True, "cdna": True, "no": False}.get(cores),
        )
    ]
    return Rule(
        tuple(keywords.split("|")),
        re.compile(pattern, re.DOTALL) if pattern else None,
        *kinds,
    )


def _kind(category: str, matrix_cores: bool | None) -> KernelKind:
    if category == _ASKED:
        return KernelKind("other", matrix_cores, "asked")
    communication: Communication = "yes" if category == "communication" else "no"
    return KernelKind(category, matrix_cores, communication)  # type: ignore[arg-type]  # a test reads the table
