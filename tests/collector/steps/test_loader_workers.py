"""Steps that wait for data: how many workers load it is recorded, and said with the advice."""

from __future__ import annotations

import time

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from tests.collector.recordings import read_only_file
from tests.collector.steps.test_span_log import record
from tests.kineto_files import KinetoFile
from tests.tb_plugin.client import Page
from tests.tb_plugin.pages.profiled import ask
from tests.tb_plugin.step_runs import Story, write

NUM_BATCHES = 12
ITERATORS = ("_SingleProcessDataLoaderIter", "_MultiProcessingDataLoaderIter")


class Slow(Dataset):
    def __len__(self) -> int:
        return NUM_BATCHES

    def __getitem__(self, index: int) -> torch.Tensor:
        time.sleep(0.05)
        return torch.tensor(index)


def advice(findings: list[dict], key: str) -> str:
    (finding,) = [one for one in findings if one["key"] == key]
    return " ".join(one["text"] for one in finding["advice"])


def trained(folder, *loaders: DataLoader, val: DataLoader | None = None) -> None:
    with record(folder) as rec:
        for loader in loaders:
            for _ in loader:
                rec.step()
            if val is not None:
                with rec.phase("val"):
                    list(val)


@pytest.mark.parametrize(
    ("num", "said"),
    [
        (0, "Load in worker processes, which prefetch (prefetch_factor): num_workers is 0."),
        (1, "Give the DataLoader more than its 1 worker (num_workers), let them prefetch"),
        (2, "Give the DataLoader more than its 2 workers (num_workers), let them prefetch"),
    ],
)  # fmt: skip
def test_the_advice_says_how_many_workers_there_are(tmp_path, num, said):
    trained(tmp_path / "run", DataLoader(Slow(), num_workers=num))
    notes = read_only_file(tmp_path / "run").notes_of("loading")
    assert notes == [{"num_workers": num}]
    findings = Page(tmp_path / "run").of_run("/stragglers")["findings"]
    assert advice(findings, "dataloader_bound").startswith(said)


def test_loaders_of_evaluation_are_not_what_training_waits_for(tmp_path):
    train = DataLoader(Slow(), num_workers=1)
    trained(tmp_path / "run", train, train, val=DataLoader(range(4)))
    notes = read_only_file(tmp_path / "run").notes_of("loading")
    assert notes == [{"num_workers": 1}]


def test_nothing_is_said_of_workers_where_two_loaders_have_each_another_number(
    tmp_path,
):
    trained(tmp_path / "run", DataLoader(Slow(), num_workers=1), DataLoader(Slow()))
    notes = read_only_file(tmp_path / "run").notes_of("loading")
    assert notes == [{"num_workers": 1}, {"num_workers": 0}]
    findings = Page(tmp_path / "run").of_run("/stragglers")["findings"]
    said = advice(findings, "dataloader_bound")
    assert said.startswith(
        "Load in worker processes, or in more of them (num_workers). If"
    )


def test_nothing_is_said_of_workers_that_were_not_recorded(tmp_path):
    write(tmp_path / "run", Story(more=lambda r, s: {"dataloader": 60}).tell())
    findings = Page(tmp_path / "run").of_run("/stragglers")["findings"]
    said = advice(findings, "dataloader_bound")
    assert said.startswith(
        "Load in worker processes, or in more of them (num_workers). If"
    )


@pytest.mark.parametrize(
    ("iterator", "said"),
    [
        (ITERATORS[0], "num_workers is 0."),
        (ITERATORS[1], "Give the DataLoader more workers (num_workers), let"),
    ],
)
def test_a_trace_alone_knows_whether_there_are_workers_not_how_many(
    tmp_path, iterator, said
):
    loading_trace(iterator).write(tmp_path / "exp" / "host_0.1.pt.trace.json")
    assert said in advice(ask(Page(tmp_path), "profile")["findings"], "loading")


def test_a_trace_of_a_recorded_run_has_the_number(tmp_path):
    trained(tmp_path / "run", DataLoader(Slow(), num_workers=2))
    loading_trace(ITERATORS[1]).write(tmp_path / "run" / "host_0.1.pt.trace.json")
    said = advice(ask(Page(tmp_path / "run"), "profile")["findings"], "loading")
    assert "more than its 2 workers" in said


def loading_trace(iterator: str) -> KinetoFile:
    made = KinetoFile()
    made.step(1, 0, 1000)
    made.slice(f"enumerate(DataLoader)#{iterator}.__next__", 0, 500, "user_annotation")
    made.slice("aten::mm", 600, 200)
    return made
