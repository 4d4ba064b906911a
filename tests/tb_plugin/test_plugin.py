"""Routes as a browser sees them, alone and inside TensorBoard under both loaders."""

from __future__ import annotations

import contextlib
import gzip
import json
from typing import TYPE_CHECKING

import pytest
from tensorboard import program
from tensorboard.backend import application
from tensorboard.plugins import base_plugin
from tensorboard.plugins.core import core_plugin
from werkzeug.test import Client

from memboard.tb_plugin import plugin as plugin_module
from memboard.tb_plugin.loader import Loader
from memboard.tb_plugin.server.assets import PAGE_POLICY, Assets
from tests.builders import RunBuilder, age, flip_bit
from tests.tb_plugin.client import QUIET, Page, decode, refresh

if TYPE_CHECKING:
    from pathlib import Path

DATA_ROUTES = ("/overview", "/timeline", "/heatmap", "/host")


@pytest.fixture
def page(run, tmp_path) -> Page:
    run.simple(3, 20)
    return Page(tmp_path)


@pytest.mark.parametrize("route", ["/runs", *DATA_ROUTES])
def test_a_poll_with_nothing_new_costs_a_304(page, run, route):
    query = {} if route == "/runs" else {"run": page.run_id("exp"), "px": 300}
    first = page.raw(route, **query)
    tag = first.headers["ETag"]
    assert first.headers["Cache-Control"] == "no-cache"
    refresh(page)
    again = page.raw(route, headers={"If-None-Match": tag}, **query)
    assert again.status_code == 304
    assert again.data == b""
    assert again.headers["ETag"] == tag
    run.rank(3).steps(range(30), allocated_peak_bytes=range(30))
    refresh(page)
    new = page.raw(route, headers={"If-None-Match": tag}, **query)
    assert new.status_code == 200
    assert new.headers["ETag"] != tag


def test_another_question_has_another_tag(page):
    run_id = page.run_id("exp")
    tags = {
        page.raw(route, run=run_id, **query).headers["ETag"]
        for route in DATA_ROUTES[1:]
        for query in ({}, {"px": 100}, {"rank": 1}, {"x0": 1, "x1": 2})
    }
    assert len(tags) == 4 * len(DATA_ROUTES[1:])


def test_what_a_route_does_not_read_does_not_change_its_tag(page):
    run_id = page.run_id("exp")
    whole, wide, one = (
        page.raw("/overview", run=run_id, **query).headers["ETag"]
        for query in ({}, {"px": 100, "axis": "none"}, {"rank": 1})
    )
    assert whole == wide != one


def test_answers_are_compressed_where_the_client_takes_it(page):
    run_id = page.run_id("exp")
    plain = page.raw("/overview", run=run_id)
    packed = page.raw("/overview", run=run_id, headers={"Accept-Encoding": "gzip"})
    assert "Content-Encoding" not in plain.headers
    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.data) == plain.data
    assert packed.headers["Vary"] == "Accept-Encoding"


@pytest.mark.parametrize(
    "run_id",
    ["", "../../etc/passwd", "exp", "/etc", "%2e%2e", "a\0b", "x" * 5000, "<b>"],
)
@pytest.mark.parametrize("route", DATA_ROUTES)
def test_ids_that_are_not_in_the_index_are_not_found(page, route, run_id):
    response = page.raw(route, run=run_id)
    assert response.status_code == 404
    error = json.loads(response.data)
    assert set(error) == {"what", "where", "remedy"}
    assert response.content_type == "application/json"
    assert "root:" not in response.text


@pytest.mark.parametrize("query", [{"rank": 77}, {"ranks": "50-60"}])
@pytest.mark.parametrize("route", ["/overview", "/timeline", "/heatmap"])
def test_a_rank_that_is_not_there_is_said(page, route, query):
    response = page.raw(route, run=page.run_id("exp"), **query)
    assert response.status_code == 404
    assert "ranks 0 to 2" in json.loads(response.data)["remedy"]


def test_whatever_goes_wrong_behind_the_border_is_logged_and_answered(
    page, monkeypatch, caplog
):
    def fail(*_):
        raise ZeroDivisionError("planted")

    run_id = page.run_id("exp")
    monkeypatch.setattr("memboard.tb_plugin.pages.timeline.heatmap.chosen_ranks", fail)
    response = page.raw("/heatmap", run=run_id)
    assert response.status_code == 500
    assert "ZeroDivisionError" in json.loads(response.data)["what"]
    assert "planted" not in response.text
    assert "planted" in caplog.text
    assert page.raw("/timeline", run=run_id).status_code == 200


