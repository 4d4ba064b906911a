"""What the page copies as Markdown is what the server writes."""

from __future__ import annotations

import json
from operator import itemgetter
from pathlib import Path

from memboard.tb_plugin.analysis.text_tables import Column, Table, plain
from memboard.tb_plugin.cli import main
from tests.tb_plugin.client import Page

WORDS = Path(__file__).parents[2] / "frontend/src/model/words"


def test_tables_are_written_as_the_page_writes_them():
    # frontend/src/model/words/markdown.test.ts expects the same of the page.
    for case in json.loads((WORDS / "markdown_cases.json").read_text()):
        columns = [
            Column(plain(column["title"]), itemgetter(index), column["isText"])
            for index, column in enumerate(case["columns"])
        ]
        assert [*Table(columns, case["rows"]).markdown_lines()] == case["markdown"]


def test_a_finding_is_copied_as_the_report_writes_it(run, tmp_path, capsys):
    rank = run.rank(0)
    rank.steps(range(5), rss_bytes=[300 << 20] * 5)
    rank.close("exception", "ValueError: a | b", step=5, phase="val")
    findings = Page(tmp_path).of_run("/findings", "exp")["findings"]
    main(["report", str(tmp_path), "--md"])
    report = capsys.readouterr().out
    markdown = next(
        finding["markdown"] for finding in findings if finding["severity"] == "error"
    )
    assert "ValueError: a \\| b" in markdown
    assert markdown in report
