"""`memboard run --on`: a program on a virtual GPU, and the answer that is printed."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.recordings import read_run
from tests.tb_plugin.client import Page
from tests.virtual.running import PATIENCE_S, ROOT, python

TRAINS = """
import sys, torch
from torch import nn
size = int(sys.argv[1])
model = nn.Sequential(nn.Linear(1024, 4096), nn.Linear(4096, 1024)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
try:
    for step in range(1000):
        loss = model(torch.randn(size, 1024, device="cuda")).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if loss.item() > 1:
            break
        assert torch.tensor([step], device="cuda").item() == step
finally:
    print("in order", step)
"""

RECORDS = """
import torch, memboard as mb
optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(512, device="cuda"))], lr=0.1)
with mb.record("runs/real") as rec:
    for step in range(1000):
        (optimizer.param_groups[0]["params"][0] * 2).sum().backward()
        optimizer.step()
        rec.step()
"""

RUNS_OUT = """
import torch, memboard as mb
with mb.record("runs/real"):
    kept = [torch.ones(32 << 20, device="cuda") for _ in range(10)]
"""

RANKS = """
import os, torch
import torch.distributed as dist
from torch import nn
dist.init_process_group()
rank = dist.get_rank()
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
name = [f"run {rank}"]
dist.broadcast_object_list(name, src=0)
group = dist.new_group(backend="gloo")
count = torch.ones(1)
dist.all_reduce(count, group=group)
layer = nn.Linear(256, 256).cuda()
model = nn.parallel.DistributedDataParallel(layer)
optimizer = torch.optim.AdamW(model.parameters())
for step in range(1000):
    model(torch.randn(8, 256, device="cuda")).sum().backward()
    optimizer.step()
    if step == 0:
        print(rank, dist.get_world_size(), torch.cuda.device_count(), name[0])
