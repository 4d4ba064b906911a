"""Work of devices that does not say what launched it is linked by its arrows.

Kineto writes the same number to a call and to its work (`correlation`), and to an operator
and to its work (`External id`). Ascend's profiler draws arrows instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from memboard.tb_plugin.analysis.arrays import NOTHING, places_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Ints: TypeAlias = npt.NDArray[Any]
    Columns: TypeAlias = dict[str, Any]

_OF_CALL: Final = "HostToDevice"
_OF_OPERATOR: Final = "async_npu"


def link_work(tables: dict[str, Columns], texts: Sequence[str]) -> None:
    """Give numbers to calls and operators, and to the work that their arrows reach.

    Args:
        tables: of a trace; `launches`, `operators` and `device_work` are changed.
        texts: of categories.
    """
    work, flows = tables["device_work"], tables["flows"]
    if not len(work["row"]) or (work["correlation"] > 0).any():
        return
    for category, callers, column in (
        (_OF_CALL, tables["launches"], "correlation"),
        (_OF_OPERATOR, tables["operators"], "external_id"),
    ):
        if category not in texts or not len(callers["row"]):
            continue
        own = flows["category"] == texts.index(category)
        from_row, to_row = flows["from_row"][own], flows["to_row"][own]
        caller = places_in(callers["row"], from_row)
        reached = places_in(work["row"], to_row)
        is_link = (caller != NOTHING) & (reached != NOTHING)
        numbers = np.arange(1, len(callers["row"]) + 1)
        callers[column][caller[is_link]] = numbers[caller[is_link]]
        work[column][reached[is_link]] = numbers[caller[is_link]]
