"""`/verdict` on programs made allocation by allocation: what it says, and what to try."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import pytest

from memboard.tb_plugin.cli import main
from tests.errors_found import errors_in
from tests.made_snapshots import frame
from tests.tb_plugin.analysis.made_programs import (
    CALL,
    GIB,
    KIB,
    LINEAR,
    MIB,
    TORCH,
    Program,
    Training,
    at,
    in_loop,
    in_module,
    in_optimizer,
)
from tests.tb_plugin.client import Page, answered

if TYPE_CHECKING:
    from pathlib import Path

SIDE = 0x55D0C0FFEE00
MADE = [at("__init__", 12, "/home/me/model.py"), at("<module>", 190)]


def written(tmp_path: Path, name: str, program: Program) -> Path:
    path = tmp_path / "job" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(pickle.dumps(program.snapshot(), protocol=4))
    return path


def verdicts(tmp_path: Path) -> list[dict[str, Any]]:
    """The errors of a logdir as the page gets them."""
    page = Page(tmp_path)
    found = answered(
        lambda: page.of_run("/findings", "job"),
        lambda answer: not answer["still_reading"] and errors_in(answer),
    )
    return errors_in(found)


def verdict_of(tmp_path: Path, program: Program, **oom: Any) -> dict[str, Any]:
    free = program.peak_bytes - program.live_bytes
    asked = {"size": free + 512 * MIB, "frames": in_module(22), "device_free": free}
    program.oom(**{**asked, **oom})
    written(tmp_path, "snapshot.pickle", program)
    (one,) = verdicts(tmp_path)
    return one


def advice(one: dict[str, Any]) -> str:
    return " ".join(told["text"] for told in one["advice"])


def test_an_optimizer_that_ran_out_keeps_its_gradients(tmp_path):
    training = Training(weight=GIB)
    training.backward(training.forward(16 * MIB), 16 * MIB)
    for _ in range(9):
        training.alloc(GIB, in_optimizer(151, "_init_group"))
    one = verdict_of(tmp_path, training, frames=in_optimizer(151, "_init_group"))
    said = advice(one)
    assert "zero_grad" not in said
    for words in ("fused=True", "foreach=False", "8 bits", "offload", "shard"):
        assert words in said
    assert one["line"].startswith("train.py:44")


def test_outside_the_optimizer_gradients_may_go(tmp_path):
    training = Training(weight=GIB)
    training.step(16 * MIB)
    training.backward(training.forward(16 * MIB), 16 * MIB)
    training.forward(16 * MIB)
    assert "zero_grad" in advice(verdict_of(tmp_path, training))


def test_pending_frees_are_a_class_of_their_own(tmp_path):
    program = Program()
    program.alloc(6 * GIB, MADE)
    fetched = [at("prefetch", 77, "/home/me/loader.py"), *in_loop(39)]
    for _ in range(68):
        program.request_free(program.alloc(GIB, fetched, stream=SIDE))
    one = verdict_of(tmp_path, program, device_free=GIB, size=2 * GIB)
    assert one["key"] == "pending_free"
    assert "really_full" not in one["also"]
    assert "68.0 GiB had been freed but was still pending" in one["sentence"]
    assert f"stream {SIDE:#x}" in one["sentence"]
    assert "loader.py:77 prefetch" in one["sentence"]
    assert "record_stream" in advice(one)
    assert "68" not in one["held_sentence"]
    assert [
        (held["label"], held["bytes"] / GIB, held["is_pending"])
        for held in one["held_by"]
    ] == [("loader.py:77 prefetch", 68, True), ("model.py:12 __init__", 6, False)]
    assert {e["key"]: e["value"] for e in one["evidence"]}["held"] == 6 * GIB


def full(live: int, free: int) -> Program:
    program = Program()
    for _ in range(8):
        program.alloc(live // 8, MADE)
    program.oom(2 * GIB, in_module(22), device_free=free)
    return program


def test_without_its_size_a_device_is_full_only_if_this_is_all(tmp_path):
    written(tmp_path, "snapshot.pickle", full(50 * GIB, GIB))
    (one,) = verdicts(tmp_path)
    assert "capacity" not in one["figures"]
    assert one["key"] == "unsure"
    assert "full" not in one["sentence"]
    assert "98.0 % of the 51.0 GiB that torch had or could get" in one["sentence"]
    first, *_ = one["advice"]
    assert "nvidia-smi" in first["text"]
    assert "--capacity" in first["text"]
    assert any("--capacity" in text for text in one["not_recorded"])


def test_a_card_is_named_as_a_guess(tmp_path):
    written(tmp_path, "snapshot.pickle", full(77 * GIB, GIB))
    (one,) = verdicts(tmp_path)
    assert "if this was all of its memory" in one["sentence"]
    assert "(a guess: a card of 80 GB)" in one["sentence"]


def test_the_option_names_the_size(tmp_path, capsys):
    path = written(tmp_path, "snapshot.pickle", full(50 * GIB, GIB))
    assert main(["report", str(path), "--capacity", "80GiB"]) == 0
    said = capsys.readouterr().out
    assert "of the device's 80.0 GiB was used outside torch's allocator" in said
    assert "if this is all" not in said
    assert main(["report", str(path), "--capacity", "52GiB"]) == 0
    assert "the device was full, 50.0 GiB was live" in capsys.readouterr().out


@pytest.mark.parametrize("wrong", ["many", "0", "-3GiB", "80 parsecs", "1e99GiB"])
def test_a_size_that_none_can_have_is_refused(wrong, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["report", "x.pickle", f"--capacity={wrong}"])
    assert ended.value.code == 2
    assert "80GiB" in capsys.readouterr().err


def test_a_limit_that_nobody_recorded_is_no_cause(tmp_path):
    written(tmp_path, "snapshot.pickle", full(19 * GIB, 60 * GIB))
    (one,) = verdicts(tmp_path)
    assert one["key"] == "unsure"
    assert one["sentence"].startswith(
        "An allocation of 2.00 GiB at model.py:22 forward failed though the device had"
        " 60.0 GiB free: why it was refused was not recorded"
    )
    assert "full" not in one["sentence"]
    (known,) = one["advice"]
    assert "set_per_process_memory_fraction" in known["text"]
    assert known["gain"] is None


def test_the_fatal_error_leads_and_the_others_are_counted(tmp_path):
    program = Program()
    for size in (8, 4, 2):
        held = [program.alloc(GIB, MADE) for _ in range(20)]
        program.oom(size * GIB, in_module(22), device_free=GIB)
        program.free(*held[1:])
    written(tmp_path, "snapshot.pickle", program)
    ooms = verdicts(tmp_path)
    assert [one["figures"]["requested"] // GIB for one in ooms] == [2, 8, 4]
    assert ooms[0]["num_earlier"] == 2
    assert "had already survived 2 out-of-memory errors" in ooms[0]["sentence"]


def test_a_program_that_writes_a_file_at_each_error_is_one_program(tmp_path):
    """The second file tells of the first error again."""
    program = Program()
    held = [program.alloc(GIB, MADE) for _ in range(20)]
    program.oom(8 * GIB, in_module(22), device_free=GIB)
    written(tmp_path, "oom_0.pickle", program)
    program.free(*held[9:])
    again = [program.alloc(GIB, in_module(21)) for _ in range(11)]
    assert again
    program.oom(4 * GIB, in_module(22), device_free=GIB)
    written(tmp_path, "oom_1.pickle", program)
    first, second = verdicts(tmp_path)
    assert first["figures"]["requested"] == 4 * GIB
    assert first["file"] == "job/oom_1.pickle"
    assert first["num_earlier"] == 1
    assert second["figures"]["requested"] == 8 * GIB


def test_each_verdict_names_its_file(tmp_path, capsys):
    for number in range(3):
        written(tmp_path, f"rank{number}.pickle", full((20 + number) * GIB, GIB))
    ooms = verdicts(tmp_path)
    assert [one["file"] for one in ooms] == [f"job/rank{n}.pickle" for n in range(3)]
    assert all(f"({one['file']})" in one["markdown"] for one in ooms)
    assert main(["report", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert all(f"(job/rank{number}.pickle)" in said for number in range(3))


GRAPH = [at("capture", 88), *in_loop(30)]
CACHE = [at("allocate_kv_cache", 31, "/home/me/engine.py"), *in_loop(30)]
LOOKUP = [at("make_table", 5, "/home/me/tables.py"), *in_loop(20)]


@pytest.mark.parametrize(
    ("frames", "size", "pools", "words"),
    [
        (GRAPH, 5 * GIB, (1, 2, 3, 4), ("20.0 GiB in 4 pools", "CUDA graph")),
        (CACHE, GIB, (0,) * 32,
         ("The KV cache holds 32.0 GiB at engine.py:31 allocate_kv_cache",)),
        (LOOKUP, 20 * GIB, (0,),
         ("tables.py:5 make_table holds 20.0 GiB, 62.5 % of live memory",)),
    ],
)  # fmt: skip
def test_the_largest_holder_is_named_first(tmp_path, frames, size, pools, words):
    program = Program()
    program.alloc(12 * GIB, MADE)
    for pool in pools:
        program.alloc(size, frames, pool=pool)
    first = verdict_of(tmp_path, program)["advice"][0]
    assert all(word in first["text"] for word in words)
    assert first["gain"] == len(pools) * size


COPIED = [
    frame("__deepcopy__", 72, TORCH + "nn/parameter.py"),
    frame("deepcopy", 143, "/usr/lib/python3.12/copy.py"),
    at("__init__", 9, "/home/me/ema.py"),
    at("<module>", 195),
]


def moved(line: int) -> list[dict]:
    apply = frame("_apply", 915, TORCH + "nn/modules/module.py")
    return [apply, apply, frame("to", 1371, apply["filename"]), at("main", line)]


SHADOW = [at("<dictcomp>", 9, "/home/me/average.py"), at("main", 14)]


@pytest.mark.parametrize("second", [COPIED, moved(12), SHADOW])
def test_a_second_copy_of_the_model_is_named(tmp_path, second):
    program = Program()
    sizes = [GIB, 2 * GIB, 3 * GIB, GIB // 2]
    for frames in (moved(11), second):
        for size in sizes:
            program.alloc(size, frames)
    said = advice(verdict_of(tmp_path, program))
    assert "A second copy of the model holds 6.50 GiB" in said


def test_layers_that_are_alike_are_no_second_copy(tmp_path):
    program = Program()
    for line in (20, 21):
        for _ in range(4):
            made = [at("__init__", line, "/home/me/model.py"), *MADE]
            program.alloc(GIB, made)
    assert "second copy" not in advice(verdict_of(tmp_path, program))


def test_a_checkpoint_that_stayed_is_named(tmp_path):
    program = Program()
    loaded = [frame("load_tensor", 1500, TORCH + "serialization.py"), *in_loop(20)]
    for frames in (moved(11), loaded):
        for size in (GIB, 2 * GIB, 3 * GIB):
            program.alloc(size, frames)
    assert 'map_location="cpu"' in advice(verdict_of(tmp_path, program))


def evaluated(line: int, *more: dict) -> list[dict]:
    inner = at("forward", line, "/home/me/model.py")
    return [LINEAR, *CALL, inner, *CALL, *more, at("evaluate", 61), *in_loop(50)]


@pytest.mark.parametrize("num_passes", [1, 6])
def test_an_evaluation_with_gradients_is_named(tmp_path, num_passes):
    training = Training(weight=16 * MIB)
    for _ in range(5):
        training.step(16 * MIB)
    for _ in range(num_passes):
        training.alloc(2 * MIB, [at("evaluate", 60), *in_loop(50)])
        for layer in range(8):
            training.alloc(GIB // 2, evaluated(21 + layer))
    one = verdict_of(tmp_path, training, frames=evaluated(28))
    assert "No backward follows" in advice(one)
    assert "torch.no_grad()" in advice(one)
    assert "checkpoint" not in advice(one)


def test_an_evaluation_without_gradients_is_not(tmp_path):
    program = Program()
    program.alloc(8 * GIB, MADE)
    before = None
    for layer in range(24):
        passing = program.alloc(GIB, evaluated(21 + layer))
        if before is not None:
            program.free(before)
        before = passing
    one = verdict_of(tmp_path, program, frames=evaluated(28))
    assert "no_grad" not in advice(one)


def test_a_forward_of_a_training_is_no_evaluation(tmp_path):
    training = Training(weight=16 * MIB)
    for _ in range(5):
        training.step(256 * MIB)
    training.forward(256 * MIB)
    assert "no_grad" not in advice(verdict_of(tmp_path, training))


WORKSPACE = (2 * 4096 + 8 * 16) * KIB


def test_workspaces_are_told_by_their_size_where_stacks_are_pythons(tmp_path):
    program = Program()
    program.alloc(2 * GIB, MADE)
    multiplies = [LINEAR, *CALL, *in_loop(41)]
    for number in range(30):
        program.alloc(WORKSPACE, multiplies, stream=number * 4096)
    for number in range(1, 5):
        program.alloc(32 * MIB, multiplies, stream=number * 4096)
        program.alloc(32 * MIB, in_loop(42), stream=number * 4096)  # a tensor
    one = verdict_of(tmp_path, program)
    said = advice(one)
    assert "cuBLAS workspaces hold 372 MiB in 34 blocks" in said
    assert "inferred from their size" in said
    assert "CUBLAS_WORKSPACE_CONFIG" in said


def test_outputs_that_an_evaluation_keeps_are_growth(tmp_path):
    """Every line of a pass lets go of what it made, but for the one whose output stays."""
    program = Program()
    program.alloc(GIB, MADE)
    for _ in range(40):
        hidden = [program.alloc(64 * MIB, in_module(line)) for line in (20, 21, 22)]
        program.alloc(GIB, in_module(40))
        for one in hidden:
            program.free(one)
    one = verdict_of(tmp_path, program)
    assert one["key"] == "growth"
    assert "model.py:40" in one["sentence"]
    assert "copies on the host" in advice(one)
    assert "gradient" not in advice(one)
    assert "backward" not in advice(one)


NO_ROOM = {"size": 2 * GIB, "device_free": GIB}


def kept_and_freed_together(num_teeth: int, last: int) -> Training:
    """Each step keeps an output; now and then they all go at once, and then they do not."""
    training, kept = Training(weight=64 * MIB), []
    for rounds in [6] * num_teeth + [last]:
        for _ in range(rounds):
            training.step(16 * MIB)
            kept.append(training.alloc(GIB, in_loop(47)))
        if rounds != last:
            training.free(*kept)
            kept.clear()
    return training


def test_what_went_together_before_may_be_held_by_cycles(tmp_path):
    one = verdict_of(tmp_path, kept_and_freed_together(3, 24), **NO_ROOM)
    assert one["key"] == "growth"
    assert "retained across rounds" in one["sentence"]
    assert "3 times before" in one["sentence"]
    assert "reference cycles or a program a list that it clears" in one["sentence"]
    assert one["line"].startswith("train.py:47")
    assert "If the program clears no list there, reference cycles" in advice(one)


def test_what_never_went_is_not_said_to_have_gone(tmp_path):
    one = verdict_of(tmp_path, kept_and_freed_together(0, 24), **NO_ROOM)
    assert one["key"] == "growth"
    assert "together" not in one["sentence"]
    assert "cycles" not in advice(one)


def test_a_queue_that_was_emptied_once_is_no_growth(tmp_path):
    training, queue = Training(weight=64 * MIB), []
    for number in range(40):
        training.step(16 * MIB)
        queue.append(training.alloc(2 * GIB, in_loop(39)))
        if len(queue) > 5:
            training.free(queue.pop(0))
        if number == 20:
            training.free(*queue)
            queue.clear()
    one = verdict_of(tmp_path, training, **NO_ROOM)
    assert one["key"] != "growth"
    assert "together" not in one["sentence"]
