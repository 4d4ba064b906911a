"""The rule behind fits and does not fit, and what of a request can be wrong."""

from __future__ import annotations

import json
import re
import sys
from argparse import ArgumentTypeError
from typing import get_args

import pytest

from memboard.collector.format.prediction import (
    DeviceFigures,
    Ended,
    Prediction,
    PredictionAnswer,
    prediction_of,
    worst,
)
from memboard.collector.running.plan import Outcome, Place, Plan
from memboard.collector.running.program import Program
from memboard.collector.virtual.devices import parse_device
from memboard.tb_plugin.cli.options import size_in_bytes
from memboard.tb_plugin.cli.prediction.answer import Answer, to_json, to_text
from memboard.tb_plugin.cli.prediction.rank_process import Ran, estimates_of
from memboard.tb_plugin.cli.prediction.ranks import Ranks
from memboard.tb_plugin.cli.prediction.request import Request
from memboard.tb_plugin.cli.prediction.sweep import search
from tests.collector.cli.conftest import command
from tests.test_docs import rows_of

GIB = 1 << 30
DEVICE = parse_device("24GiB,8.9")
"""Its context is estimated at 200 to 700 MiB."""


def outcome_of(
    reserved: float, *, ended="stopped", ooms=0, error="", outside=None, communicators=0
) -> Outcome:
    figures = DeviceFigures(
        index=0,
        allocated_peak=int(reserved * GIB),
        active_peak=int(reserved * GIB),
        reserved_peak=int(reserved * GIB),
        num_alloc_retries=0,
        num_ooms=ooms,
    )
    return Outcome(
        ended=ended,
        error=error,
        num_steps=3,
        devices=[figures],
        estimates=plan_of(outside).outside(communicators),
    )


def prediction_for(reserved: float, **made) -> Prediction:
    return outcome_of(reserved, **made).prediction(DEVICE.memory_bytes, None)


def judged(reserved: float, **made) -> PredictionAnswer:
    return prediction_for(reserved, **made).judged()


def plan_of(outside=None) -> Plan:
    estimates, each = estimates_of(DEVICE, outside)
    return Plan(
        target="train.py",
        arguments=[],
        is_module=False,
        run_dir="runs/train",
        outcome="outcome.json",
        steps=3,
        capacity=DEVICE.memory_bytes,
        estimates=estimates,
        each_communicator=each,
    )


@pytest.mark.parametrize(
    ("made", "fit"),
    [
        ({"reserved": 23.3}, "fits"),
        ({"reserved": 23.4}, "too close to call"),
        ({"reserved": 23.4, "outside": 400 << 20}, "fits"),
        ({"reserved": 10, "ended": "out_of_memory", "ooms": 1}, "does not fit"),
        ({"reserved": 10, "ooms": 2}, "too close to call"),
        ({"reserved": 10, "ended": "finished"}, "fits"),
        ({"reserved": 10, "ended": "raised", "error": "ValueError: x"}, "cannot say"),
        ({"reserved": 10, "ended": ""}, "cannot say"),
    ],
)
def test_the_rule(made, fit):
    assert judged(**made).fit == fit


def test_the_worst_of_several_ranks_counts():
    fits, close = judged(1), judged(23.4)
    fails = judged(1, ended="out_of_memory")
    broken = judged(1, ended="raised")

    def of(*answers: PredictionAnswer) -> str:
        return worst(one.fit for one in answers)

    assert of(fits, close) == "too close to call"
    assert of(fits, broken, close) == "cannot say"
    assert of(fits, broken, fails) == "does not fit"


def test_where_it_is_too_close_what_decides_is_said():
    assert "estimates are 500.00 MiB apart" in judged(23.4).decides
    assert "--outside 1.2GiB" in judged(23.4).decides
    assert judged(23.3).decides == ""
    assert judged(10, ooms=2).decides == "", "no estimate is the cause"


def test_communicators_are_estimated_with_a_source():
    found = prediction_for(1, communicators=3)
    names = [one.name for one in found.estimates]
    assert names == ["CUDA context and kernels", "NCCL, 3 communicators"]
    assert all(one.low < one.high and one.source for one in found.estimates)
    (measured,) = prediction_for(1, communicators=3, outside=GIB).estimates
    assert (measured.low, measured.high) == (GIB, GIB), "NCCL's is in it"


def test_plan_and_outcome_come_through_their_files_whole(tmp_path):
    path = tmp_path / "plain.json"
    plan, outcome = plan_of(), outcome_of(23.4, communicators=2)
    plan.write(path)
    assert Plan.read(path) == plan
    outcome.write(path)
    assert Outcome.read(path) == outcome


@pytest.mark.parametrize(
    "wrong",
    [
        {"capacity": -1},
        {"capacity": 1e9},
        {"estimates": [{"name": 7, "low": 1, "high": 2, "source": ""}]},
        {"estimates": {}},
        {"devices": [{"index": 0}]},
        {"devices": [None]},
        {"ended": "never"},
        {"ended": []},
        {"unsuitable": 3},
    ],
    ids=str,
)
def test_a_note_that_is_none_is_left_alone(wrong):
    note = outcome_of(1).prediction(GIB, None).to_note()
    assert prediction_of(note) is not None
    assert prediction_of({**note, **wrong}) is None
    for name in wrong:
        del note[name]
    assert prediction_of(note) is None


