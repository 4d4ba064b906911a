"""The parts of a URL that are shown, and those that fsspec is given."""

from __future__ import annotations

import pytest

from memboard.tb_plugin.index.logdirs import logdirs_of
from memboard.tb_plugin.storage.urls import is_url, parse_url

SECRETS = ("hunter2", "AKIA", "c2VjcmV0")


@pytest.mark.parametrize(
    ("text", "root"),
    [
        ("s3://bucket/runs/", "s3://bucket/runs"),
        ("S3://bucket", "s3://bucket"),
        ("gs://bucket/a b/c", "gs://bucket/a b/c"),
        ("hdfs://AKIA:hunter2@name:8020/runs", "hdfs://name:8020/runs"),
        ("ftp://AKIA@host/runs", "ftp://host/runs"),
        ("s3://bucket/runs?versionId=c2VjcmV0#hunter2", "s3://bucket/runs"),
        (
            "abfs://container@account.dfs.core.windows.net/runs",
            "abfs://container@account.dfs.core.windows.net/runs",
        ),
        ("az://container:hunter2@account/runs", "az://container@account/runs"),
        (
            "https://account.blob.core.windows.net/container/runs?sv=1&sig=c2VjcmV0",
            "https://account.blob.core.windows.net/container/runs",
        ),
    ],
)
def test_nothing_secret_is_in_what_is_shown(text, root):
    url = parse_url(text)
    assert url.root == root
    for shown in (url.root, repr(url), str(url)):
        assert not any(secret in shown for secret in SECRETS)


def test_a_blob_address_is_read_through_azures_file_system():
    url = parse_url(
        "https://account.blob.core.windows.net/container/some%20runs/?sv=1&sig=c2Vj"
    )
    assert url.scheme == "abfs"
    assert url.whole == "abfs://container/some runs"
    assert url.options == {"account_name": "account", "sas_token": "sv=1&sig=c2Vj"}
    plain = parse_url("https://account.blob.core.windows.net/container")
    assert plain.options == {"account_name": "account"}
    china = parse_url("https://account.blob.core.chinacloudapi.cn/container")
    assert china.scheme == "abfs"
    assert parse_url("https://example.com/container").scheme == "https"


@pytest.mark.parametrize(
    ("text", "parent", "whole"),
    [
        ("s3://bucket/a/b.pickle", "s3://bucket/a", "s3://bucket/a"),
        ("s3://bucket/b.pickle", "s3://bucket", "s3://bucket"),
        (
            "https://account.blob.core.windows.net/c/d/e.json",
            "https://account.blob.core.windows.net/c/d",
            "abfs://c/d",
        ),
    ],
)
def test_the_folder_of_a_file_is_at_the_same_store(text, parent, whole):
    found = parse_url(text).parent
    assert found is not None
    assert (found.root, found.whole) == (parent, whole)


def test_a_bucket_lies_in_nothing():
    assert parse_url("s3://bucket").parent is None


def test_tensorboards_own_name_of_the_endpoint_counts(monkeypatch):
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    monkeypatch.setenv("S3_ENDPOINT", "http://127.0.0.1:9")
    assert parse_url("s3://b/x").options == {"endpoint_url": "http://127.0.0.1:9"}
    assert parse_url("gs://b/x").options == {}
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:8")
    assert parse_url("s3://b/x").options == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [("s3://b", True), ("runs/a", False), ("/a://b", False), ("C:\\runs", False)],
)
def test_paths_are_no_urls(text, expected):
    assert is_url(text) is expected


def test_logdir_spec_takes_urls_beside_paths(tmp_path):
    class Flags:
        logdir = ""
        logdir_spec = f"a:s3://u:p@bucket/x,memory://y/,{tmp_path}"

    class Context:
        logdir = ""
        flags = Flags

    first, second, third = logdirs_of(Context)
    assert (first.name, first.shown, first.path) == ("a", "s3://bucket/x", first.shown)
    assert (second.name, second.path) == ("", "memory://y")
    assert (third.url, third.path) == (None, str(tmp_path.resolve()))
