"""Formulas of all operators by their names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from memboard.tb_plugin.analysis.efficiency import attention, convolution, matmul

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.efficiency.arguments import (
        Arguments,
        Formula,
        OperatorWork,
    )

MAX_FLOP: Final = 1 << 60
"""Of one call: no device does more, and sums stay whole numbers of 64 bits."""

_WITH_VALUES: Final = {**attention.FORMULAS, **convolution.FORMULAS}
_FORMULAS: Final = {**matmul.FORMULAS, **_WITH_VALUES}


def formula_of(operator: str) -> Formula | None:
    formula = _FORMULAS.get(operator)
    if formula is None and matmul.FOREIGN.fullmatch(operator):
        return matmul.foreign_product
    return formula


def needs_values(operator: str) -> bool:
    """Whether numbers and flags among the arguments decide, not shapes alone."""
    return operator in _WITH_VALUES


def operator_work(operator: str, arguments: Arguments) -> OperatorWork | None:
    """None: there is no formula, or the arguments do not say enough."""
    formula = formula_of(operator)
    work = None if formula is None else formula(arguments)
    if work is None or not 0 < work.flop <= MAX_FLOP:
        return None
    return work if work.moved_bytes <= MAX_FLOP else None
