"""Programs really run out of memory: the cause is named, and the advice gets further."""

from __future__ import annotations

from typing import Any

import pytest

from tests.virtual.running import Machine

pytestmark = pytest.mark.slow

PROGRAMS = {
    # Program: cause, words of the advice, options that follow it, steps it then gets
    # through; None: the settings that are advised.
    "full": (
        "really_full",
        ("batch", "checkpoint"),
        (("--batch", "8"), ("--checkpoint",)),
        4,
    ),
    "growth": ("growth", ("growth.py:", ".item()"), (("--numbers",),), 40),
    "fragmented": ("fragmented", (), None, 3),
    "pending": ("pending_free", ("wait_stream",), (("--wait",),), 12),
    "giant": ("single_giant", ("in chunks", "giant.py:"), (("--chunks", "8"),), 4),
    "limit": ("process_limit", ("raise the limit",), (("--fraction", "0.8"),), 3),
    "graph_pools": ("fitting_block_free", ("share one pool",), (("--share",),), 3),
    "graphs_by_shape": (
        "private_pools",
        ("share one pool", "Capture fewer sizes"),
        (("--share",),),
        40,
    ),
    "side_stream": ("fitting_block_free", (), None, 3),
}
ALWAYS = ("full", "growth", "fragmented", "pending")


def verdict(ran, cause: str, *words: str) -> dict[str, Any]:
    """What the report says of a program that ran out: this cause, these words."""
    assert ran.ran_out
    found = ran.verdict()
    advice = "\n".join(one["text"] for one in found["advice"])
    print(found["sentence"], advice, sep="\n")
    assert found["key"] == cause
    assert [word for word in words if word not in advice] == []
    return found


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(name, marks=() if name in ALWAYS else pytest.mark.matrix)
        for name in PROGRAMS
    ],
)
def test_the_cause_is_named_and_the_advice_helps(tmp_path, program):
    cause, words, helps, steps = PROGRAMS[program]
    machine = Machine(tmp_path, "4GiB,9.0")
    ran = machine.run(program)
    assert ran.steps < steps
    found = verdict(ran, cause, *words)
    for options in helps or ():
        assert machine.run(program, *options).steps == steps
    if helps is None:
        pairs = (one["setting"].partition("=") for one in found["advice"])
        settings = {name: value for name, equals, value in pairs if equals}
        assert settings
        again = machine.run(program, **settings)
        assert (again.code, again.steps) == (0, steps), again.error


@pytest.mark.matrix
def test_memory_that_another_process_holds(tmp_path):
    machine = Machine(tmp_path, "16GiB,9.0")
    other = machine.start("holds", str(12 << 10))
    try:
        assert other.stdout.readline() == "held\n"
        ran = machine.run("beside")
    finally:
        other.communicate(timeout=60)
    verdict(ran, "non_torch", "nvidia-smi")
    assert machine.run("beside").steps == 3


@pytest.mark.parametrize(
    ("options", "is_called"), [((), False), (("--collect", "20"), True)]
)
def test_memory_that_reference_cycles_hold(tmp_path, options, is_called):
    machine = Machine(tmp_path, "4GiB,9.0")
    found = machine.run("cycles", *options).findings()["reference_cycles"]
    print(found["sentence"])
    assert ("gc.collect()" in found["sentence"]) == is_called
    assert found["advice"][0]["text"].startswith("Break the cycles")
    assert "reference_cycles" not in machine.run("cycles", "--break").findings()


def test_cycles_that_were_not_collected_again_fill_the_device(tmp_path):
    """The collector frees them for a while, and is then switched off."""
    machine = Machine(tmp_path, "4GiB,9.0")
    options = ("--mib", "24", "--disable", "200", "--steps", "500")
    ran = machine.run("cycles", *options)
    assert 200 < ran.steps < 500
    found = verdict(ran, "uncollected_cycles", "Break the cycles", "gc.collect()")
    print(found["sentence"])
    own = ran.findings()["reference_cycles"]["sentence"]
    assert own[own.index("rises from step") :] in found["sentence"]
    assert machine.run("cycles", "--break", *options).steps == 500


@pytest.mark.parametrize("options", [(), ("--collect", "20")])
def test_a_list_that_the_program_clears_is_no_cycle(tmp_path, options):
    machine = Machine(tmp_path, "4GiB,9.0")
    ran = machine.run("cycles", "--break", "--keep", "20", *options)
    assert ran.steps == 300
    assert "reference_cycles" not in ran.findings()


def test_a_pool_of_the_program_is_not_live_when_it_only_caches(tmp_path):
    machine = Machine(tmp_path, "4GiB,9.0")
    ran = machine.run("mem_pool")
    assert ran.ran_out
    found = ran.verdict()
    assert "2.00 GiB was live" not in found["sentence"]
    assert "private_pools" in found["also"]
    said = " ".join(one["text"] for one in found["advice"])
    assert "drop the last reference" in said
    assert machine.run("mem_pool", "--release").steps == 2
    inside = machine.run("mem_pool", "--inside").verdict()
    assert "private_pools" not in inside["also"]
