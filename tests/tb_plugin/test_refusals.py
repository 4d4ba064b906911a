"""Refusals are for a person: they name no route of ours, and no id."""

from __future__ import annotations

import json
import re

import pytest

from tests.tb_plugin.client import Page

NOBODYS = "fdeadbeefdeadbeef"


@pytest.fixture
def page(run, tmp_path) -> Page:
    run.simple(2, 5)
    return Page(tmp_path)


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"history": NOBODYS},
        {"history": f"0-{NOBODYS}-17"},
        {"source": NOBODYS, "row": 1},
        {"source": "no id at all!"},
        {"tracks": f"{NOBODYS}:0", "t0": 0, "t1": 1, "text": "x"},
        {"report": NOBODYS},
        {"report": "no id at all!"},
        {"b_run": NOBODYS},
        {"run": NOBODYS},
        {"ranks": 77},
        {"rank": 77, "module": "x", "window": NOBODYS},
    ],
)
def test_refusals_name_neither_routes_nor_ids(page, query):
    own = page.run_id("exp")
    names = "|".join(route.strip("/") for route in page.routes)
    routes = re.compile(rf"(^|[\s(\"'])/({names})\b")
    num_refused = 0
    for route in page.routes:
        if "*" in route or route == "/drop":
            continue
        answer = page.raw(route, **{"run": own, **query})
        if answer.status_code < 400:
            answer.close()  # a download's place is free again
            continue
        num_refused += 1
        said = json.loads(answer.data)
        assert answer.status_code != 500, said
        for text in said.values():
            assert not routes.search(text), (route, text)
            assert own not in text, (route, text)
            if (
                "must be" not in said["what"]
            ):  # a parameter, which is named as it stands
                assert NOBODYS not in text, (route, text)
    assert num_refused > 0


def test_a_run_without_histories_is_said_so(page):
    answer = page.raw("/rank_histories", run=page.run_id("exp"))
    assert json.loads(answer.data) == {
        "what": "The run has no allocator history.",
        "where": "exp",
        "remedy": "Pass history=True to mb.record, call rec.snapshot(name), or put"
        " a pickle of torch.cuda.memory._dump_snapshot into the log directory.",
    }
