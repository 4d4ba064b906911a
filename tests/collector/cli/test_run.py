"""`memboard run` as a user meets it: the program is its own, and it is recorded."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.recordings import read_run

ROOT = Path(__file__).parent.parent.parent.parent
RUN = ["-m", "memboard.tb_plugin.cli", "run"]
NOTHING = "nothing is recorded: the program ended before it imported torch."

ABOUT_ITSELF = """
import sys
print(sys.argv, __name__, __file__, __package__, __spec__ and __spec__.name)
print(__doc__, __builtins__, type(__loader__).__name__, sorted(globals()))
print(sys.path[0], sys.modules["__main__"].__dict__ is globals())
import beside
print(beside.__file__, "torch" in sys.modules, "numpy" in sys.modules)
"""


@pytest.fixture
def folder(tmp_path):
    """Where programs lie: with a module beside them, and a package."""
    (tmp_path / "beside.py").write_text("")
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "beside.py").write_text("")
    (package / "__main__.py").write_text(ABOUT_ITSELF)
    (tmp_path / "about.py").write_text(ABOUT_ITSELF)
    (tmp_path / "link.py").symlink_to(package / "__main__.py")
    return tmp_path


def python(folder: Path, *words: str, **options) -> subprocess.CompletedProcess[str]:
    """Run Python there, with our packages where it finds them."""
    return subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        **options,
    )


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return python(folder, *RUN, *words)


def program(folder: Path, text: str, name: str = "train.py") -> str:
    (folder / name).write_text(text)
    return name


def steps_of(run_dir: Path) -> list[list[int]]:
    """The steps that each rank has recorded."""
    return [
        one.tables["step"]["step"].tolist() if "step" in one.tables else []
        for one in read_run(run_dir).values()
    ]


# The program is its own.


@pytest.mark.parametrize(
    "words",
    [
        ("about.py", "--lr", "3", "-m", "x", "--logdir", "no"),
        ("link.py",),
        ("package",),
        ("-m", "package", "--on", "its own"),
        ("-m", "about"),
    ],
    ids=" ".join,
)
def test_a_program_finds_what_python_gives_it(folder, words):
    bare, ours = python(folder, *words), run(folder, *words)
    assert bare.returncode == ours.returncode == 0, ours.stderr
    assert ours.stdout == bare.stdout
    assert ours.stderr == f"memboard: {NOTHING}\n"


@pytest.mark.parametrize(
    "ending",
    [
        "import sys; sys.exit(3)",
        "raise SystemExit('said by itself')",
        "def f(): raise ValueError('x')\nf()",
        "this is no python",
        "raise KeyboardInterrupt",
        "import sys\nsys.excepthook = lambda *a: print('own hook', a[2].tb_lineno)\n1/0",
        "import os; os._exit(4)",
    ],
)
def test_it_ends_as_it_would_without_us(folder, ending):
    name = program(folder, ending)
    bare, ours = python(folder, name), run(folder, name)
    assert ours.returncode == bare.returncode
    assert ours.stdout == bare.stdout
    said = re.sub(r"memboard: .*\n", "", ours.stderr)
    assert said == bare.stderr
    if "KeyboardInterrupt" in ending:
        assert ours.returncode == -signal.SIGINT


SPAWNS = """
import multiprocessing
def work(number): print("worked", number, __name__, flush=True)
if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        pool.map(work, [1, 2])
"""


@pytest.mark.parametrize("words", [("spawns.py",), ("-m", "spawns")], ids=" ".join)
def test_processes_that_it_spawns_find_its_functions(folder, words):
    program(folder, SPAWNS, "spawns.py")
    ours = run(folder, *words)
    assert ours.returncode == 0, ours.stderr
    assert ours.stdout == "worked 1 __mp_main__\nworked 2 __mp_main__\n"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "there is no program to run"),
        (("-m",), "there is no program to run"),
        (("gone.py",), "the program cannot be found"),
        (("--set", "histry=true", "about.py"), "unknown key 'histry' in --set"),
        (("--set", "rank=x", "about.py"), "'rank' in the keywords must be a whole"),
        (("--set", "history", "about.py"), "'history' in --set sets nothing"),
        (("--config", "gone.yaml", "about.py"), "gone.yaml"),
        (("--name", "a/b", "about.py"), "--name is 'a/b'"),
        (("-m", "torch.distributed.run", "about.py"), "a launcher trains nothing"),
    ],
    ids=str,
)
def test_what_cannot_be_meant_is_said_before_anything_runs(folder, words, says):
    ours = run(folder, *words)
    assert ours.returncode == 2
    assert says in ours.stderr
    assert ours.stdout == ""
    assert not (folder / "memboard-runs").exists()


# It is recorded.


HOST = """
import sys, time, memboard as mb
while (rec := mb.active()) is None:
    time.sleep(0.01)
while "memory" not in rec._session.engine._timed_schemas:
    time.sleep(0.01)
print("torch" in sys.modules)
"""


def test_a_program_without_torch_has_its_host_recorded(folder):
    program(folder, HOST)
    ours = run(folder, "--logdir", "logs", "--name", "host", "train.py")
    assert ours.stdout == "False\n"
    assert ours.stderr == (
        "memboard: no optimizer of torch stepped in this process; its host is recorded"
        " in logs/host. To see it: tensorboard --logdir logs\n"
    )
    (recording,) = read_run(folder / "logs" / "host").values()
    assert recording.close is not None
    assert "memory" in recording.tables


TRAINS = """
import os, sys
print("before", os.environ.get("SEEN"), "torch" in sys.modules)
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Linear(4, 4)
    def forward(self, x):
        return self.one(x)

