"""Pages, tabs and keys that the documentation names are those of the page."""

from __future__ import annotations

import re
from pathlib import Path

from tests.test_docs import TEXTS

ROOT = Path(__file__).parent.parent


def test_pages_and_tabs_are_those_of_the_page():
    loads = (ROOT / "frontend/src/app/pages.ts").read_text().partition("LOADS")[2]
    pages = re.findall(
        r"^  ([A-Z]\w+): \{\n(.*?)^  \},", loads, re.MULTILINE | re.DOTALL
    )
    assert [name for name, _ in pages] == re.findall(
        r"^\| \[(\w+)\]\(#\w+\) \|", TEXTS["pages"], re.MULTILINE
    )
    for name, body in pages:
        tabs = re.findall(r"^    (\w+): async", body, re.MULTILINE)
        part = TEXTS["pages"].partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        shown = re.findall(r"^\*\*(\w+)\*\* ", part, re.MULTILINE)
        assert shown == ([tab.title() for tab in tabs] if len(tabs) > 1 else []), name


def test_keys_of_the_page_are_those_of_its_commands():
    table = TEXTS["pages"].partition("| key | does |")[2].partition("\n\n")[0]
    named = set(re.findall(r"`(\S+)`", table)) | {"Ctrl+K", "?"}
    files = [path.read_text() for path in (ROOT / "frontend/src").rglob("*.ts*")]
    rows = {key for text in files for key in re.findall(r'"(\S{1,8})",?\s*\]', text)}
    plain = {{"Esc": "Escape"}.get(key, key) for key in named}
    known = {key.lower() for key in rows}
    assert sorted(key for key in plain if key.lower() not in known) == []
