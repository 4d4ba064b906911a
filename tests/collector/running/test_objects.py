"""Objects of ranks that run one after the other, through torch's own functions."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch.distributed.distributed_c10d as theirs

from memboard.collector.running.single_rank.calls import Absences, Files
from memboard.collector.running.single_rank.objects import Objects

NAMES = (
    "all_gather_object",
    "gather_object",
    "broadcast_object_list",
    "scatter_object_list",
    "send_object_list",
    "recv_object_list",
)
WORLD = object()


@pytest.fixture
def rank(tmp_path):
    """A job of three ranks, and pairs of them; each has functions of its own."""
    absent: list[str] = []

    def make(number: int, *, over: dict[int, str] | None = None):
        c10d = SimpleNamespace(
            **{name: getattr(theirs, name) for name in NAMES},
            get_rank=lambda: number,
            get_process_group_ranks=lambda group: (
                [0, 1, 2] if group is WORLD else group
            ),
            group=SimpleNamespace(WORLD=WORLD),
            GroupMember=SimpleNamespace(NON_GROUP_MEMBER=theirs.GroupMember),
            absent=absent,
        )
        for one, why in (over or {}).items():
            (tmp_path / "over").mkdir(exist_ok=True)
            (tmp_path / "over" / str(one)).write_text(why)
        for name in ("sent", "wanted", "over"):
            (tmp_path / name).mkdir(exist_ok=True)
        Objects(c10d, Files(str(tmp_path)), Absences(absent)).install()
        return c10d

    return make


def test_a_broadcast_comes_from_whoever_ran_before(rank):
    rank(0).broadcast_object_list(["run", 7], src=0)
    received = [None, None]
    rank(1).broadcast_object_list(received)
    assert received == ["run", 7]
    in_pair = [None]
    rank(1).broadcast_object_list(["pair"], 1, [1, 2])
    rank(2).broadcast_object_list(in_pair, group=[1, 2], group_src=0)
    assert in_pair == ["pair"]


def test_where_everybody_gives_one_those_of_absent_ranks_are_ones_own(rank):
    rank(0).all_gather_object([None] * 3, "zero")
    found = [None] * 3
    rank(1).all_gather_object(found, "one")
    assert found == ["zero", "one", "one"]
    gathered = [None] * 3
    rank(0).gather_object("a", dst=1)
    rank(1).gather_object("b", gathered, dst=1)
    assert gathered == ["a", "b", "b"]


def test_one_may_scatter_and_send(rank):
    first, second = rank(0), rank(1)
    mine: list[object] = [None]
    first.scatter_object_list(mine, [10, 11, 12], src=0)
    assert mine == [10]
    second.scatter_object_list(mine, src=0)
    assert mine == [11]
    first.send_object_list(["x"], dst=1)
    first.send_object_list(["y"], dst=1)
    received = [None]
    assert second.recv_object_list(received, src=0) == 0
    assert second.recv_object_list(received, 0) == 0
    assert received == ["y"]


def test_what_does_not_come_is_said_and_ones_own_is_kept(rank):
    one = rank(1, over={0: "it ended by itself"})
    own = ["own"]
    one.broadcast_object_list(own, src=0)
    assert own == ["own"]
    assert "it ended by itself" in one.absent[0]


def test_ranks_outside_of_a_group_do_nothing(rank):
    here, received = rank(0), ["mine"]
    assert here.recv_object_list(received, src=1, group=[1, 2]) == -1
    here.broadcast_object_list(received, src=1, group=[1, 2])
    assert received == ["mine"]
