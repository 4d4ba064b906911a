"""`memboard demo` as a user meets it: trains, simulates, serves, fails and stops."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
import psutil
import pytest

from memboard.collector.cli.demo import launch
from memboard.collector.cli.demo.launch import TrainingPlan, plan_training
from memboard.collector.cli.failure import Failure
from memboard.tb_plugin.cli import main
from tests.recordings import read_run

if TYPE_CHECKING:
    from collections.abc import Sequence

DEMO = (
    sys.executable,
    "-u",
    "-X",
    "faulthandler",
    "-m",
    "memboard.tb_plugin.cli",
    "demo",
)
ROOT = Path(__file__).parent.parent.parent.parent


SMALL = ("--simulate", "2", "--steps", "3")
TRAIN = ("--train", "--simulate", "0", "--ranks", "2")


def run_demo(
    *arguments: str, start: Sequence[str | Path] = DEMO
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*start, *arguments],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
        cwd=ROOT,
    )


@contextmanager
def running_demo(*arguments: str, start: Sequence[str | Path] = DEMO):
    """A demo in the background; what it leaves running is ended."""
    process = subprocess.Popen(
        [*start, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def exit_code(process: subprocess.Popen[str]) -> int:
    """Of a demo that ends; one that does not says where it hangs."""
    try:
        return process.wait(120)
    except subprocess.TimeoutExpired:
        status = Path(f"/proc/{process.pid}/status").read_text()
        process.send_signal(signal.SIGABRT)
        raise AssertionError(process.stdout.read() + status) from None


def read_until(process: subprocess.Popen[str], pattern: str) -> str:
    """Lines up to the first that matches, which is what comes back."""
    said = []
    for line in process.stdout:
        said.append(line)
        if re.search(pattern, line):
            return line
    raise AssertionError("it ended before that:\n" + "".join(said))


def processes_naming(path: Path) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        words = " ".join(process.info["cmdline"] or ())
        if str(path) in words and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(process)
    return found


def wait_until_gone(path: Path) -> None:
    deadline = time.monotonic() + 300
    while left := processes_naming(path):
        assert time.monotonic() < deadline, left
        time.sleep(0.1)


def test_the_training_records_every_rank(fsdp_on_cpu, forked_demo, tmp_path):
    out = tmp_path / "logs"
    options = ("--no-serve", *TRAIN, "--steps", "5", "--out", str(out))
    done = run_demo(*options, start=forked_demo)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Trained 2 ranks for" in done.stdout
    assert f"tensorboard --logdir {out}" in done.stdout
    assert "Warning" not in done.stdout + done.stderr
    assert len(list(out.rglob("*tfevents*"))) == 1
    ranks = read_run(out / "demo")
    assert sorted(ranks) == [0, 1]
    for rank, recording in ranks.items():
        header = recording.header
        assert (header.rank, header.local_rank, header.world_size) == (rank, rank, 2)
        assert not header.simulated
        assert header.job == ranks[0].header.job != ""
        assert recording.close is not None
        assert recording.close.how == "closed"
        assert recording.steps["step"].tolist() == list(range(5))
        assert recording.steps["samples"].tolist() == [4, 8, 12, 16, 20]
        assert len(np.unique(np.diff(recording.steps["tokens"]))) > 1
        assert recording.steps["rss_bytes"].min() > 100 << 20
        assert recording.notes_of("epoch")[0].data == {"epoch": 0, "length": 50}
        assert recording.notes_of("loader")[0].data["num_workers"] == 1
        snaps = recording.tables["function/training_step"]
        assert snaps["iteration"].tolist() == [3, 3, 4, 4, 5, 5]
        kinds = {c.kind for c in recording.captures if c.iteration == 3}
        assert kinds == {"hooks", "activations", "modules"}
        assert (recording.tables["activations"]["saved_bytes"] > 1 << 20).tolist() == [
            True
        ] * 3
    same = [r.steps["tokens"].tolist() for r in ranks.values()]
    assert same[0] == same[1]


def test_a_training_ends_when_its_time_is_over_and_all_ranks_with_one_step(
    fsdp_on_cpu, forked_demo, tmp_path
):
    options = ("--no-serve", *TRAIN, "--steps", "100000", "--seconds", "1")
    done = run_demo(*options, "--out", str(tmp_path), start=forked_demo)
    assert done.returncode == 0, done.stdout + done.stderr
    ends = [
        (r.close.how, r.steps["step"][-1]) for r in read_run(tmp_path / "demo").values()
    ]
    assert ends[0] == ends[1]
    assert ends[0][0] == "closed"


def test_ctrl_c_while_training_closes_the_recordings_and_leaves_nothing(
    fsdp_on_cpu, forked_demo, tmp_path
):
    out = tmp_path / "logs"
    # So many that it is not over before it is interrupted.
    options = ("--no-serve", *TRAIN, "--steps", "100000", "--seconds", "600")
    with running_demo(*options, "--out", str(out), start=forked_demo) as process:
        # Not the first step: another rank may still be in it.
        read_until(process, r"step ([2-9]|\d\d+)/100000")
        assert processes_naming(out)
        process.send_signal(signal.SIGINT)
        said = process.stdout.read()
        assert exit_code(process) == 130
    assert "interrupted" in said
    assert "Traceback" not in said
    wait_until_gone(out)
    for recording in read_run(out / "demo").values():
        assert recording.close is not None
        assert recording.close.how == "exception"
        assert len(recording.steps["step"]) > 0


def failing_plan(monkeypatch, script: str) -> TrainingPlan:
    """A plan whose ranks run `script` instead of the training."""
    monkeypatch.setattr(
        TrainingPlan, "_command", lambda self, run_dir: [sys.executable, "-c", script]
    )
    return TrainingPlan("cpu", 2, 1, 30, 0, "Testing.")


def test_a_rank_that_fails_is_named_with_its_last_lines(monkeypatch, tmp_path):
    script = f"""
