"""`fsdp_mem_rank_R_FUNCTION_ITERATION.log`: what torch's trackers print, read back.

A report is a peak by device and category, then for each module its states, each with
its calls and devices; as lines or as tables (rst), in any unit. What torch's
FSDPMemTracker and MemTracker print without MemProfiler's headings is read as well. Lines
that mean nothing are counted and the first ones named; nothing else is lost by them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from collector.format.memory import CATEGORIES
from tb_plugin.analysis.module_states import ALL_STATES, ModuleStates
from tb_plugin.analysis.module_tree import tree_of_names
from tb_plugin.readers.memprofiler.errors import UnreadableError
from tb_plugin.readers.memprofiler.report_words import (
    TOTAL,
    UNITS,
    category_of,
    size_of,
    state_of,
)
from tb_plugin.readers.memprofiler.stats import shown

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_REPORT_BYTES: Final = 64 << 20
MAX_ROWS: Final = 400_000
"""States of modules on devices; each takes about 300 bytes of text."""
MAX_NAME: Final = 4_000
_MAX_LINE: Final = 20_000
_MAX_DEVICES: Final = 64
_MAX_LEFT_OUT: Final = 5
_REMEDY: Final = "Write it again, or remove it: other files are not affected by it."
_WHOLE_WINDOW: Final = -1

_HEADING = re.compile(
    r"Iteration (\d{1,12}) (.+) (Peak|Modulewise) \w* ?memory stats: *"
)
_RULE = re.compile(r"-{10,}")
_BORDER = re.compile(r"=+(?: +=+)* *")
_CALL = re.compile(r"# ?(\d{1,9}):?")
_STATE_AND_CALL = re.compile(r"(.+?) # ?(\d{1,9})")
_BLANKS: Final = {"", "..", "\\"}
"""First cells of a table's row that stand for the row above."""


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """One report. The peak is the state `window_peak`."""

    states: ModuleStates
    rounding_bytes: float
    """Half of the last printed digit: how far a number may be off."""
    left_out: tuple[str, ...]
    num_left_out: int
    is_cut: bool
    """It began as MemProfiler's do and has no end."""

    @property
    def reasons(self) -> tuple[str, ...]:
        """What to know of its numbers, in words."""
        found = []
        if self.rounding_bytes:
            digit = round(2 * self.rounding_bytes)
            found.append(f"Sizes are as printed: rounded to {digit:,} bytes.")
        if self._peak_is_anothers():
            found.append(
                "The peak at the top of the report is below that of a module in it: it"
                " is another iteration's. MemProfiler prints the last iteration's peak"
                " into every report; the modules' numbers are this iteration's own."
            )
        return tuple(found)

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


def read_report(data: bytes) -> Report:
    """A report from its bytes.

    Raises:
        UnreadableError: nothing in it is a module's or a peak's memory.
    """
    parser = _Parser()
    text = data.decode("utf-8", "replace")
    for number, line in enumerate(text.split("\n"), start=1):
        parser.take(line.rstrip("\r"), number)
    return parser.finish()


@dataclass(slots=True)
class _Row:
    module: int
    state: int
    call: int
    device: int
    bytes: dict[int, float] = field(default_factory=dict)
    total: float | None = None


