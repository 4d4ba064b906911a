"""Every answer passes TensorBoard's own checks of headers, the 304 too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tensorboard.backend import security_validator
from werkzeug.test import Client

from tests.simulate import Form
from tests.tb_plugin.client import Page
from tests.tb_plugin.pages.history_runs import captured, trained

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def complaints(monkeypatch) -> list[str]:
    """What TensorBoard's validator would log."""
    found: list[str] = []
    monkeypatch.setattr(security_validator, "_maybe_raise_value_error", found.append)
    return found


ONE_OF_MANY = (
    "/module",
    "/step",
    "/trace_slices",
    "/trace_slice",
    "/trace_search",
    "/trace_range",
    "/trace_report",
    "/trace_file",
    "/perfetto/*",
)
"""Routes that need a module, a step, a trace or a folder on disk to be named."""


def checked(route):
    return Client(security_validator.SecurityValidatorMiddleware(route))


def asset_of(page: Page) -> str:
    """The path of a built file."""
    folder: Path = page.plugin._assets._folder / "assets"
    return f"/assets/{min(folder.iterdir()).name}"


def test_no_answer_of_any_route_makes_tensorboard_complain(run, tmp_path, complaints):
    run.simple(2, 20)
    history = captured(run, trained(300).snapshot(Form()), rank=2)
    page = Page(tmp_path)
    query = {"run": page.run_id("exp"), "history": history, "life": 0}
    assert complaints == []
    for route, application in page.routes.items():
        of_many = {"/assets/*": asset_of(page), "/docs/*": "/docs/index.md"}
        path = of_many.get(route, route)
        client = checked(application)
        if route == "/drop":  # files come in by POST
            assert client.get(path).status_code == 405
            continue
        first = client.get(path, query_string=query)
        if route in ONE_OF_MANY and first.status_code != 200:
            assert first.status_code in (400, 404), route  # the run has none to show
            continue
        assert first.status_code == 200, route
        if route == "/trace_merged":  # made while it is sent: never twice the same
            assert "ETag" not in first.headers
            first.close()  # few downloads are made at a time
            continue
        again = client.get(
            path, query_string=query, headers={"If-None-Match": first.headers["ETag"]}
        )
        assert again.status_code == 304
        assert again.headers["Content-Type"] == first.headers["Content-Type"]
        assert client.post(path).status_code == 405
        if route not in ("/index.js", "/app.html", "/runs", "/run_table"):
            assert client.get("/assets/none?run=none").status_code == 404
    assert complaints == []


def test_the_check_above_can_fail(complaints):
    def application(_, start_response):
        start_response("304 NOT MODIFIED", [])
        return []

    checked(application).get("/")
    assert len(complaints) == 2