model, other = Net(), nn.Linear(4, 4)
first = torch.optim.Adam(model.parameters())
second = torch.optim.SGD(other.parameters(), lr=0.1)
for step in range(5):
    for _ in range(2):  # two batches are accumulated
        other(model(torch.ones(2, 4))).sum().backward()
    first.step()
    second.step()
    first.zero_grad()
if "fail" in sys.argv:
    raise ValueError("the end")
"""


def test_iterations_are_steps_and_what_is_trained_is_attached(folder):
    program(folder, TRAINS)
    (folder / "mine.yaml").write_text("flush_seconds: 0.5\nscalars: false\n")
    words = ("--config", "mine.yaml", "--set", "scalars=true", "--set", "host=7")
    ours = run(folder, *words, "train.py")
    assert ours.returncode == 0, ours.stderr
    assert ours.stdout == "before None False\n"
    assert "memboard: 5 steps recorded in memboard-runs/train." in ours.stderr
    (recording,) = read_run(folder / "memboard-runs" / "train").values()
    assert recording.tables["step"]["step"].tolist() == [0, 1, 2, 3, 4]
    config = recording.header.config
    assert config["flush_seconds"] == 0.5
    assert config["scalars"] is True
    assert config["host"] == 7
    notes = [(note.kind, note.data.get("type")) for note in recording.notes]
    assert ("model", "Net") in notes
    assert ("model", "Linear") in notes
    assert ("optimizer", "Adam") in notes
    assert ("optimizer", "SGD") in notes
    again = run(folder, "train.py", "fail")
    assert again.returncode == 1
    assert again.stderr.startswith("Traceback (most recent call last):\n  File")
    (failed,) = read_run(folder / "memboard-runs" / "train-2").values()
    assert failed.close.how == "exception"
    assert failed.close.message == "ValueError: the end"


def test_a_name_that_is_given_again_is_another_attempt_of_that_run(folder):
    program(folder, TRAINS)
    for _ in range(2):
        ours = run(folder, "--name", "exp", "train.py")
        assert ours.returncode == 0, ours.stderr
    assert [one.name for one in (folder / "memboard-runs").iterdir()] == ["exp"]
    assert len(list(folder.rglob("rank00000-*.events"))) == 2


RECORDS_ITSELF = """
import torch, memboard as mb
from torch import nn
model = nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with mb.record("runs/own") as rec:
    for step in range(3):
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()
        rec.step(step * 10)
"""


def test_a_program_that_records_itself_goes_before(folder):
    ours = run(folder, program(folder, RECORDS_ITSELF))
    assert ours.returncode == 0, ours.stderr
    assert steps_of(folder / "runs" / "own") == [[0, 10, 20]]
    assert "memboard: the program recorded itself in runs/own." in ours.stderr
    assert not any((folder / "memboard-runs").iterdir()), "nothing is left of ours"


RECORDS_AS_IT_SAYS = """
import torch, memboard as mb
from memboard.collector.config.sections import HistoryConfig
settings = {"history": HistoryConfig(max_entries=500), "scalars": True}
with mb.record("runs/own", flush_seconds=0.5, **settings) as rec:
    rec.step()
with mb.record("runs/other", config={"host": 3, "history": False}) as rec:
    rec.step()
"""


def test_settings_of_the_command_line_win_over_a_programs_own(folder):
    """Leaf by leaf; files of the command line count where the program names none."""
    (folder / "mine.yaml").write_text("host: 7\nflush_seconds: 9\n")
    words = ("--set", "history=true", "--set", "scalars=false", "--config", "mine.yaml")
    ours = run(folder, *words, program(folder, RECORDS_AS_IT_SAYS))
    assert ours.returncode == 0, ours.stderr
    (own,) = read_run(folder / "runs" / "own").values()
    (other,) = read_run(folder / "runs" / "other").values()
    for recording in (own, other):
        assert recording.header.config["history"]["enabled"] is True
        assert recording.header.config["scalars"] is False
    assert own.header.config["history"]["max_entries"] == 500
    assert (own.header.config["host"], other.header.config["host"]) == (7, 3)
    assert own.header.config["flush_seconds"] == 0.5
    assert other.header.config["flush_seconds"] == 2.0


def test_a_setting_of_the_command_line_that_cannot_be_is_said_by_its_name(folder):
    text = 'import memboard as mb\nmb.record("own", merge_on_close=True)\n'
    words = ("--set", "remote.url=file:///tmp/x", "--set", "remote.prune=true")
    ours = run(folder, *words, program(folder, text))
    assert ours.returncode == 1
    assert "'remote.prune' in --set" in ours.stderr


STEPS_OURS = """
import torch, memboard as mb
optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(2))], lr=0.1)
rec = mb.active()
for step in range(4):
    optimizer.step()
    if step % 2:
        rec.step()
"""


def test_a_program_may_step_our_recorder(folder):
    """From its first own step on, which comes after two of the optimizer's."""
    ours = run(folder, program(folder, STEPS_OURS))
    assert ours.returncode == 0, ours.stderr
    assert steps_of(folder / "memboard-runs" / "train") == [[0, 1, 2, 3]]


RANKS = """
import torch
import torch.distributed as dist
from torch import nn
dist.init_process_group("gloo")
model = nn.parallel.DistributedDataParallel(nn.Linear(4, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
dist.destroy_process_group()
"""


def test_ranks_of_torchrun_record_into_one_run(folder):
    program(folder, RANKS)
    launch = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    ours = python(folder, *launch, *RUN, "train.py")
    assert ours.returncode == 0, ours.stderr
    assert steps_of(folder / "memboard-runs" / "train") == [[0, 1, 2]] * 2
    assert ours.stderr.count("memboard: 3 steps recorded") == 1
