"""Control groups of both versions, in made-up trees as containers see them."""

from __future__ import annotations

import pytest

from memboard.collector.process import control_group
from memboard.collector.process.control_group import find_group

GIB = 2**30
UNLIMITED_V1 = 9223372036854771712

V2_MOUNT = (
    "30 24 0:26 {root} /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw,nsdelegate"
)
V1_MOUNT = (
    "36 25 0:31 {root} /sys/fs/cgroup/memory rw shared:15 - cgroup cgroup rw,memory"
)


class Tree:
    def __init__(self, root):
        self.root = root

    def process(self, cgroup, *mounts):
        folder = self.root / "proc" / "self"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "cgroup").write_text(cgroup + "\n")
        other = "22 1 8:1 / / rw - ext4 /dev/sda1 rw"
        (folder / "mountinfo").write_text("\n".join([other, *mounts]) + "\n")

    def group(self, path, limit, usage=0, stat=""):
        one = path.startswith("memory")
        folder = self.root / "sys/fs/cgroup" / path
        folder.mkdir(parents=True, exist_ok=True)
        names = (
            ("memory.limit_in_bytes", "memory.usage_in_bytes")
            if one
            else ("memory.max", "memory.current")
        )
        (folder / names[0]).write_text(f"{limit}\n")
        (folder / names[1]).write_text(f"{usage}\n")
        (folder / "memory.stat").write_text(stat)
        return folder


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path)


def figures(tree):
    group = find_group(tree.root)
    return None if group is None else (group.limit_bytes(), group.used_bytes())


def test_version_2_leaves_out_file_pages_that_can_go(tree):
    tree.process("0::/job/step", V2_MOUNT.format(root="/"))
    tree.group("job/step", 8 * GIB, 5 * GIB, f"anon 7\ninactive_file {2 * GIB}\n")
    assert figures(tree) == (8 * GIB, 3 * GIB)


def test_the_tightest_ancestor_binds_and_its_usage_counts(tree):
    tree.process("0::/pods/pod7/main", V2_MOUNT.format(root="/"))
    tree.group("pods/pod7/main", "max", 1 * GIB)
    tree.group("pods/pod7", 4 * GIB, 3 * GIB)
    tree.group("pods", 64 * GIB, 40 * GIB)
    assert figures(tree) == (4 * GIB, 3 * GIB)


def test_a_container_sees_its_own_group_as_the_root(tree):
    tree.process("0::/", V2_MOUNT.format(root="/"))
    tree.group("", 2 * GIB, GIB)
    assert figures(tree) == (2 * GIB, GIB)


def test_a_container_told_the_hosts_path_still_finds_its_limit(tree):
    path = "/docker/0123abcd"
    tree.process(f"11:memory:{path}\n0::/", V1_MOUNT.format(root=path))
    tree.group("memory", 3 * GIB, GIB, f"total_inactive_file {GIB // 2}\n")
    assert figures(tree) == (3 * GIB, GIB // 2)
    tree.process(f"11:memory:{path}", V1_MOUNT.format(root="/"))
    assert figures(tree) == (3 * GIB, GIB // 2)


def test_version_1_with_its_number_for_no_limit(tree):
    tree.process("4:cpu,memory:/job", V1_MOUNT.format(root="/"))
    tree.group("memory/job", UNLIMITED_V1, GIB)
    tree.group("memory", UNLIMITED_V1, GIB)
    assert figures(tree) is None
    tree.group("memory/job", 6 * GIB, GIB)
    assert figures(tree) == (6 * GIB, GIB)


def test_both_versions_mounted_at_once(tree):
    tree.process(
        "4:memory:/job\n0::/job",
        V1_MOUNT.format(root="/"),
        V2_MOUNT.format(root="/").replace("/sys/fs/cgroup", "/sys/fs/cgroup/unified"),
    )
    tree.group("memory/job", 6 * GIB, GIB)
    (tree.root / "sys/fs/cgroup/unified/job").mkdir(parents=True)
    assert figures(tree) == (6 * GIB, GIB)


def test_a_limit_that_changes_is_read_anew(tree):
    tree.process("0::/job", V2_MOUNT.format(root="/"))
    folder = tree.group("job", 4 * GIB, GIB)
    group = find_group(tree.root)
    (folder / "memory.max").write_text("max\n")
    assert group.limit_bytes() is None
    (folder / "memory.max").write_text(f"{GIB}\n")
    assert group.limit_bytes() == GIB


@pytest.mark.parametrize("damage", ["none", "no mount", "no files", "words"])
def test_what_cannot_be_read_is_no_limit(tree, damage):
    if damage != "none":
        mounts = [] if damage == "no mount" else [V2_MOUNT.format(root="/")]
        tree.process("0::/../../etc", *mounts)
    if damage == "words":
        tree.group("", "plenty", "some")
    assert figures(tree) is None


def test_usage_that_cannot_be_read_is_none(tree):
    tree.process("0::/", V2_MOUNT.format(root="/"))
    folder = tree.group("", GIB, GIB)
    (folder / "memory.stat").unlink()
    assert figures(tree) == (GIB, None)


def test_a_process_has_what_its_group_lets_it_have_of_the_machine(monkeypatch):
    class Group:
        def limit_bytes(self):
            return limit

    monkeypatch.setattr(control_group, "_own_group", Group)
    limit = None
    whole = control_group.machine_bytes()
    assert whole > 1 << 28
    limit = 1 << 28
    assert control_group.machine_bytes() == limit
    limit = 1 << 60
    assert control_group.machine_bytes() == whole