def test_every_answer_forbids_sniffing(page):
    run_id = page.run_id("exp")
    for route in ("/runs", *DATA_ROUTES, "/index.js", "/app.html", "/assets/no"):
        for method in ("GET", "POST"):
            response = page.raw(route, method=method, run=run_id)
            assert response.headers["X-Content-Type-Options"] == "nosniff", route
            assert response.content_type


MARKUP = "<img src=x onerror=alert(1)>"


def test_markup_in_names_stays_text(tmp_path):
    run = RunBuilder(tmp_path / MARKUP)
    rank = run.rank(host=MARKUP, device_name=MARKUP, world_size=1)
    rank.source("device", "failed", MARKUP, MARKUP)
    rank.steps(range(3), allocated_peak_bytes=[1, 2, 3])
    rank.note("mark", 1, label=MARKUP)
    rank.close("exception", MARKUP)
    page = Page(tmp_path)
    (found,) = page.get("/runs")["runs"]
    assert found["name"] == MARKUP
    facts = {f["label"]: f["value"] for f in page.of_run("/overview", MARKUP)["facts"]}
    assert facts["Hosts"] == facts["Device"] == MARKUP
    assert page.of_run("/timeline", MARKUP)["marks"][0]["label"] == MARKUP
    assert page.raw("/runs").content_type == "application/octet-stream"


def test_damage_is_named_in_the_page_and_costs_nothing_else(run, tmp_path):
    ranks = run.simple(4, 200)
    kind, start, end = ranks[2].offsets[3]
    assert kind == "chunk"
    flip_bit(ranks[2].path, (start + end) // 2)
    ranks[1].path.write_bytes(ranks[1].path.read_bytes()[:-10])
    ranks[3].path.write_bytes(b"")
    age(tmp_path)
    page = Page(tmp_path)
    refresh(page)
    page.of_run("/overview", "exp")
    found = page.of_run("/overview", "exp")
    problems = {p["rank"]: p for p in found["problems"]}
    assert set(problems) == {1, 2, 3}
    assert problems[2]["where"] == f"bytes {start} to {end}"
    assert problems[2]["salvaged"] == "200 rows"
    assert "middle of a record" in problems[1]["what"]
    assert "empty" in problems[3]["what"]
    assert all(p["remedy"] and p["path"].endswith(".events") for p in problems.values())
    assert found["run"]["num_problems"] == 2, "the cut end is a note"
    lines = {x["rank"]: x for x in page.of_run("/timeline", "exp")["lines"]}
    assert set(lines) == {0, 1, 2}
    assert all(len(x["x"]) == 200 for x in lines.values())


# --- The built page ------------------------------------------------------------------


@pytest.fixture
def built(tmp_path) -> Path:
    folder = tmp_path / "static"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.js").write_text("export function render() {}" * 100)
    (folder / "app.html").write_text("<!doctype html><title>x</title>")
    (folder / "assets" / "app-1a2b.js").write_text("console.log(1)" * 200)
    (folder / "assets" / "font-3c.woff2").write_bytes(b"\0\1" * 50)
    (folder / "secret.txt").write_text("secret")
    return folder


def ask(assets: Assets, route: str, path: str, **headers):
    routes = {"index": assets.index, "page": assets.page, "asset": assets.asset}
    guarded = plugin_module.guarded(routes[route])
    return Client(guarded).get(path, headers=headers)


def test_the_page_has_its_own_strict_policy(built):
    response = ask(Assets(built), "page", "/app.html")
    assert response.headers["Content-Security-Policy"] == PAGE_POLICY
    assert "unsafe" not in PAGE_POLICY
    assert response.content_type.startswith("text/html")
    assert response.headers["Cache-Control"] == "no-cache"


def test_hashed_assets_are_kept_for_a_year_and_sent_packed(built):
    response = ask(
        Assets(built), "asset", "/assets/app-1a2b.js", **{"Accept-Encoding": "gzip"}
    )
    assert "max-age=31536000" in response.headers["Cache-Control"]
    assert response.content_type.startswith("text/javascript")
    assert (
        gzip.decompress(response.data)
        == (built / "assets" / "app-1a2b.js").read_bytes()
    )
    font = ask(
        Assets(built), "asset", "/assets/font-3c.woff2", **{"Accept-Encoding": "gzip"}
    )
    assert font.content_type == "font/woff2"
    assert "Content-Encoding" not in font.headers


def test_the_entry_is_asked_for_again_each_time_and_costs_a_304(built):
    assets = Assets(built)
    first = ask(assets, "index", "/index.js")
    tag = first.headers["ETag"]
    assert (
        ask(assets, "index", "/index.js", **{"If-None-Match": tag}).status_code == 304
    )
    (built / "index.js").write_text("export function render() { /* new */ }")
    assert (
        ask(assets, "index", "/index.js", **{"If-None-Match": tag}).status_code == 200
    )


@pytest.mark.parametrize(
    "name",
    ["../secret.txt", "..%2fsecret.txt", "/etc/passwd", "nope.js", "", ".", ".."],
)
def test_no_path_leads_out_of_the_assets(built, name):
    response = ask(Assets(built), "asset", f"/assets/{name}")
    assert response.status_code == 404
    assert "secret" not in response.text or name.endswith("secret.txt")


def test_an_installation_without_the_page_says_how_to_get_it(tmp_path):
    assets = Assets(tmp_path / "nothing")
    assert "npm run build" in ask(assets, "page", "/app.html").text
    script = ask(assets, "index", "/index.js")
    assert "export function render" in script.text
    assert script.content_type.startswith("text/javascript")


# --- Inside TensorBoard --------------------------------------------------------------


@contextlib.contextmanager
def tensorboard(*arguments: str):
    """TensorBoard as `tensorboard <arguments>` would start it, our plugin included."""
    board = program.TensorBoard(
        plugins=[core_plugin.CorePluginLoader, Loader],
    )
    board.configure([None, *arguments, *QUIET, "--port", "0", "--host", "127.0.0.1"])
    ingester = board._make_data_ingester()
    ingester.start()
    try:
        yield board, ingester
    finally:
        # The Rust server dies with its standard input; TensorBoard keeps no handle on
        # the process, so Python warns that it was left behind.
        server = getattr(ingester, "_stdin_handle", None)
        if server is not None:
            server.close()


left_behind = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)


