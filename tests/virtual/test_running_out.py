"""Programs really run out of memory: the cause is named, and the advice gets further."""

from __future__ import annotations

import pytest

from tests.virtual.running import Machine

pytestmark = pytest.mark.slow

DEVICE = "4GiB,9.0"


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path, DEVICE)


def advice(found) -> str:
    return "\n".join(one["text"] for one in found["advice"])


def settings(found) -> dict[str, str]:
    """Environment variables that are advised, by name."""
    pairs = (one["setting"].partition("=") for one in found["advice"])
    return {name: value for name, equals, value in pairs if equals}


def test_activations_that_fill_the_device(machine):
    ran = machine.run("full")
    assert ran.ran_out
    assert ran.steps == 0
    found = ran.verdict()
    print(found["sentence"], advice(found), sep="\n")
    assert found["key"] == "really_full"
    assert "batch" in advice(found)
    assert "checkpoint" in advice(found)
    for helps in (("--batch", "8"), ("--checkpoint",)):
        assert machine.run("full", *helps).steps == 4


def test_what_is_kept_of_each_step(machine):
    ran = machine.run("growth")
    assert ran.ran_out
    found = ran.verdict()
    print(found["sentence"], advice(found), sep="\n")
    assert found["key"] == "growth"
    assert "growth.py:" in advice(found)
    assert ".item()" in advice(found)
    assert machine.run("growth", "--numbers").steps == 40 > ran.steps


def test_free_memory_in_pieces(machine):
    ran = machine.run("fragmented")
    assert ran.ran_out
    found = ran.verdict()
    print(found["sentence"], advice(found), sep="\n")
    assert found["key"] == "fragmented"
    assert settings(found)
    again = machine.run("fragmented", **settings(found))
    assert again.code == 0, again.error
    assert again.steps == 3


@pytest.mark.matrix
def test_one_request_larger_than_any(machine):
    ran = machine.run("giant")
    assert ran.ran_out
    found = ran.verdict()
    print(found["sentence"], advice(found), sep="\n")
    assert found["key"] == "single_giant"
    assert "in chunks" in advice(found)
    assert "giant.py:" in advice(found)
    assert machine.run("giant", "--chunks", "8").steps == 4


@pytest.mark.matrix
def test_a_limit_on_the_process(machine):
    ran = machine.run("limit")
    assert ran.ran_out
    found = ran.verdict()
    print(found["sentence"], advice(found), sep="\n")
    assert found["key"] == "process_limit"
    assert "raise the limit" in advice(found)
    assert machine.run("limit", "--fraction", "0.8").steps == 3


@pytest.mark.matrix
def test_memory_that_another_process_holds(tmp_path):
    machine = Machine(tmp_path, "16GiB,9.0")
    other = machine.start("holds", str(12 << 10))
    try:
        assert other.stdout.readline() == "held\n"
        ran = machine.run("beside")
    finally:
        other.communicate(timeout=60)
    assert ran.ran_out
    found = ran.verdict()
    print(found["sentence"], advice(found), sep="\n")
    assert found["key"] == "non_torch"
    assert "nvidia-smi" in advice(found)
    assert machine.run("beside").steps == 3


def test_frees_that_wait_for_another_stream(machine):
    ran = machine.run("pending")
    assert ran.ran_out
    found = ran.verdict()
    print(found["sentence"], advice(found), sep="\n")
    assert found["key"] == "pending_free"
    assert "wait_stream" in advice(found)
    assert machine.run("pending", "--wait").steps == 12 > ran.steps


@pytest.mark.matrix
def test_pools_of_cuda_graphs(machine):
    ran = machine.run("graph_pools")
    assert ran.ran_out
    found = ran.verdict()
    print(found["sentence"], advice(found), sep="\n")
    assert found["key"] == "fitting_block_free"
    assert "share one pool" in advice(found)
    assert machine.run("graph_pools", "--share").steps == 3 > ran.steps


@pytest.mark.matrix
def test_a_free_block_of_another_stream(machine):
    ran = machine.run("side_stream")
    assert ran.ran_out
    found = ran.verdict()
    print(found["sentence"], advice(found), sep="\n")
    assert found["key"] == "fitting_block_free"
    assert settings(found)
    again = machine.run("side_stream", **settings(found))
    assert again.code == 0, again.error
    assert again.steps == 3
