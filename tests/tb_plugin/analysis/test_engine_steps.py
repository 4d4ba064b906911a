"""Steps of traces that no training loop marked: those of inference engines."""

from __future__ import annotations

import pytest

from memboard.tb_plugin.analysis.time.step_marks import is_step_mark
from memboard.tb_plugin.analysis.trace.timeline.families import family_of
from tests.kineto_files import KinetoFile
from tests.tb_plugin.client import Page
from tests.tb_plugin.pages.profiled import ask

VLLM = (
    "execute_context_1(888)_generation_0(0)",
    "execute_context_0(0)_generation_8(8)",
    "execute_context_0(0)_generation_8(8)",
)
SGLANG = ("step[EXTEND bs=1 toks=888]", "step[DECODE bs=8]", "step[DECODE bs=8]")


def engine(marks) -> KinetoFile:
    """A prefill of 900 us and 9 kernels, then decodes of 100 us and one kernel each."""
    made = KinetoFile()
    ts = 1_000
    for mark in marks:
        is_prefill = mark == marks[0]
        made.slice(mark, ts, 900 if is_prefill else 100, "user_annotation")
        for index in range(9 if is_prefill else 1):
            launched = ts + 90 * index
            made.kernel("gemm", launched, launched + 10, 50)
        ts += 1_000
    return made


@pytest.mark.parametrize("marks", [VLLM, SGLANG])
def test_forward_passes_of_engines_are_steps(tmp_path, marks):
    engine(marks).write(tmp_path / "exp" / "rank0.17.pt.trace.json")
    page = Page(tmp_path)
    profile = ask(page, "profile")
    # The last one has a ninth of the first one's kernels, and is whole.
    assert list(profile["step"]) == [1, 2, 3]
    assert list(profile["duration_ms"]) == pytest.approx([0.9, 0.1, 0.1])
    assert profile["are_marked"]
    assert family_of("user_annotation", marks[0]) == "step"
    (sentence,) = ask(page, "trace_path", step=2)["sentences"]
    assert sentence.startswith("Step 2 takes 100 µs")
    host = [part for part in profile["parts"] if part["role"] == "cpu_exec"]
    assert host == []  # a mark is no operator


def test_a_profilers_own_steps_come_first(tmp_path):
    made = engine(VLLM)
    made.step(7, 990, 2_990)
    made.write(tmp_path / "exp" / "rank0.17.pt.trace.json")
    assert list(ask(Page(tmp_path), "profile")["step"]) == [7]


def test_other_annotations_are_no_steps():
    for annotation in (
        "execute_model",
        "step",
        "step[0]",
        "aten::mm",
        "stepwise[DECODE]",
    ):
        assert not is_step_mark(annotation)


@pytest.mark.parametrize("stages", [("fit", "validation"), ("fit",)])
def test_files_of_one_process_are_one_rank(tmp_path, stages):
    for stage in stages:
        made = engine(VLLM)
        del made.head["distributedInfo"]
        made.write(tmp_path / "exp" / f"{stage}-0-x.pt.trace.json")
    page = Page(tmp_path)
    profile = ask(page, "profile")
    assert [t["cycle"] for t in profile["choice"]["traces"]] == [
        1 + place for place in range(len(stages))
    ]
    sentence = ask(page, "distributed")["sentence"]
    assert " of 2 ranks" not in sentence
    assert sentence.startswith(("1 rank", "A step takes"))


def test_traces_are_not_counted_as_ranks(tmp_path):
    for rank, name in ((0, "a_rank0"), (0, "b_rank0"), (1, "a_rank1")):
        made = engine(VLLM)
        made.head["distributedInfo"]["rank"] = rank
        made.write(tmp_path / "exp" / f"{name}_trace.json")
    summary = ask(Page(tmp_path), "distributed")["summary"]
    assert summary.startswith("2 ranks of 3 traces; the last trace of a rank counts")
