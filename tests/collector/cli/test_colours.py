"""Colours and the width of the command line: on a terminal, and nowhere else."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memboard.tb_plugin.analysis.text_tables import text_table
from tests.builders import RunBuilder
from tests.simulate import oom_case

RED, OFF = "\x1b[1;31m", "\x1b[0m"


def lines_on_terminal(*words: object, **environment: str) -> list[str]:
    """The lines that stay, without colours: progress is written over."""
    said = re.sub(r"\x1b\[[0-9;]*[mK]", "", on_terminal(*words, **environment))
    return [line.rpartition("\r")[2] for line in said.replace("\r\n", "\n").split("\n")]


def on_terminal(*words: object, **environment: str) -> str:
    """What `memboard` prints on a terminal of its own."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "memboard.tb_plugin.cli", *map(str, words)]
    inherited = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "TERM")}
    environment = {**inherited, "TERM": "xterm", **environment}
    process = subprocess.Popen(command, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    said = b""
    try:
        while more := os.read(ours, 65_536):
            said += more
    except OSError:  # Linux: the other side is closed
        pass
    process.wait(120)
    return said.decode()


@pytest.fixture
def dumped(tmp_path):
    oom_case("fragmented", 7).write(tmp_path)
    return tmp_path


def test_an_error_is_red_on_a_terminal_and_advice_is_green(dumped):
    said = on_terminal("report", dumped)
    assert f"{RED}Out of memory: fragmentation" in said
    assert "\x1b[32mtry: " in said
    assert said.count(OFF) == said.count("\x1b[") - said.count(OFF) - said.count(
        "\x1b[K"
    )


@pytest.mark.parametrize("off", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_colour_can_be_switched_off(dumped, off):
    said = on_terminal("report", dumped, **off)
    assert "Out of memory" in said
    assert "\x1b[1;31m" not in said
    assert "\x1b[32m" not in said


def test_a_file_gets_no_colour(dumped):
    command = [sys.executable, "-m", "memboard.tb_plugin.cli", "report", str(dumped)]
    said = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "Out of memory" in said.stdout
    assert "\x1b" not in said.stdout


def test_a_failure_is_red_and_says_what_to_do_in_green(tmp_path):
    said = on_terminal("report", tmp_path / "nothing.pickle")
    assert "\x1b[31mmemboard report: " in said
    assert "\x1b[32mwhat to do: " in said


def test_sentences_are_wrapped_to_the_terminal(dumped):
    lines = lines_on_terminal("report", dumped, COLUMNS="64")
    assert any(line.lstrip().startswith("try: ") for line in lines)
    too_long = [line for line in lines if len(line) > 64]
    # Only words that are as long as that.
    assert [line for line in too_long if " " in line.strip()] == []


def test_rows_of_tables_are_wrapped_to_the_terminal(tmp_path):
    builder = RunBuilder(tmp_path / "run")
    builder.simple(2, 5)
    lines = ["by self CPU", "operator" + "  self CPU" * 9]
    lines += [f"aten::operator_{at}" + "  1.234 ms" * 9 for at in range(12)]
    meta = {"path": "a.json", "first_step": 1, "last_step": 2}
    meta["summary"] = "\n".join(lines)
    rank = builder.rank(2)
    rank.capture(kind="trace", function="step", step=3, meta=meta)
    rank.close()
    for width in (60, 80, 120):
        lines = lines_on_terminal("report", tmp_path, COLUMNS=str(width))
        assert max(len(line) for line in lines) <= width
        assert sum("aten::operator_0" in line for line in lines) > (width < 120)
        assert any("caveat" in line for line in lines)


words = st.text("abcdefgh", min_size=1, max_size=9)
cells = st.lists(words, min_size=1, max_size=12).map(" ".join)


@given(
    num_columns=st.integers(1, 8),
    data=st.data(),
    max_width=st.integers(50, 120),
)
def test_a_table_that_is_wrapped_loses_no_word(num_columns, data, max_width):
    left = sorted({0, *data.draw(st.lists(st.integers(0, num_columns - 1)))})
    kinds = [cells if at in left else words for at in range(num_columns)]
    rows = data.draw(st.lists(st.tuples(*kinds), max_size=4))
    head = data.draw(st.tuples(*[words] * num_columns))
    lines = [*text_table(head, rows, left, max_width)]
    assert max(map(len, lines)) <= max_width
    said = Counter(" ".join(lines).split())
    assert (
        not Counter(" ".join(cell for row in (head, *rows) for cell in row).split())
        - said
    )
    assert [*text_table(head, rows, left)] == [*text_table(head, rows, left, 10_000)]


def test_a_colour_goes_on_behind_the_end_of_a_line(dumped):
    said = on_terminal("report", dumped, COLUMNS="64").replace("\r", "")
    lines = said.split("\n")
    begin = next(i for i, line in enumerate(lines) if "\x1b[32mtry: " in line)
    assert lines[begin].endswith("\x1b[0m")
    assert lines[begin + 1].lstrip().startswith("\x1b[32m")