@pytest.mark.parametrize("largest", [1, 2, 3, 17, 100, 999])
@pytest.mark.parametrize("error", [0, 5, -5])
def test_the_largest_is_found_whatever_the_guess(largest, error):
    tried = []

    def fits(number: int) -> bool:
        tried.append(number)
        return number <= largest

    assert (
        search(fits, 1, lambda: largest + error if len(tried) > 1 else None) == largest
    )
    assert len(tried) == len(set(tried)), "nothing is tried twice"
    assert len(tried) <= 16
    assert search(lambda _: False, 8, lambda: None) == 0


def test_ranks_have_what_torchrun_gives_them():
    rounds = Ranks("lone", 20, 8, (0, 19)).rounds()
    (first,), (last,) = rounds
    assert (last["RANK"], last["LOCAL_RANK"], last["GROUP_RANK"]) == ("19", "3", "2")
    assert (last["LOCAL_WORLD_SIZE"], last["WORLD_SIZE"]) == ("4", "20")
    assert first["TORCHELASTIC_RUN_ID"] == last["TORCHELASTIC_RUN_ID"]
    assert len(Ranks("all", 2, 2, (0, 1)).rounds()) == 1


def test_sizes():
    assert size_in_bytes("1.5GiB") == 3 << 29
    assert size_in_bytes("800 MB") == 800_000_000
    with pytest.raises(ArgumentTypeError, match="not a size"):
        size_in_bytes("much")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--steps", "3"], "--steps was given without --on"),
        (["--on", "h1000"], "no virtual device 'h1000'"),
        (["--on", "h100", "--steps", "0"], "--steps: '0' was given"),
        (["--on", "h100", "--ranks", "0"], "--ranks was given without --world-size"),
        (["--on", "h100", "--nproc", "2", "--world-size", "2"], "--nproc was given"),
        (["--on", "h100", "--world-size", "2", "--ranks", "2"], "ranks are 0 to 1"),
        (["--on", "h100", "--sweep", "batch=1,2"], "{batch} is missing"),
        (["--on", "h100", "--largest", "b=0"], "--largest: 'b=0' was given"),
        (["--on", "h100", "--outside", "much"], "'much' is not a size"),
        (["--on", "h100", "--python", "/no/python"], "cannot be run"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_meant_is_said(words, says, tmp_path, capsys):
    program = tmp_path / "train.py"
    program.write_text("")
    assert command("run", "--logdir", tmp_path / "logs", *words, program) == 2
    assert says in capsys.readouterr().err


@pytest.mark.skipif(sys.platform != "linux", reason="says something else there")
def test_torch_without_cuda_is_named_with_what_helps(tmp_path, capsys):
    torch = pytest.importorskip("torch")
    if torch.version.cuda:
        pytest.skip("this torch is built for CUDA")
    program = tmp_path / "train.py"
    program.write_text("")
    words = ["--logdir", str(tmp_path / "logs"), "--on", "h100", str(program)]
    assert command("run", *words) == 2
    assert "is not built for CUDA: pip install --no-deps" in capsys.readouterr().err


def request_of(folder) -> Request:
    return Request(
        program=Program("train.py"),
        device=DEVICE,
        python=sys.executable,
        run_dir=folder / "run",
    )


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ({}, "by category                not known: the recording holds no history"),
        ({0: {"param": 0.0}}, "not known: the recording holds no history"),
        ({0: {"param": 2.0 * GIB}}, "parameters"),
    ],
)
def test_the_breakdown_by_category_is_there_or_said_to_be_missing(
    tmp_path, sizes, words
):
    outcome = outcome_of(10)
    prediction = outcome.prediction(DEVICE.memory_bytes, None)
    answer = Answer(
        ran=Ran(outcome),
        prediction=prediction,
        judged=prediction.judged(),
        categories=sizes,
        no_categories="the recording holds no history",
        recorded_fit="cannot say",
    )
    request = request_of(tmp_path)
    text = "\n".join(to_text(request, [answer]))
    assert words in text
    assert 'in it stands "cannot say"' in text
    (device,) = to_json(request, [answer])["ranks"][0]["devices"]
    is_known = any(sizes.get(0, {}).values())
    assert device["categories_absent"] == (None if is_known else answer.no_categories)


def keys_of(value: object) -> set[str]:
    if isinstance(value, dict):
        return {*value} | {key for one in value.values() for key in keys_of(one)}
    entries = value if isinstance(value, list) else []
    return {key for one in entries for key in keys_of(one)}


def test_the_keys_of_the_json_are_those_that_the_documentation_names(tmp_path):
    outcome = outcome_of(10)
    outcome.places = [Place(file="train.py", line=1, function="step", count=1)]
    prediction = outcome.prediction(DEVICE.memory_bytes, None)
    answer = Answer(ran=Ran(outcome), prediction=prediction, judged=prediction.judged())
    written = json.loads(json.dumps(to_json(request_of(tmp_path), [answer])))
    cells = " ".join(cell for row in rows_of("predict", "prediction") for cell in row)
    named = set(re.findall(r"`(?:ranks\[\]\.)?(\w+)(?:\[\])?`", cells))
    assert keys_of(written) == named - {*get_args(Ended)}