class _Parser:
    """One line after the other."""

    def __init__(self) -> None:
        self._modules: dict[str, int] = {}
        self._devices: dict[str, int] = {}
        self._rows: list[_Row] = []
        self._module = _WHOLE_WINDOW
        self._state = ALL_STATES.index("window_peak")
        self._call = 0
        self._row: _Row | None = None
        self._table: _Table | None = None
        self._coarsest = 0.0
        self._left_out: list[str] = []
        self._num_left_out = 0
        self._has_headings = False
        self._rules_after_heading = 0
        self._number = 0

    def take(self, line: str, number: int) -> None:
        """The next line."""
        self._number = number
        if len(line) > _MAX_LINE:
            self._leave_out("a line is too long")
            return
        if self._table is not None:
            self._take_table_line(line)
        elif not line.strip() or line.strip() == "No memory tracked.":
            pass
        elif _RULE.fullmatch(line.strip()):
            self._rules_after_heading += 1
        elif _BORDER.fullmatch(line):
            self._table = _Table(line)
        else:
            self._take_text(line)

    def finish(self) -> Report:
        """What was read."""
        if not self._rows:
            first = f" ({self._left_out[0]})" if self._left_out else ""
            raise UnreadableError(
                f"Nothing in the file is a memory report{first}.", "", _REMEDY
            )
        # Headings of MemProfiler: a rule after each, and one at the very end.
        is_cut = self._table is not None and not self._table.is_closed
        is_cut |= self._has_headings and self._rules_after_heading < 2
        return Report(
            states=self._states(),
            rounding_bytes=self._coarsest,
            left_out=tuple(self._left_out),
            num_left_out=self._num_left_out,
            is_cut=is_cut,
        )

    def _take_text(self, line: str) -> None:
        text = line.strip()
        heading = _HEADING.fullmatch(text)
        call = _CALL.fullmatch(text)
        if heading is not None:
            self._has_headings = True
            self._rules_after_heading = 0
            self._module, self._row = _WHOLE_WINDOW, None
            self._state, self._call = ALL_STATES.index("window_peak"), 0
        elif text.startswith("Module:"):
            self._begin_module(text[len("Module:") :].strip())
        elif text.startswith("Device:"):
            self._begin_row(text[len("Device:") :].strip())
        elif call is not None:
            self._call, self._row = max(0, int(call[1]) - 1), None
        elif (state := state_of(text)) is not None:
            self._state, self._call, self._row = ALL_STATES.index(state), 0, None
        else:
            self._take_size(text)

    def _take_size(self, text: str) -> None:
        label, colon, size = text.rpartition(":")
        if self._row is None or not colon:
            self._leave_out(f"{shown(text)} is no line of a report")
        else:
            self._put(self._row, label.strip(), size)

    def _begin_module(self, fqn: str) -> None:
        self._row = None
        if not fqn or len(fqn) > MAX_NAME:
            self._leave_out("a module has no usable name")
            self._module = _WHOLE_WINDOW
            return
        self._module = self._modules.setdefault(fqn, len(self._modules))

    def _begin_row(self, device: str) -> None:
        self._row = None
        if len(self._rows) >= MAX_ROWS:
            self._leave_out(f"the report has more than {MAX_ROWS:,} entries")
            return
        if device not in self._devices and len(self._devices) >= _MAX_DEVICES:
            self._leave_out(f"the report names more than {_MAX_DEVICES} devices")
            return
        index = self._devices.setdefault(device[:100], len(self._devices))
        self._row = _Row(self._module, self._state, self._call, index)
        self._rows.append(self._row)

    def _put(self, row: _Row, label: str, text: str) -> None:
        size = size_of(text)
        if size is None:
            self._leave_out(f"{shown(label)}: {shown(text.strip())} is no size")
            return
        bytes_, unit = size
        if unit != "B":
            self._coarsest = max(self._coarsest, UNITS[unit] * 0.005)
        category = category_of(label)
        if category == TOTAL:
            row.total = bytes_
            return
        if category is None:
            self._leave_out(f"{shown(label)} is no known category; it counts as other")
            category = "other"
        index = CATEGORIES.index(category)
        row.bytes[index] = row.bytes.get(index, 0.0) + bytes_

    def _take_table_line(self, line: str) -> None:
        table = self._table
        assert table is not None  # noqa: S101  # see `take`
        cells = table.cells(line)
        if table.is_closed:
            self._table = None
        elif cells is not None:
            self._take_cells(dict(zip(table.headers, cells, strict=True)))

    def _take_cells(self, cells: dict[str, str]) -> None:
        where = cells.pop("State & Call", None)
        device = cells.pop("Device", "")
        if where is not None and where not in _BLANKS:
            match = _STATE_AND_CALL.fullmatch(where)
            state = state_of(match[1]) if match is not None else None
            if match is None or state is None:
                self._leave_out(f"{shown(where)} is no state of a module")
                self._state = -1
            else:
                self._state = ALL_STATES.index(state)
                self._call = max(0, int(match[2]) - 1)
        if self._state < 0 or not device:
            return
        self._begin_row(device)
        if self._row is not None:
            for label, text in cells.items():
                if text:
                    self._put(self._row, label, text)

    def _leave_out(self, what: str) -> None:
        self._num_left_out += 1
        if len(self._left_out) < _MAX_LEFT_OUT:
            self._left_out.append(f"line {self._number}: {what}")

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
        )


class _Table:
    """An rst table as `tabulate` prints it: columns stand where the border has runs."""

    def __init__(self, border: str) -> None:
        starts = [match.start() for match in re.finditer("=+", border)]
        self._spans = list(zip(starts, [*starts[1:], None], strict=True))
        self._num_borders = 1
        self.headers: list[str] = []

    @property
    def is_closed(self) -> bool:
        """Whether the last border was met."""
        return self._num_borders >= 3

    def cells(self, line: str) -> list[str] | None:
        """A row's cells; None for borders, the head and blank lines."""
        if _BORDER.fullmatch(line) and line.strip():
            # Two borders in a row: a table without head and rows.
            self._num_borders += 1 if self.headers else 2
            return None
        cells = [line[start:stop].strip() for start, stop in self._spans]
        if not any(cells):
            return None
        if self._num_borders == 1:
            self.headers = cells
            return None
        return cells


def _ints(
    rows: list[_Row], of: Callable[[_Row], int]
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.fromiter(map(of, rows), np.int64, len(rows))
