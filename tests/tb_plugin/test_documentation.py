"""The documentation as the page serves it."""

from __future__ import annotations

import re

import pytest
from tensorboard.plugins import base_plugin
from werkzeug.test import Client

from memboard.tb_plugin.cli import main
from memboard.tb_plugin.docs import NAMES, text_of, title_of
from memboard.tb_plugin.plugin import MemBoardPlugin
from memboard.tb_plugin.server.documentation import POLICY

BASE = "/data/plugin/memboard/docs/"


@pytest.fixture(scope="module")
def client():
    plugin = MemBoardPlugin(base_plugin.TBContext(logdir=""))
    return Client(plugin.get_plugin_apps()["/docs/*"])


@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_html_that_its_policy_lets_show(client, name):
    page = client.get(f"{BASE}{name}.md")
    assert page.status_code == 200
    assert page.content_type == "text/html; charset=utf-8"
    assert page.headers["Content-Security-Policy"] == POLICY
    assert page.headers["X-Content-Type-Options"] == "nosniff"
    assert "unsafe" not in POLICY
    assert not re.search(r"<script|<style|<[^>]+ style=|<[^>]+ on\w+=", page.text)
    assert page.text.count("<h1") == 1
    fences = re.findall(r"^```\w*$", text_of(name), re.MULTILINE)
    assert page.text.count("<pre>") == len(fences) / 2
    assert page.text.count("<table>") == len(
        re.findall(r"^\|-", text_of(name), re.MULTILINE)
    )


def test_every_link_of_a_page_is_answered(client):
    page = client.get(f"{BASE}index.md")
    links = set(re.findall(r'href="([^":#]+)"', page.text))
    assert {f"{name}.md" for name in NAMES} | {"style.css"} == links
    assert {client.get(BASE + link).status_code for link in links} == {200}
    assert client.get(BASE).data == page.data


def test_a_page_that_the_browser_has_is_not_sent_again(client):
    tag = client.get(f"{BASE}index.md").headers["ETag"]
    again = client.get(f"{BASE}index.md", headers={"If-None-Match": tag})
    assert (again.status_code, again.data) == (304, b"")


@pytest.mark.parametrize(
    "name",
    ["nothing.md", "index", "__init__.py", "../docs/index.md", "%2e%2e/plugin.py", "."],
)
def test_nothing_else_is_served(client, name):
    answer = client.get(BASE + name)
    # A browser resolves the dots: then it is another name, or one of the pages.
    assert answer.status_code == (200 if name == "../docs/index.md" else 404)


def test_only_reading_is_answered(client):
    assert client.post(f"{BASE}index.md").status_code == 405


def test_the_command_lists_and_prints_them(capsys):
    assert main(["docs"]) == 0
    listed = capsys.readouterr().out
    assert all(f"  {name:18}{title_of(name)}" in listed for name in NAMES[1:])
    assert main(["docs", "settings"]) == 0
    assert capsys.readouterr().out == text_of("settings")
    with pytest.raises(SystemExit):
        main(["docs", "../README"])
    assert "there is no page" in capsys.readouterr().err
