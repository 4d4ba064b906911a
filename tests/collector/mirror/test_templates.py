"""Templates: what they become, and the errors where they could never name a file."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memboard.collector.config import load
from memboard.collector.config.templates import filled, key_of
from memboard.collector.errors import ConfigError

VALUES = {"rank": 3, "name": "a.json", "path": "plugins/a.json", "epoch": None}


@pytest.mark.parametrize(
    ("template", "key"),
    [
        ("{path}", "plugins/a.json"),
        ("/{path}", "plugins/a.json"),
        ("///x//{name}", "x/a.json"),
        ("rank{rank:05d}/{name}", "rank00003/a.json"),
        ("{epoch:03d}/{name}", "unknown/a.json"),
        ("{{{rank}}}", "{3}"),
        ("../../{name}", "a.json"),
        ("a/../../b/{name}", "b/a.json"),
        ("{name:d}", "a.json"),
    ],
)
def test_keys_are_made_of_templates(template, key):
    assert key_of(template, VALUES) == key


@given(st.text(st.characters(exclude_characters="{}")), st.text())
def test_a_key_never_starts_with_a_slash_nor_leaves_the_url(template, name):
    key = key_of(template + "{name}", {"name": name})
    assert not key.startswith("/")
    assert ".." not in key.split("/")
    assert "" not in key.split("/") or key == ""


def test_a_url_keeps_its_slashes():
    text = filled("s3://bucket/{run_name}", {"run_name": "exp1"})
    assert text == "s3://bucket/exp1"


def load_remote(**remote):
    return load({"remote": {"url": "s3://bucket/{run_name}", **remote}}).remote


def test_the_short_forms_hold():
    assert load({"remote": "s3://b/{rank}"}).remote.url == "s3://b/{rank}"
    assert load({"remote": False}).remote.url == ""
    assert load({"segments": True}).segments
    assert load_remote(traces=None).traces is None
    assert load_remote(traces="{run_name}/ep{epoch}-ba{batch}-rank{rank}.json")


@pytest.mark.parametrize(
    ("remote", "key", "remedy"),
    [
        ({"url": "s3://b/{runname}"}, "'remote.url'", "did you mean 'run_name'"),
        ({"files": "{ranks}/{name}"}, "'remote.files'", "did you mean 'rank'"),
        ({"files": "{epoch}/{name}"}, "'remote.files'", "Known are run_name"),
        ({"files": "{rank.__class__}{name}"}, "'remote.files'", "Known are"),
        ({"files": "{name!r}"}, "'remote.files'", "Known are"),
        ({"files": "{0}"}, "'remote.files'", "Known are"),
        ({"files": "{name"}, "'remote.files'", "Double a brace"),
        ({"files": "dumps/rank{rank}"}, "'remote.files'", "Add {path}"),
        ({"traces": ""}, "'remote.traces'", "null to keep"),
        ({"url": "/mnt/mirror"}, "'remote.url'", "file:///path"),
        ({"url": "ftp://me:secret@host/a"}, "'remote.url'", "remote.storage_options"),
        ({"storage_options": [1]}, "'remote.storage_options'", "must be a mapping"),
        ({"close_seconds": -1}, "'remote.close_seconds'", "from 0 to 86400"),
    ],
)
def test_what_cannot_be_right_names_key_place_and_remedy(remote, key, remedy):
    with pytest.raises(ConfigError) as caught:
        load_remote(**remote)
    assert key in str(caught.value)
    assert "the given mapping" in str(caught.value)
    assert remedy in str(caught.value)
    assert "secret" not in str(caught.value).replace("may be secret", "")


def test_options_are_neither_shown_nor_recorded(monkeypatch):
    monkeypatch.setenv("MEMBOARD_REMOTE", "s3://bucket")
    monkeypatch.setenv("MEMBOARD_REMOTE_STORAGE_OPTIONS", '{"secret": "s3cr3t"}')
    config = load()
    assert config.remote.storage_options == {"secret": "s3cr3t"}
    assert "s3cr3t" not in repr(config)
    assert config.to_plain()["remote"]["storage_options"] == {}
    assert hash(config) == hash(load())
