"""`fsdp_mem_rank_R_FUNCTION_ITERATION.log`: what torch's trackers print, read back."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from memboard.tb_plugin.analysis.modules.states import ALL_STATES
from memboard.tb_plugin.formats.memprofiler.rows import (
    WHOLE_WINDOW,
    Rows,
    size_of,
    state_of,
)
from memboard.tb_plugin.formats.memprofiler.stats import UnreadableError, shown

if TYPE_CHECKING:
    from memboard.tb_plugin.formats.memprofiler.rows import Report, Row


MAX_REPORT_BYTES: Final = 64 << 20
_MAX_LINE: Final = 20_000
_REMEDY: Final = "Write it again, or remove it: other files are not affected by it."

_HEADING = re.compile(
    r"Iteration (\d{1,12}) (.+) (Peak|Modulewise) \w* ?memory stats: *"
)
_RULE = re.compile(r"-{10,}")
_BORDER = re.compile(r"=+(?: +=+)* *")
_CALL = re.compile(r"# ?(\d{1,9}):?")
_STATE_AND_CALL = re.compile(r"(.+?) # ?(\d{1,9})")
_BLANKS: Final = {"", "..", "\\"}
"""First cells of a table's row that stand for the row above."""


def read_report(data: bytes) -> Report:
    """A report from its bytes.

    Raises:
        UnreadableError: nothing in it is a module's or a peak's memory.
    """
    if not data:
        raise UnreadableError("The file is empty.", "", _REMEDY)
    parser = _Parser()
    text = data.decode("utf-8", "replace")
    for number, line in enumerate(text.split("\n"), start=1):
        parser.take(line.rstrip("\r"), number)
    return parser.finish()


class _Parser:
    """One line after the other."""

    def __init__(self) -> None:
        self._rows = Rows()
        self._module = WHOLE_WINDOW
        self._state = ALL_STATES.index("window_peak")
        self._call = 0
        self._row: Row | None = None
        self._table: _Table | None = None
        self._has_headings = False
        self._rules_after_heading = 0

    def take(self, line: str, number: int) -> None:
        self._rows.where = f"line {number}"
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
        # Headings of MemProfiler: a rule after each, and one at the very end.
        is_cut = self._table is not None and not self._table.is_closed
        is_cut |= self._has_headings and self._rules_after_heading < 2
        return self._rows.report(is_cut=is_cut, remedy=_REMEDY)

    def _take_text(self, line: str) -> None:
        text = line.strip()
        heading = _HEADING.fullmatch(text)
        call = _CALL.fullmatch(text)
        if heading is not None:
            self._has_headings = True
            self._rules_after_heading = 0
            self._module, self._row = WHOLE_WINDOW, None
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
            self._leave_out(f"{shown(text)} is not a line of a report")
        else:
            self._put(self._row, label.strip(), size)

    def _begin_module(self, fqn: str) -> None:
        self._row = None
        module = self._rows.module(fqn)
        self._module = WHOLE_WINDOW if module is None else module

    def _begin_row(self, device: str) -> None:
        self._row = self._rows.begin(self._module, self._state, self._call, device)

    def _put(self, row: Row, label: str, text: str) -> None:
        size = size_of(text)
        if size is None:
            self._leave_out(f"{shown(label)}: {shown(text.strip())} is not a size")
        else:
            self._rows.put(row, label, *size)

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
                self._leave_out(f"{shown(where)} is not a state of a module")
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

    def _leave_out(self, reason: str) -> None:
        self._rows.leave_out(reason)


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