"""


@pytest.fixture
def folder(tmp_path):
    """Of the program, with a name that says nothing of whose the program is."""
    made = tmp_path / "torch" / "collector"
    made.mkdir(parents=True)
    return made


@pytest.fixture
def run(virtual_python, folder):
    """Runs `memboard run` on a program that lies in a folder of its own."""

    def run_it(text: str, *words: str, code: int) -> subprocess.CompletedProcess[str]:
        (folder / "train.py").write_text(text)
        command = [
            sys.executable,
            "-m",
            "memboard.tb_plugin.cli",
            "run",
            "--python",
            str(virtual_python),
        ]
        path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        done = subprocess.run(
            [*command, *words],
            capture_output=True,
            text=True,
            check=False,
            cwd=folder,
            timeout=PATIENCE_S,
            env={**os.environ, "PYTHONPATH": path},
        )
        assert done.returncode == code, done.stdout + done.stderr
        assert "unknown environment variable" not in done.stderr
        return done

    return run_it


def predicted_in(folder) -> dict:
    """The prediction of the recorded run, as the Overview shows it."""
    page = Page(folder / "memboard-runs")
    return page.of_run("/overview", "train")["prediction"]


def test_a_program_that_fits_is_stopped_in_order_and_measured(run, folder):
    done = run(TRAINS, "--on", "h100", "--json", "train.py", "64", code=0)
    assert "in order 2" in done.stderr, "one step to warm up, and two"
    answer = json.loads(done.stdout)
    assert answer["fit"] == "fits"
    assert answer["device"]["name"] == "virtual H100 80GB"
    ((rank,),) = [answer["ranks"]]
    (device,) = rank["devices"]
    parameters = 4 * (1024 * 4096 * 2 + 4096 + 1024)
    assert device["categories_bytes"]["optimizer"] == pytest.approx(
        2 * parameters, rel=0.01
    )
    assert device["peak_reserved_bytes"] >= device["peak_allocated_bytes"]
    assert device["peak_allocated_bytes"] > 4 * parameters
    (context,) = device["estimates"]
    assert device["needed_high_bytes"] == (
        device["peak_reserved_bytes"] + context["high_bytes"]
    )
    assert [(place["line"], place["count"]) for place in rank["places"]] == [(13, 2)]
    (recording,) = read_run(folder / "memboard-runs" / "train").values()
    assert recording.header.virtual_gpu == "virtual H100 80GB"
    assert recording.tables["step"]["step"].tolist() == [0, 1, 2]
    shown = predicted_in(folder)
    assert (shown["fit"], shown["sentences"][0]) == ("fits", rank["reason"])
    reserved, estimate, needed = shown["rows"]
    assert reserved["high_bytes"] == device["peak_reserved_bytes"]
    assert estimate["low_bytes"] == context["low_bytes"]
    assert needed["high_bytes"] == device["needed_high_bytes"]


def test_what_decides_where_it_is_too_close_is_said_and_decides(run):
    on = ("--on", "1GiB")
    done = run(TRAINS, *on, "train.py", "8192", code=3)
    assert "\ntoo close to call: " in done.stdout
    assert "estimates are 500.00 MiB apart" in done.stdout
    run(TRAINS, *on, "--outside", "250MiB", "train.py", "8192", code=0)
    run(TRAINS, *on, "--outside", "600MiB", "train.py", "8192", code=1)


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(TRAINS, id="ours"),
        pytest.param(RUNS_OUT, id="its own", marks=pytest.mark.matrix),
    ],
)
def test_one_that_runs_out_has_the_reports_verdict_and_its_recording_says_so(
    run, folder, program
):
    done = run(program, "--on", "400MiB", "train.py", "16384", code=1)
    assert "does not fit: OutOfMemoryError" in done.stdout
    assert "An allocation of" in done.stdout
    assert "OutOfMemoryError" in done.stderr, "the program's own traceback"
    shown = predicted_in(folder)
    assert shown["fit"] == "does not fit"
    assert shown["sentences"][0].startswith(
        "OutOfMemoryError: CUDA out of memory. Tried"
    )
    assert shown["rows"][-1]["high_bytes"] is None


def test_an_abort_after_the_last_line_leaves_the_prediction_whole(run, folder):
    """As torch's threads do that come back to a Python that is ending."""
    aborts = "import atexit, os\natexit.register(os.abort)\n" + TRAINS
    text = aborts.replace("range(1000)", "range(2)")
    # With an interpreter of its own, which ends as any does.
    words = ("--python", python(), "--on", "h100", "--json", "train.py", "64")
    done = run(text, *words, code=0)
    assert "aborted after its last line" in done.stderr
    answer = json.loads(done.stdout)
    assert answer["fit"] == "fits"
    assert answer["ranks"][0]["devices"][0]["peak_allocated_bytes"] > 30 << 20
    (recording,) = read_run(folder / "memboard-runs" / "train").values()
    assert recording.tables["step"]["step"].tolist() == [0, 1]


def test_a_program_of_its_own_recorder_leaves_its_real_runs_alone(run, folder):
    run(RECORDS, "--on", "24GiB,8.9", "--steps", "4", "train.py", code=0)
    assert not (folder / "runs").exists()
    (recording,) = read_run(folder / "memboard-runs" / "train").values()
    assert recording.tables["step"]["step"].tolist() == [0, 1, 2, 3, 4]


def test_settings_of_the_command_line_win_over_its_own_recorders(run, folder):
    text = RECORDS.replace('"runs/real"', '"runs/real", history=False, scalars=True')
    words = ("--set", "history=true", "--set", "scalars=false", "--steps", "4")
    run(text, "--on", "24GiB,8.9", *words, "train.py", code=0)
    (recording,) = read_run(folder / "memboard-runs" / "train").values()
    assert recording.header.config["history"]["enabled"] is True
    assert recording.header.config["scalars"] is False
    captures = [one.context for one in recording.captures if one.kind == "history"]
    assert {"start", "end"} <= set(captures), "beside that of the prediction's end"


