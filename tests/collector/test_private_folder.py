"""Caches and temporary folders are this user's alone, or they are not used."""

from __future__ import annotations

import gc
import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from memboard.collector.process import private_folder as module
from memboard.collector.process.private_folder import (
    NotPrivateError,
    TemporaryFolder,
    cache_home,
    own_files,
    private_folder,
)

PREFIX = "memboard-test-"
NOBODY = 65534

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


@pytest.fixture
def temporary(tmp_path, monkeypatch) -> Path:
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def shared(tmp_path: Path, bits: int = 0o1777) -> Path:
    """A folder that all users write to, as /tmp."""
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(bits)
    return folder


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_it_is_made_with_those_above_it_for_this_user_alone(tmp_path, umask):
    before = os.umask(umask)
    try:
        folder = private_folder(tmp_path / "a" / "b" / "c")
        private_folder(folder)
    finally:
        os.umask(before)
    made = (folder, folder.parent, folder.parent.parent)
    assert [mode(path) for path in made] == [0o700] * 3


def test_one_that_others_could_only_read_is_closed_to_them(tmp_path):
    (tmp_path / "a").mkdir(mode=0o755)
    assert mode(private_folder(tmp_path / "a")) == 0o700


@pytest.mark.parametrize("bits", [0o777, 0o1777, 0o775, 0o2770, 0o722])
def test_one_that_others_can_write_into_is_refused(tmp_path, bits):
    folder = tmp_path / "a"
    folder.mkdir()
    folder.chmod(bits)
    with pytest.raises(NotPrivateError, match="other users can write"):
        private_folder(folder)
    assert mode(folder) == bits


@needs_root
def test_one_of_another_user_is_refused_whatever_its_mode(tmp_path):
    for bits in (0o700, 0o755, 0o777):
        folder = shared(tmp_path) / "a" if bits == 0o700 else tmp_path / "shared" / "a"
        folder.mkdir(exist_ok=True)
        os.chown(folder, NOBODY, NOBODY)
        folder.chmod(bits)
        with pytest.raises(NotPrivateError, match="another user"):
            private_folder(folder)


def test_in_a_folder_for_all_one_of_this_users_will_do(tmp_path):
    assert mode(private_folder(shared(tmp_path) / "a" / "virtual")) == 0o700


def test_a_folder_in_which_anybody_can_rename_is_refused(tmp_path):
    with pytest.raises(NotPrivateError, match="can replace"):
        private_folder(shared(tmp_path, 0o777) / "mine" / "virtual")
    assert not (tmp_path / "shared" / "mine").exists()


@needs_root
@pytest.mark.parametrize("bits", [0o755, 0o1777])
def test_below_a_folder_of_another_user_nothing_is_this_users_alone(tmp_path, bits):
    theirs = shared(tmp_path, bits)
    (theirs / "mine").mkdir()
    os.chown(theirs, NOBODY, NOBODY)
    for folder in (theirs / "mine", theirs / "mine" / "virtual"):
        with pytest.raises(NotPrivateError, match="another user"):
            private_folder(folder)
    assert list((theirs / "mine").iterdir()) == []


def test_a_link_is_refused_and_what_it_leads_to_stays(tmp_path):
    aim = tmp_path / "aim"
    aim.mkdir(mode=0o755)
    for folder, leads_to in (("a", aim), ("b", tmp_path / "nothing")):
        (tmp_path / folder).symlink_to(leads_to)
        with pytest.raises(OSError):
            private_folder(tmp_path / folder)
    assert mode(aim) == 0o755
    assert not (tmp_path / "nothing").exists()