@left_behind
@pytest.mark.parametrize("load_fast", ["true", "false"])
@pytest.mark.parametrize("prefix", ["", "/some/prefix"])
def test_the_routes_work_inside_tensorboard(run, tmp_path, load_fast, prefix):
    run.simple(2, 30)
    arguments = ["--logdir", str(tmp_path), "--load_fast", load_fast]
    with tensorboard(*arguments, "--path_prefix", prefix) as (board, ingester):
        app = application.TensorBoardWSGIApp(
            board.flags,
            [core_plugin.CorePluginLoader(), Loader()],
            ingester.data_provider,
            board.assets_zip_provider,
            getattr(ingester, "deprecated_multiplexer", None),
        )
        client = Client(app)
        base = f"{prefix}/data/plugin/memboard"
        (found,) = decode(client.get(f"{base}/runs"))["runs"]
        assert found["num_ranks"] == 2
        for route in DATA_ROUTES:
            response = client.get(f"{base}{route}?run={found['id']}")
            assert response.status_code == 200
        assert (
            client.get(f"{base}/app.html").headers["Content-Security-Policy"]
            == PAGE_POLICY
        )
        listing = client.get(f"{prefix}/data/plugins_listing").json
        assert listing["memboard"]["enabled"] is True
        assert listing["memboard"]["tab_name"] == "MemBoard"


@left_behind
def test_a_spec_of_several_logdirs_works_inside_tensorboard(tmp_path):
    for name in ("a", "b"):
        RunBuilder(tmp_path / name).simple(1, 3)
    spec = f"first:{tmp_path / 'a'},second:{tmp_path / 'b'}"
    with tensorboard("--logdir_spec", spec, "--load_fast", "false") as (
        board,
        ingester,
    ):
        app = application.TensorBoardWSGIApp(
            board.flags,
            [Loader()],
            ingester.data_provider,
            board.assets_zip_provider,
            None,
        )
        found = decode(Client(app).get("/data/plugin/memboard/runs"))
    assert [r["name"] for r in found["runs"]] == ["first", "second"]


def test_the_tab_is_active_once_there_is_a_run(tmp_path):
    context = base_plugin.TBContext(logdir=str(tmp_path), flags=None)
    made = Loader().load(context)
    assert made.is_active() is False
    RunBuilder(tmp_path).simple(1, 1)
    for _ in range(100):
        made._next_look = 0
        if made.is_active():
            break
        made.state().store.index._next_walk = 0
    assert made.is_active() is True


def test_a_failing_look_for_runs_is_logged_and_the_tab_inactive(
    tmp_path, monkeypatch, caplog
):
    made = Loader().load(base_plugin.TBContext(logdir=str(tmp_path), flags=None))

    def fail():
        raise MemoryError("planted")

    monkeypatch.setattr(made, "state", fail)
    assert made.is_active() is False
    assert "planted" in caplog.text