import os, sys, time
if os.environ["RANK"] == "1":
    for n in range(100): print("line", n)
    raise MemoryError("too much <b>memory</b>")
path = {str(tmp_path / "pid")!r}
with open(path + ".part", "w") as file: file.write(str(os.getpid()))
os.replace(path + ".part", path)
time.sleep(600)
"""
    plan = failing_plan(monkeypatch, script)
    started = time.monotonic()
    with pytest.raises(Failure) as caught:
        plan.run(tmp_path / "run")
    assert time.monotonic() - started < 300, "nobody waits for the other rank"
    said = str(caught.value)
    assert said.startswith("rank 1 ended with exit code 1")
    assert "MemoryError: too much <b>memory</b>" in said
    assert "| line 99" in said
    assert "line 50\n" not in said
    assert "what to do: " in said
    if (tmp_path / "pid").exists():
        assert not psutil.pid_exists(int((tmp_path / "pid").read_text()))


def test_a_rank_that_is_killed_is_named_with_the_signal(monkeypatch, tmp_path):
    script = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    with pytest.raises(Failure, match=r"rank \d ended with signal SIGKILL"):
        failing_plan(monkeypatch, script).run(tmp_path / "run")


def test_ranks_learn_who_they_are_as_from_torchrun(monkeypatch, tmp_path):
    script = f"""
