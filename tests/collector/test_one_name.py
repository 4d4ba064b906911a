"""All of MemBoard is imported as `memboard`: names of its folders are the program's own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.browser import tensorboard
from tests.recordings import read_run

ROOT = Path(__file__).parents[2]

TRAIN = """
import sys
from pathlib import Path

import collector
import tb_plugin
import torch

import memboard as mb
import memboard.tb_plugin.cli


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, place):
        import collector
        import tb_plugin

        return torch.tensor(collector.answer + tb_plugin.answer + place)


def main():
    loader = torch.utils.data.DataLoader(
        Numbers(), num_workers=1, multiprocessing_context="spawn"
    )
    with mb.record("run") as rec:
        for batch in loader:
            assert batch.item() >= 43
            rec.step()
    files = [
        Path(module.__file__).resolve()
        for name, module in sys.modules.items()
        if name.startswith("memboard") and getattr(module, "__file__", None)
    ]
    others = {
        Path(module.__file__).resolve()
        for name, module in list(sys.modules.items())
        if not name.startswith("memboard") and getattr(module, "__file__", None)
    }
    assert len(files) > 50
    assert len(set(files)) == len(files)
    assert not others & set(files)


if __name__ == "__main__":
    main()
"""
OWN = {
    "modules": {"collector.py": 42, "tb_plugin.py": 1},
    "packages": {"collector/__init__.py": 42, "tb_plugin/__init__.py": 1},
}
STARTS = {
    "python": ["train.py"],
    "memboard run": ["-m", "memboard", "run", "train.py"],
    "torchrun": ["-m", "torch.distributed.run", "--nproc-per-node=1", "train.py"],
}


@pytest.fixture(params=OWN)
def folder(tmp_path, request):
    """Of a program whose modules have the names of our folders."""
    for name, answer in OWN[request.param].items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"answer = {answer}\n")
    (tmp_path / "train.py").write_text(TRAIN)
    return tmp_path


def python(folder: Path, *words: str) -> str:
    """What Python prints there; it looks into this folder first."""
    done = subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("start", STARTS)
def test_a_program_with_modules_named_as_ours_runs_and_records(folder, start):
    python(folder, *STARTS[start])
    (rank,) = read_run(folder / "run").values()
    assert rank.tables["step"]["step"].tolist() == list(range(6))


def test_its_recording_opens_in_its_folder(folder):
    """In the command, TensorBoard, and their processes that read files."""
    (folder / "train.py").write_text(
        "import memboard as mb, pickle\n"
        "with mb.record('runs/run') as rec: rec.step()\n"
        "segment = {'device': 0, 'address': 512, 'total_size': 512, 'stream': 0,\n"
        "    'segment_type': 'small', 'allocated_size': 512, 'active_size': 512,\n"
        "    'requested_size': 512, 'blocks': [{'size': 512, 'requested_size': 512,\n"
        "    'address': 512, 'state': 'active_allocated', 'frames': []}]}\n"
        "whole = {'segments': [segment], 'device_traces': [[]]}\n"
        "with open('runs/snapshot.pickle', 'wb') as file: pickle.dump(whole, file)\n"
    )
    python(folder, "train.py")
    report = json.loads(python(folder, "-m", "memboard", "report", "--json", "runs"))
    assert len(report["runs"]) == 2
    assert "snapshot.pickle" in json.dumps(report)
    with tensorboard(["--logdir", "runs"], folder / "tensorboard.log") as running:
        assert json.loads(running.get("data/plugins_listing"))["memboard"]["enabled"]
        assert b'"runs":[{' in running.get("data/plugin/memboard/runs")


@pytest.mark.parametrize("place", ["a checkout", "elsewhere"])
def test_the_first_name_is_an_alias_without_modules_of_its_own(tmp_path, place):
    code = (
        "import collector, memboard, sys\n"
        "assert collector.record is memboard.record\n"
        "assert set(memboard.__all__) <= set(dir(collector))\n"
        "names = [n for n in sys.modules if n.startswith('collector.')]\n"
        "assert names == []\n"
        "try: import collector.config\n"
        "except ModuleNotFoundError: print('none')\n"
    )
    assert python(ROOT if place == "a checkout" else tmp_path, "-c", code) == "none\n"
