"""Rows of FSDP and module reports, and the words in them, whichever torch printed them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.collector.format.memory import (
    CATEGORIES,
    TORCH_CATEGORIES,
    TORCH_STATES,
    TORCH_TOTAL,
)
from memboard.collector.format.sizes import counted
from memboard.tb_plugin.analysis.modules.states import ALL_STATES, ModuleStates
from memboard.tb_plugin.analysis.modules.tree import tree_of_names
from memboard.tb_plugin.formats.memprofiler.stats import LeftOut, UnreadableError, shown

if TYPE_CHECKING:
    from collections.abc import Callable


UNITS: Final = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}

_ENUM_CATEGORIES: Final = {
    "SHARDED_PARAM": "sharded_param",
    "UNSHARDED_PARAM": "unsharded_param",
    "SHARDED_GRAD": "sharded_grad",
    "UNSHARDED_GRAD": "unsharded_grad",
    "PARAM": "param",
    "BUFFER": "buffer",
    "GRAD": "grad",
    "ACT": "activation",
    "TEMP": "temp",
    "ALL_GATHER": "all_gather",
    "REDUCE_SCATTER": "reduce_scatter",
    "OPT": "optimizer",
    "INP": "input",
    "OTH": "other",
}
_ENUM_STATES: Final = {
    "BEF_PRE_FW": "before_pre_forward",
    "AFT_PRE_FW": "after_pre_forward",
    "BEF_POST_FW": "before_post_forward",
    "AFT_POST_FW": "after_post_forward",
    "BEF_PRE_BW": "before_pre_backward",
    "AFT_PRE_BW": "after_pre_backward",
    "BEF_POST_BW": "before_post_backward",
    "AFT_POST_BW": "after_post_backward",
    "PRE_FW": "before_pre_forward",
    "POST_FW": "after_post_forward",
    "PRE_BW": "before_pre_backward",
    "POST_BW": "after_post_backward",
    "PRE_FW_AC": "pre_forward_ac",
    "POST_FW_AC": "post_forward_ac",
    "PEAK_FW": "peak_forward",
    "PEAK_BW": "peak_backward",
}
_ENUM: Final = re.compile(r"_?\w*(RefType|ModState)\.([A-Z_]+)")
_SIZE: Final = re.compile(r"(-?[0-9]{1,19}(?:\.[0-9]{1,6})?) ?(B|KiB|MiB|GiB)")

TOTAL: Final = "total"
"""Category of the sum of the others, as `category_of` returns it."""


def category_of(label: str) -> str | None:
    """The fine name of a category, `TOTAL`, or None where the label is neither."""
    if label == TORCH_TOTAL:
        return TOTAL
    enum = _ENUM.fullmatch(label)
    if enum is not None:
        return _ENUM_CATEGORIES.get(enum[2])
    return TORCH_CATEGORIES.get(label)


def state_of(label: str) -> str | None:
    """Our name of a module's state, or None where the label is none."""
    enum = _ENUM.fullmatch(label)
    if enum is not None:
        return _ENUM_STATES.get(enum[2])
    return TORCH_STATES.get(label)


def size_of(text: str) -> tuple[float, str] | None:
    """Bytes and the unit they were printed in; None where the text is no size."""
    match = _SIZE.fullmatch(text.strip())
    return None if match is None else (float(match[1]) * UNITS[match[2]], match[2])


MAX_ROWS: Final = 400_000
"""States of modules on devices; each takes about 300 bytes of text."""
MAX_NAME: Final = 4_000
WHOLE_WINDOW: Final = -1
"""Stands for a module where a state is no module's."""
_MAX_DEVICES: Final = 64
_MAX_DEVICE_NAME: Final = 100


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """One report. The peak is the state `window_peak`."""

    states: ModuleStates
    left_out: LeftOut
    is_cut: bool
    """It began as MemProfiler's do and has no end."""

    @property
    def rounding_bytes(self) -> float:
        # See `ModuleStates`
        return self.states.rounding_bytes

    @property
    def reasons(self) -> tuple[str, ...]:
        """What to know of its numbers, in words."""
        reasons = []
        if self.rounding_bytes:
            digit = round(2 * self.rounding_bytes)
            reasons.append(
                f"Sizes are as printed: rounded to {counted(digit, 'byte')}."
            )
        if self._peak_is_anothers():
            reasons.append(
                "The peak at the top of the report is below that of a module in it: it"
                " is another iteration's. MemProfiler prints the last iteration's peak"
                " into every report; the modules' numbers are this iteration's own."
            )
        return tuple(reasons)

    def _peak_is_anothers(self) -> bool:
        states = self.states
        at_top = states.state == ALL_STATES.index("window_peak")
        for device in range(len(states.devices)):
            here = states.device == device
            top = states.total_bytes[here & at_top]
            below = states.total_bytes[here & ~at_top]
            least = top.max(initial=-np.inf) + 4 * self.rounding_bytes
            if len(top) and (below > least).any():
                return True
        return False


