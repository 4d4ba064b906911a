"""The stamp of the built page."""

from __future__ import annotations

import json
import re

import pytest

from memboard.tb_plugin.contract import bundle


@pytest.fixture
def built(tmp_path):
    """A frontend and the page made of it, stamped."""
    frontend, static = tmp_path / "frontend", tmp_path / "static"
    (frontend / "src" / "app").mkdir(parents=True)
    for name in bundle._TOP_LEVEL_SOURCES:
        (frontend / name).write_text(f"{name}\n")
    (frontend / "src" / "app" / "main.tsx").write_text("one;\ntwo;\n")
    (frontend / "src" / "app" / "main.test.ts").write_text("test\n")
    (static / "assets").mkdir(parents=True)
    (static / "index.js").write_text("export{}")
    (static / "assets" / "app-1.js").write_text("app")
    bundle.stamp(static, frontend)
    return static, frontend


def test_a_fresh_build_has_no_problems(built):
    assert bundle.problems(*built) == []


@pytest.mark.parametrize(
    "change",
    [
        lambda f: (f / "src" / "app" / "main.tsx").write_text("one;\n"),
        lambda f: (f / "src" / "new.css").write_text(""),
        lambda f: (f / "src" / "app" / "main.tsx").rename(f / "src" / "main.tsx"),
        lambda f: (f / "package-lock.json").write_text("{}"),
        lambda f: (f / "vite.config.ts").write_text(""),
    ],
    ids=["edited", "added", "moved", "lock file", "build settings"],
)
def test_a_changed_source_makes_the_page_stale(built, change):
    static, frontend = built
    change(frontend)
    (problem,) = bundle.problems(static, frontend)
    assert "other sources" in problem
    assert "npm run build" in problem


def test_tests_and_line_ends_do_not_matter(built):
    static, frontend = built
    (frontend / "src" / "app" / "main.test.ts").write_text("another test\n")
    (frontend / "src" / "app" / "main.tsx").write_bytes(b"one;\r\ntwo;\r\n")
    assert bundle.problems(static, frontend) == []


def test_moving_text_between_two_files_is_seen(built):
    """The digest must not be that of the files glued together."""
    static, frontend = built
    (frontend / "src" / "a.ts").write_text("xy")
    (frontend / "src" / "b.ts").write_text("z")
    bundle.stamp(static, frontend)
    (frontend / "src" / "a.ts").write_text("x")
    (frontend / "src" / "b.ts").write_text("yz")
    assert len(bundle.problems(static, frontend)) == 1


def test_every_file_that_is_not_the_build_s_is_named(built):
    static, frontend = built
    (static / "index.js").write_text("export{hacked}")
    (static / "assets" / "app-1.js").unlink()
    (static / "assets" / "left-over.js").write_text("")
    found = bundle.problems(static, frontend)
    assert [re.search(r"static/(\S+)", one)[1] for one in found] == [
        "assets/app-1.js",
        "assets/left-over.js",
        "index.js",
    ]


def test_an_installed_wheel_has_no_sources_to_compare(built, tmp_path):
    static, _ = built
    assert bundle.problems(static, tmp_path / "nowhere") == []


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"sources": 1}', "\x00"])
def test_a_broken_stamp_is_a_problem_not_an_exception(built, text):
    static, frontend = built
    (static / bundle.STAMP_NAME).write_text(text)
    (problem,) = bundle.problems(static, frontend)
    assert "BUILD.json cannot be read" in problem


def test_the_stamp_does_not_depend_on_when_or_where(built, tmp_path):
    static, frontend = built
    before = (static / bundle.STAMP_NAME).read_bytes()
    moved = tmp_path / "elsewhere"
    frontend.rename(moved)
    bundle.stamp(static, moved)
    assert (static / bundle.STAMP_NAME).read_bytes() == before


def test_the_committed_page_is_that_of_the_committed_sources(capsys):
    assert bundle.main(["--check"]) == 0, capsys.readouterr().err


def test_the_page_allows_a_strict_policy():
    """No script or style stands in the page itself, and nothing comes from elsewhere."""
    html = (bundle.STATIC_FOLDER / "app.html").read_text(encoding="utf-8")
    assert re.search(r"<script(?![^>]*\bsrc=)", html) is None
    assert "<style" not in html
    assert re.search(r"\bstyle=|\bon\w+=", html) is None
    links = re.findall(r'(?:src|href)="([^"]+)"', html)
    assert links
    assert all(link.startswith("./assets/") for link in links)
    names = json.loads((bundle.STATIC_FOLDER / "BUILD.json").read_text())["files"]
    assert {link.removeprefix("./") for link in links} <= names.keys()
    assert "index.js" in names


def test_licences_of_what_the_page_holds_lie_beside_it():
    notices = (bundle.STATIC_FOLDER / "NOTICES.txt").read_text()
    package = json.loads((bundle.FRONTEND_FOLDER / "package.json").read_text())
    fonts = {n: v for n, v in package["devDependencies"].items() if "fontsource" in n}
    for name, version in (package["dependencies"] | fonts).items():
        assert f"{name} {version}\n" in notices
    assert notices.count("Permission is hereby granted") >= len(package["dependencies"])
    assert "SIL OPEN FONT LICENSE" in notices