def test_single_ranks_of_a_job_wait_for_nobody(run, folder):
    # What ranks send is taken over while torch is imported: theirs has not been yet.
    words = ("--on", "h100", "--world-size", "16", "--ranks", "0,9", "--json")
    done = run(RANKS, "--python", python(), *words, "train.py", code=0)
    assert "0 16 8 run 0" in done.stderr
    assert "9 16 8 run 0" in done.stderr, "what rank 0 sent before"
    ranks = json.loads(done.stdout)["ranks"]
    assert [rank["rank"] for rank in ranks] == [0, 9]
    for rank in ranks:
        names = [one["name"] for one in rank["devices"][0]["estimates"]]
        assert any(name.startswith("NCCL") for name in names)
    assert set(read_run(folder / "memboard-runs" / "train")) == {0, 9}


def test_the_largest_that_fits_is_found(run):
    words = ("--on", "1GiB", "--largest", "n=8", "--json")
    done = run(
        TRAINS.replace("size = int", "size = 512 * int"),
        *words,
        "train.py",
        "{n}",
        code=0,
    )
    values = json.loads(done.stdout)["values"]
    fits = [int(one["value"]) for one in values if one["fit"] == "fits"]
    others = [int(one["value"]) for one in values if one["fit"] != "fits"]
    assert max(fits) + 1 == min(others)


def test_what_is_no_cuda_program_is_said(run):
    done = run("import torch", "--on", "h100", "train.py", code=2)
    assert "cannot say: the program has used no CUDA device" in done.stdout


RECORDS_HISTORY = """
import sys, torch
layer = torch.nn.Linear(256, 256).cuda()
optimizer = torch.optim.AdamW(layer.parameters())
for step in range(3):
    if step == 1:
        torch.cuda.memory._record_memory_history(max_entries=10_000)
    layer(torch.randn(8, 256, device="cuda")).sum().backward()
    optimizer.step()
    if step == 1:
        (trace,) = torch.cuda.memory._snapshot()["device_traces"]
        print("events", [(one["action"], one["size"]) for one in trace], file=sys.stderr)
"""


def test_a_programs_own_history_is_the_same_with_and_without_ours(run):
    def events(*words: str) -> list[str]:
        words = ("--on", "h100", "--steps", "4", *words, "train.py")
        done = run(RECORDS_HISTORY, *words, code=0)
        return [line for line in done.stderr.splitlines() if line.startswith("events")]

    with_ours, without = events(), events("--set", "oom=false")
    assert len(without) == 1
    assert with_ours == without


TRAINS_IN_8_BITS = """
import sys, torch
import torch.distributed as dist
from torch import nn

class Adam8bit(torch.optim.Optimizer):
    @torch.no_grad()
    def step(self, closure=None):
        for parameter in self.param_groups[0]["params"]:
            state = self.state[parameter]
            if not state:
                state["state1"] = torch.zeros_like(parameter, dtype=torch.uint8)
                state["state2"] = torch.zeros_like(parameter, dtype=torch.uint8)
            parameter.sub_(parameter.grad, alpha=1e-3)

batch, clears = int(sys.argv[1]), sys.argv[2] == "clears"
dist.init_process_group()
torch.cuda.set_device(0)
layers = [nn.Sequential(nn.Linear(1024, 1024), nn.ReLU()) for _ in range(8)]
model = nn.parallel.DistributedDataParallel(nn.Sequential(*layers).cuda())
optimizer = Adam8bit(model.parameters(), {})
for step in range(1000):
    optimizer.zero_grad()
    model(torch.randn(batch, 1024, device="cuda")).square().mean().backward()
    optimizer.step()
    if clears:
        optimizer.zero_grad()
"""


@pytest.mark.parametrize("after", ["clears", "keeps"])
@pytest.mark.parametrize("batch", [64, 32_768])
def test_parameters_gradients_buckets_and_states_have_rows_of_their_own(
    run, batch, after
):
    """Whether gradients are there at the end, when the tensors are looked at, or not."""
    words = ("--on", "h100", "--world-size", "4", "--ranks", "0", "--json")
    done = run(TRAINS_IN_8_BITS, *words, "train.py", str(batch), after, code=0)
    (device,) = json.loads(done.stdout)["ranks"][0]["devices"]
    sizes = device["categories_bytes"]
    parameters = 4 * 8 * (1024 * 1024 + 1024)
    assert sizes["param"] == pytest.approx(parameters, rel=0.01)
    assert sizes["optimizer"] == pytest.approx(parameters / 2, rel=0.01)
    # Once: torch has let go of the first step's when the second makes others.
    assert sizes["comm"] == pytest.approx(parameters, rel=0.01)
    assert sizes.get("unknown", 0) < 1 << 20
    # One workspace of cuBLAS on each of the two threads that multiply.
    assert sizes["temp"] >= 2 * (32 << 20)
    if batch == 64:  # the end of the backward is the peak
        assert sizes["grad"] == pytest.approx(parameters, rel=0.01)
    else:
        assert sizes.get("grad", 0) <= 0.2 * parameters
        # At the first node's: what this makes may be passed on, or not.
        passing = sizes["temp"] + sizes.get("activation_grad", 0)
        assert passing > 2 * batch * 1024 * 4


