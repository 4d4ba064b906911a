"""A local build of Perfetto's page: only its own files, under a policy of their own."""

from __future__ import annotations

import base64
import hashlib
from types import SimpleNamespace

import pytest
from tensorboard.plugins import base_plugin
from werkzeug.test import Client

from memboard.tb_plugin.plugin import MemBoardPlugin
from memboard.tb_plugin.server.assets import LocalPerfetto, policy_of


@pytest.fixture
def build(tmp_path):
    folder = tmp_path / "perfetto"
    (folder / "v50").mkdir(parents=True)
    (folder / "index.html").write_text("<title>Perfetto</title>")
    (folder / "v50" / "trace_processor.wasm").write_bytes(b"\0asm")
    (tmp_path / "secret").write_text("no")
    (folder / "out").symlink_to(tmp_path / "secret")
    return folder


def asked(folder, path):
    flags = SimpleNamespace(memboard_perfetto=str(folder), memboard_drop="true")
    plugin = MemBoardPlugin(base_plugin.TBContext(logdir="", flags=flags))
    return Client(plugin.get_plugin_apps()["/perfetto/*"]).get(path)


def test_files_are_served_under_their_own_policy(build):
    page = asked(build, "/data/plugin/memboard/perfetto/index.html")
    assert page.status_code == 200
    assert page.headers["Content-Security-Policy"] == policy_of(b"")
    assert page.headers["X-Content-Type-Options"] == "nosniff"
    wasm = asked(build, "/data/plugin/memboard/perfetto/v50/trace_processor.wasm")
    assert wasm.content_type == "application/wasm"
    assert wasm.data == b"\0asm"


@pytest.mark.parametrize(
    "name", ["../secret", "out", "v50", "nothing.js", "%2e%2e/secret"]
)
def test_nothing_else_is(build, name):
    assert asked(build, f"/perfetto/{name}").status_code == 404


def test_without_the_flag_there_is_none(tmp_path):
    assert not LocalPerfetto("").is_there
    assert not LocalPerfetto(str(tmp_path)).is_there
    assert asked("", "/perfetto/index.html").status_code == 404


def test_the_script_inside_its_page_is_allowed_by_its_hash_alone(build):
    """Perfetto's page starts by such a script: without it nothing would be loaded."""
    (build / "index.html").write_bytes(
        b"<script src='a.js'></script><script type=\"text/javascript\">\r\nstart();"
        b"</script><SCRIPT>two</SCRIPT >"
    )
    page = asked(build, "/data/plugin/memboard/perfetto/index.html")
    policy = page.headers["Content-Security-Policy"]
    for script in (b"\nstart();", b"two"):
        digest = base64.b64encode(hashlib.sha256(script).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert policy.count("sha256-") == 2
    assert "unsafe-inline" not in policy.partition("script-src")[2].partition(";")[0]
    wasm = asked(build, "/data/plugin/memboard/perfetto/v50/trace_processor.wasm")
    assert "sha256-" not in wasm.headers["Content-Security-Policy"]
