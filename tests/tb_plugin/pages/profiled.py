"""Answers about a logdir of traces, once the trace that they are of is open."""

from __future__ import annotations

import contextlib
import io
import json
from typing import TYPE_CHECKING, Any

from memboard.tb_plugin.cli import main
from tests.tb_plugin.client import answered

if TYPE_CHECKING:
    from tests.tb_plugin.client import Page


def run_of(page: Page) -> str:
    (run,) = page.get("/runs")["runs"]
    return run["id"]


def ask(page: Page, route: str, *, run: str = "", **query):
    """An answer, once the trace that it is of is open; with the columns of its table.

    `run`: its id; where none is given there is one alone.
    """
    run = run or run_of(page)

    def is_open(answer) -> bool:
        choice = answer.get("choice")
        opening = answer.get("num_opening") if choice is None else 0
        return not opening and (choice is None or choice["state"] != "opening")

    answer = answered(lambda: page.get(f"/{route}", run=run, **query), is_open)
    return {**answer, **columns_of(answer.get("table", {"columns": ()}))}


def reported(page: Page, *words: str) -> str:
    """What the command says of all runs of the page."""
    (logdir,) = page.store.index.logdirs
    with contextlib.redirect_stdout(io.StringIO()) as said:
        main(["report", *words, str(logdir.path)])  # its status says if it found damage
    return said.getvalue()


def findings_of(page: Page) -> list[dict[str, Any]]:
    """Those of `/findings`, once nothing is being read any more."""
    run = run_of(page)
    answer = answered(
        lambda: page.get("/findings", run=run), lambda got: not got["still_reading"]
    )
    findings: list[dict[str, Any]] = answer["findings"]
    return findings


def straggler_of(page: Page) -> int | None:
    """The rank that every place names alike, or that none names."""
    findings = findings_of(page)  # nobody looked at the ranks before
    answer = ask(page, "distributed")
    (run,) = json.loads(reported(page, "--json"))["runs"]
    listed = {
        "distributed": answer["findings"],
        "findings": findings,
        "report": run["findings"]["findings"],
    }
    named = {
        place: {
            (found["rank"], found["sentence"])
            for found in every
            if is_of_straggler(found)
        }
        for place, every in listed.items()
    }
    assert named["distributed"] == named["findings"] == named["report"], named
    if not named["findings"]:
        assert "is the straggler" not in answer["sentence"]
        return None
    ((rank, sentence),) = named["findings"]
    assert answer["sentence"].startswith(f"Rank {rank} is the straggler. ")
    for words in ((), ("--md",)):
        assert sentence in " ".join(reported(page, *words).split()), words
    return rank


def is_of_straggler(finding: dict[str, Any]) -> bool:
    return finding["title"] == "Straggler"


def columns_of(table) -> dict:
    """The values of a table that is sent, by column."""
    return {
        one["key"]: list(one["texts"]) if one["texts"] else one["numbers"]
        for one in table["columns"]
    }