CLASSIFIES = """
import torch
from torch import nn
model = nn.Sequential(nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 8000)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(1000):
    rows = torch.randn(4096, 512).to("cuda")
    names = torch.zeros(4096, dtype=torch.long).to("cuda")
    nn.functional.cross_entropy(model(rows), names).backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def test_gradients_of_activations_are_a_row_and_all_rows_are_the_peak(run, folder):
    done = run(CLASSIFIES, "--on", "h100", "--json", "train.py", code=0)
    (device,) = json.loads(done.stdout)["ranks"][0]["devices"]
    sizes = device["categories_bytes"]
    logits = 4096 * 8000 * 4
    assert sizes["activation_grad"] == pytest.approx(2 * logits, rel=0.01)
    # cuBLAS's workspaces: of the program's thread and of autograd's.
    assert sizes["temp"] == pytest.approx(2 * (32 << 20), rel=0.01)
    assert 0 < device["rounding_bytes"] < 4 << 20
    rows = (*sizes.values(), device["rounding_bytes"])
    assert sum(rows) == device["peak_allocated_bytes"]
    printed = run(CLASSIFIES, "--on", "h100", "train.py", code=0).stdout
    assert "      gradients of activations   250.00 MiB\n" in printed
    assert "      rounding of blocks         2." in printed
    report = [
        sys.executable,
        "-m",
        "memboard.tb_plugin.cli",
        "report",
        "memboard-runs/train",
    ]
    text = subprocess.run(
        report, check=True, capture_output=True, text=True, cwd=folder
    ).stdout
    assert "gradients of activations 250.00 MiB" in text


READS = """
import torch
layer = torch.nn.Linear(64, 64).cuda()
experts = torch.nn.Parameter(torch.ones(4, 64, 64, device="cuda"))
optimizer = torch.optim.AdamW([*layer.parameters(), experts])
for step in range(1000):
    x = layer(torch.randn(8, 64, device="cuda")).repeat(1, 1)
    offsets = torch.randint(8, (4,), device="cuda").cumsum(0).to(torch.int32)
    x = torch._grouped_mm(x.bfloat16(), experts.bfloat16(), offs=offsets)  # decides
    loss = x.float().sum()
    loss.backward()
    optimizer.step()
    print("loss", loss.item(), loss, f"{loss:.2f}")  # shows
    mean = loss.item() / 8  # shows
    x[x > 0].sum()  # decides
    torch.nonzero(x)  # decides
    torch.masked_select(x, x > 0)  # decides
    torch.zeros([size + 1 for size in offsets.tolist()])  # decides
    if loss > 1:  # decides
        break
    print(mean)
"""


def test_lines_that_decide_by_values_are_apart_from_those_that_show_them(run):
    done = run(READS, "--on", "a100", "--json", "train.py", code=0)
    places = json.loads(done.stdout)["ranks"][0]["places"]
    marks = {"# shows": True, "# decides": False}
    expected = {
        number: marks[mark]
        for number, line in enumerate(READS.splitlines(), 1)
        for mark in marks
        if line.endswith(mark)
    }
    lines = {one["line"]: one["is_only_shown"] for one in places if one["file"]}
    assert lines == expected
    assert any(not one["file"] for one in places), "the backward of grouped_mm"
    kinds = [one["is_only_shown"] for one in places]
    assert kinds == sorted(kinds), "those that decide come first"