@dataclass(slots=True)
class Row:
    """One state of one module on one device."""

    module: int
    state: int
    call: int
    device: int
    bytes: dict[int, float] = field(default_factory=dict)
    total: float | None = None


class Rows:
    """What a file says, row by row; what it says too much of is left out."""

    def __init__(self) -> None:
        self._modules: dict[str, int] = {}
        self._devices: dict[str, int] = {}
        self._rows: list[Row] = []
        self._coarsest = 0.0
        self._left_out = LeftOut()
        self.where = ""
        """Where in the file something stands, for what is left out."""

    def module(self, fqn: str) -> int | None:
        """The place of a module's name; None where it is no usable one."""
        if not fqn or len(fqn) > MAX_NAME:
            self.leave_out("a module has no usable name")
            return None
        return self._modules.setdefault(fqn, len(self._modules))

    def begin(self, module: int, state: int, call: int, device: str) -> Row | None:
        """A row to be filled; None where there are too many."""
        if len(self._rows) >= MAX_ROWS:
            self.leave_out(f"the report has more than {MAX_ROWS:,} entries")
            return None
        device = device[:_MAX_DEVICE_NAME]
        if device not in self._devices and len(self._devices) >= _MAX_DEVICES:
            self.leave_out(
                f"the report names more than {counted(_MAX_DEVICES, 'device')}"
            )
            return None
        index = self._devices.setdefault(device, len(self._devices))
        row = Row(module, state, call, index)
        self._rows.append(row)
        return row

    def put(self, row: Row, label: str, size_bytes: float, unit: str = "B") -> None:
        """A size of a category, or of their sum, that was printed in `unit`."""
        if unit != "B":
            self._coarsest = max(self._coarsest, UNITS[unit] * 0.005)
        category = category_of(label)
        if category == TOTAL:
            row.total = size_bytes
            return
        if category is None:
            self.leave_out(f"{shown(label)} is no known category; it counts as other")
            category = "other"
        index = CATEGORIES.index(category)
        row.bytes[index] = row.bytes.get(index, 0.0) + size_bytes

    def leave_out(self, reason: str) -> None:
        """Something could not be used; the rest can."""
        self._left_out.add(f"{self.where}: {reason}" if self.where else reason)

    def report(self, *, is_cut: bool, remedy: str) -> Report:
        """What was gathered.

        Raises:
            UnreadableError: nothing was.
        """
        if not self._rows:
            sentence = f"Nothing in the file is a memory report{self._left_out.first}."
            raise UnreadableError(sentence, "", remedy)
        return Report(
            states=self._states(),
            left_out=self._left_out,
            is_cut=is_cut,
        )

    def _states(self) -> ModuleStates:
        rows = self._rows
        present = sorted({category for row in rows for category in row.bytes})
        column = {category: index for index, category in enumerate(present)}
        sizes = np.full((len(rows), len(present)), np.nan)
        for index, row in enumerate(rows):
            for category, value in row.bytes.items():
                sizes[index, column[category]] = value
        tree = tree_of_names(tuple(self._modules))
        totals = [sum(r.bytes.values()) if r.total is None else r.total for r in rows]
        module = _ints(rows, lambda row: row.module)
        inside = module >= 0
        module[inside] = tree.row_of[module[inside]]
        return ModuleStates(
            tree=tree,
            devices=tuple(self._devices),
            categories=tuple(CATEGORIES[index] for index in present),
            module=module,
            state=_ints(rows, lambda row: row.state),
            call=_ints(rows, lambda row: row.call),
            device=_ints(rows, lambda row: row.device),
            bytes=sizes,
            total_bytes=np.array(totals, np.float64),
            rounding_bytes=self._coarsest,
        )


def _ints(
    rows: list[Row], of: Callable[[Row], int]
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.fromiter(map(of, rows), np.int64, len(rows))