def test_a_link_of_the_users_own_may_lead_to_where_caches_are(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    (tmp_path / "cache").symlink_to(disk)
    private_folder(tmp_path / "cache" / "virtual")
    assert mode(disk / "virtual") == 0o700


@needs_root
def test_a_link_of_another_user_in_a_folder_for_all_is_refused(tmp_path):
    aim = tmp_path / "aim"
    aim.mkdir()
    link = shared(tmp_path) / "cache"
    link.symlink_to(aim)
    os.chown(link, NOBODY, NOBODY, follow_symlinks=False)
    with pytest.raises(NotPrivateError, match="link of another"):
        private_folder(link / "virtual")
    assert list(aim.iterdir()) == []


def test_a_link_of_the_users_to_where_anybody_can_rename_is_refused(tmp_path):
    (tmp_path / "cache").symlink_to(shared(tmp_path, 0o777))
    with pytest.raises(NotPrivateError, match="can replace"):
        private_folder(tmp_path / "cache" / "virtual")


def test_own_files_are_no_links_folders_or_pipes(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "file")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    assert [path.name for path, _ in own_files(tmp_path)] == ["file"]
    assert list(own_files(tmp_path / "missing")) == []


@needs_root
def test_own_files_are_not_those_of_others(tmp_path):
    (tmp_path / "file").touch()
    os.chown(tmp_path / "file", NOBODY, NOBODY)
    assert list(own_files(tmp_path)) == []


def test_the_user_says_where():
    environ = {"MEMBOARD_CACHE_DIR": "/a", "XDG_CACHE_HOME": "/b"}
    assert cache_home(environ) == Path("/a")
    del environ["MEMBOARD_CACHE_DIR"]
    assert cache_home(environ) == Path("/b/memboard")
    assert cache_home({}) == Path.home() / ".cache" / "memboard"
    assert cache_home({"MEMBOARD_CACHE_DIR": "near"}) == Path.cwd() / "near"


def test_a_temporary_folder_goes_at_the_end(temporary):
    folder = TemporaryFolder(PREFIX)
    assert list(temporary.iterdir()) == []
    path = folder.path()
    assert mode(path) == 0o700
    (path / "x.pickle").touch()
    del folder
    gc.collect()
    assert list(temporary.iterdir()) == []
    with TemporaryFolder(PREFIX) as again:
        (again.path() / "x").touch()
    assert list(temporary.iterdir()) == []


def test_a_forks_end_removes_nothing(temporary):
    folder = TemporaryFolder(PREFIX)
    path = folder.path()
    if (child := os.fork()) == 0:
        folder.__exit__()
        os._exit(0)
    os.waitpid(child, 0)
    assert path.is_dir()


def test_what_a_killed_process_left_is_swept(temporary):
    code = (
        "import os, signal; from memboard.collector.process.private_folder import TemporaryFolder\n"
        f"folder = TemporaryFolder({PREFIX!r}); (folder.path() / 'x').touch()\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "TMPDIR": str(temporary)},
        check=False,
    )
    (left,) = temporary.iterdir()
    other = TemporaryFolder(PREFIX)
    mine = other.path()
    assert list(temporary.iterdir()) == [mine]
    third = TemporaryFolder(PREFIX)
    both = sorted([mine, third.path()])
    assert sorted(temporary.iterdir()) == both, "what is in use stays"
    assert left != mine


def test_what_others_put_under_its_name_is_not_swept(temporary):
    victim = temporary / "victim"
    victim.mkdir()
    (victim / "in_use").touch()
    (temporary / f"{PREFIX}link").symlink_to(victim)
    (temporary / f"{PREFIX}file").touch()
    if os.geteuid() == 0:
        theirs = temporary / f"{PREFIX}theirs"
        theirs.mkdir()
        (theirs / "in_use").touch()
        os.chown(theirs, NOBODY, NOBODY)
    before = set(temporary.rglob("*"))
    with TemporaryFolder(PREFIX) as folder:
        folder.path()
    assert set(temporary.rglob("*")) == before


def test_who_tidies_up_leaves_what_is_being_made(temporary, monkeypatch):
    hold, others = module._hold, []

    def hold_later(file):
        if not others:
            others.append(TemporaryFolder(PREFIX))
            others[0].path()  # which looks for what was left
        hold(file)

    monkeypatch.setattr(module, "_hold", hold_later)
    folder = TemporaryFolder(PREFIX)
    mine = folder.path()
    assert sorted(temporary.iterdir()) == sorted([mine, others[0].path()])