import json, os
names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "OMP_NUM_THREADS")
path = {str(tmp_path)!r} + "/rank" + os.environ["RANK"]
open(path, "w").write(json.dumps([os.environ[n] for n in names]))
"""
    failing_plan(monkeypatch, script).run(tmp_path / "run")
    for rank in range(2):
        told = json.loads((tmp_path / f"rank{rank}").read_text())
        assert told == [str(rank), str(rank), "2", "2", "1"]


def fake_torch(cuda, cpu_stream):
    return SimpleNamespace(
        cuda=cuda,
        cpu=SimpleNamespace(Stream=cpu_stream),
        __version__="2.6.0",
        __file__="torch/__init__.py",
    )


@pytest.mark.parametrize(
    ("num_gpus", "asked", "device", "num_ranks", "words"),
    [
        (0, None, "cpu", 4, "4 ranks on the CPU (gloo)."),
        (0, 3, "cpu", 3, "3 ranks on the CPU"),
        (2, None, "cuda", 2, "2 GPUs (Fake)"),
        (2, 1, "cuda", 1, "1 of 2 GPUs (Fake)"),
        (2, 4, "cpu", 4, "4 ranks, but only 2 GPUs"),
    ],
)
def test_gpus_are_used_where_every_rank_gets_one(
    monkeypatch, num_gpus, asked, device, num_ranks, words
):
    cuda = SimpleNamespace(
        is_available=lambda: num_gpus > 0,
        device_count=lambda: num_gpus,
        get_device_name=lambda _: "Fake",
    )
    imported = fake_torch(cuda, SimpleNamespace(record_event=None))
    monkeypatch.setattr(launch, "_import_torch", lambda: imported)
    plan = plan_training(asked, 10, 30, 0)
    assert (plan.device, plan.num_ranks) == (device, num_ranks)
    assert words in plan.words


def test_a_torch_whose_fsdp_needs_gpus_is_refused_before_it_trains(monkeypatch):
    cuda = SimpleNamespace(is_available=lambda: False)
    imported = fake_torch(cuda, SimpleNamespace())
    monkeypatch.setattr(launch, "_import_torch", lambda: imported)
    with pytest.raises(Failure, match=r"\(2\.6\.0\) trains on GPUs only") as refused:
        plan_training(None, 10, 30, 0)
    assert "pip install --upgrade torch" in str(refused.value)


def test_without_torch_the_exact_command_is_given(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(launch, "find_spec", lambda name: None)
    out = tmp_path / "logs"
    assert main(["demo", "--train", "--out", str(out)]) == 2
    said = capsys.readouterr().err
    assert f'{sys.executable} -m pip install "torch>=2.6"' in said
    assert said.rstrip().endswith("memboard demo")
    assert not out.exists()


def test_a_simulated_run_says_so_and_names_its_faults(tmp_path, capsys):
    arguments = ["demo", "--no-serve", "--out", str(tmp_path)]
    arguments += ["--simulate", "9", "--steps", "20"]
    assert main(arguments) == 0
    said = capsys.readouterr().out
    run_dir = tmp_path / "simulated-9x20"
    ranks = read_run(run_dir)
    assert len(ranks) == 9
    assert "All of it is simulated" in said
    for words in ranks[0].header.planted:
        assert words in said


def test_a_simulated_run_s_scalars_are_rank_0_s_rows(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    arguments = ["demo", "--no-serve", "--out", str(tmp_path)]
    arguments += ["--simulate", "2", "--steps", "30", "--metrics", "8"]
    assert main(arguments) == 0
    run_dir = tmp_path / "simulated-2x30"
    # A second one stands beside the first.
    before = {p: p.read_bytes() for p in run_dir.rglob("*.*") if p.is_file()}
    assert main([*arguments, "--seed", "3"]) == 0
    assert {p.name for p in tmp_path.iterdir()} == {run_dir.name, f"{run_dir.name}-2"}
    assert before == {p: p.read_bytes() for p in run_dir.rglob("*.*") if p.is_file()}
    (path,) = run_dir.rglob("*tfevents*")
    assert path.parent == run_dir / "memboard"
    events = EventAccumulator(str(path.parent), size_guidance={"tensors": 0}).Reload()
    rows = read_run(run_dir)[0].steps
    points = events.Tensors("memboard/allocated_peak_gib")
    assert [point.step for point in points] == rows["step"].tolist()
    values = [point.tensor_proto.float_val[0] for point in points]
    np.testing.assert_allclose(values, rows["allocated_peak_bytes"] / 2**30, rtol=1e-6)


def test_tensorboard_serves_the_run_and_ends_with_the_demo(tmp_path):
    out = tmp_path / "logs"
    with running_demo("--no-browser", *SMALL, "--out", str(out)) as process:
        url = read_until(process, r"^TensorBoard: http").split()[-1]
        read_until(process, "^Serving")
        assert url.endswith("#memboard")
        with urllib.request.urlopen(
            url + "/../data/environment", timeout=120
        ) as answer:
            assert answer.status == 200
        process.send_signal(signal.SIGINT)
        assert exit_code(process) == 0
        assert "Traceback" not in process.stdout.read()
    wait_until_gone(out)


def test_being_terminated_stops_tensorboard_too(tmp_path):
    out = tmp_path / "logs"
    with running_demo("--no-browser", *SMALL, "--out", str(out)) as process:
        read_until(process, "^Serving")
        assert processes_naming(out)
        process.terminate()
        exit_code(process)
    wait_until_gone(out)


def test_a_port_that_is_taken_is_said(tmp_path):
    with socket.socket() as taken:
        taken.bind(("localhost", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = run_demo("--simulate", "2", "--port", port, "--out", str(tmp_path))
    assert done.returncode == 2
    assert "TensorBoard did not start" in done.stderr
    assert "--port" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--simulate", "-1"], "--simulate is -1"),
        (["--simulate", "0"], "leaves nothing to show"),
        (["--train", "--seconds", "0"], "--seconds is 0"),
        (["--ranks", "-1"], "--ranks is -1"),
        (["--steps", "0"], "--steps is 0"),
        (["--port", "70000"], "--port is 70000"),
        (["--ranks", "2"], "--ranks was given without --train"),
        (["--simulate", "100001", "--no-serve"], "from 1 to 100000"),
        (["--simulate", "2", "--seed", "-1", "--no-serve"], "seed -1"),
    ],
)
def test_what_cannot_be_is_refused_with_the_remedy(arguments, said, capsys, tmp_path):
    assert main(["demo", "--out", str(tmp_path / "logs"), *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("memboard demo: ")
    assert said in error
    assert not list(tmp_path.rglob("*.events"))


def test_a_logdir_that_cannot_be_made_is_named(capsys, tmp_path):
    (tmp_path / "file").write_text("")
    out = str(tmp_path / "file" / "logs")
    assert main(["demo", "--simulate", "2", "--no-serve", "--out", out]) == 2
    error = capsys.readouterr().err
    assert out in error
    assert "--out" in error


def test_an_unknown_verb_or_option_exits_with_2(capsys):
    for arguments in (["nonsense"], ["demo", "--nonsense"], []):
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 2
    assert "demo" in capsys.readouterr().err


def test_help_loads_nothing_heavy():
    script = (
        "import sys\nfrom memboard.tb_plugin.cli import main\n"
        "try: main(['demo', '--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'numpy', 'tensorboard', 'google'} & set(sys.modules)\n"
        "sys.exit(f'loaded {heavy}' if heavy else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    assert "--simulate" in done.stdout
