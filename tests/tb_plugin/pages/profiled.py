"""Answers about a logdir of traces, once the trace that they are of is open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.tb_plugin.client import answered

if TYPE_CHECKING:
    from tests.tb_plugin.client import Page


def run_of(page: Page) -> str:
    (run,) = page.get("/runs")["runs"]
    return run["id"]


def ask(page: Page, route: str, **query):
    """An answer, once the trace that it is of is open; with the columns of its table."""
    run = run_of(page)

    def is_open(answer) -> bool:
        choice = answer.get("choice")
        opening = answer.get("num_opening") if choice is None else 0
        return not opening and (choice is None or choice["state"] != "opening")

    answer = answered(lambda: page.get(f"/{route}", run=run, **query), is_open)
    return {**answer, **columns_of(answer.get("table", {"columns": ()}))}


def columns_of(table) -> dict:
    """The values of a table that is sent, by column."""
    return {
        one["key"]: list(one["texts"]) if one["texts"] else one["numbers"]
        for one in table["columns"]
    }
