"""The table of settings in the documentation is what the structs say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import fields

from collector.config import RecordConfig, sections, settings, variable
from collector.config.memprofiler import KEYS
from collector.config.table import BEGIN, END, main, markdown, meanings, replaced
from collector.errors import ConfigError

ROOT = Path(__file__).parent.parent
SETTINGS = ROOT / "tb_plugin" / "docs" / "settings.md"
MEMPROFILER = SETTINGS.with_name("memprofiler.md")


def test_the_documented_table_is_current():
    text = SETTINGS.read_text(encoding="utf-8")
    assert BEGIN in text, f"settings.md lacks the lines {BEGIN} and {END}"
    assert replaced(text) == text, (
        "run: python -m collector.config.table --write tb_plugin/docs/settings.md"
    )


def test_every_field_has_its_meaning():
    for owner in {RecordConfig, *map(type, sections().values())}:
        found = meanings(owner)
        assert list(found) == [item.name for item in fields(owner)]
        for name, meaning in found.items():
            assert meaning.endswith("."), name
            assert len(meaning) > 15, name


def test_the_table_has_a_row_for_every_key():
    rows = markdown().splitlines()[2:]
    assert len(rows) == len(settings())
    for row, path in zip(rows, settings(), strict=True):
        assert row.startswith(f"| `{path}` | ")
        assert f"`{variable(path)}`" in row
        assert row.replace("\\|", "").count("|") == 6


def test_the_command_prints_and_writes_the_table(tmp_path, capsys):
    printed = subprocess.run(
        [sys.executable, "-m", "collector.config.table", "--markdown"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    assert printed.stdout == markdown() + "\n"
    assert printed.stderr == ""
    page = tmp_path / "page.md"
    page.write_text(f"above\n{BEGIN}\nold\n{END}\nbelow\n")
    assert main(["--write", str(page)]) == 0
    expected = f"above\n{BEGIN}\n{markdown()}\n{END}\nbelow\n"
    assert page.read_text() == expected
    assert main(["--write", str(page)]) == 0
    assert page.read_text() == expected
    page.write_text("no markers\n")
    with pytest.raises(SystemExit):
        main(["--write", str(page)])
    assert BEGIN in capsys.readouterr().err
    assert page.read_text() == "no markers\n"


def test_markers_must_be_whole_and_alone():
    for text in ("", BEGIN, f"{END} {BEGIN}", f"{BEGIN}{END}{BEGIN}{END}"):
        with pytest.raises(ConfigError, match="put the lines"):
            replaced(text)


def test_every_key_of_memprofiler_that_its_page_names_is_one():
    text = MEMPROFILER.read_text(encoding="utf-8")
    part = text.partition("<!-- memprofiler:begin -->")[2]
    part = part.partition("<!-- memprofiler:end -->")[0]
    rows = [row.split("|") for row in part.splitlines() if row.startswith("| `")]
    theirs = {name for row in rows for name in re.findall(r"`([a-z_.]+)", row[1])}
    known = {*KEYS, *(key.partition(".")[0] for key in KEYS)}
    assert theirs - known == {"identity_lambda", "npp_diff"}, "words, not keys"
    ours = {name for row in rows for name in re.findall(r"`(\w+)\.\*`", row[2])}
    assert ours <= set(sections())
    assert len(rows) >= 6
