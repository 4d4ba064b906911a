"""Traces of every accelerator have devices, kernels, launches and memory by their names."""

from __future__ import annotations

import json

import numpy as np
import pytest

from memboard.tb_plugin.cli import main
from memboard.tb_plugin.formats.traces import read_trace
from memboard.tb_plugin.worker.cache import ColumnCache
from memboard.tb_plugin.worker.importer import Importer
from tests.kineto_files import KinetoFile
from tests.tb_plugin.client import Page
from tests.tb_plugin.pages.profiled import ask

PYTHON, CANN, DEVICE_3, HCCL = 437_675, 43_767_502, 803, 903


@pytest.fixture
def importer(tmp_path):
    importer = Importer(ColumnCache(tmp_path / "cache"))
    yield importer
    importer.close()


class AscendFile:
    """One rank as torch_npu and msprof write it: a list, times as texts of microseconds."""

    def __init__(self) -> None:
        self.events: list[dict] = []
        for pid, process, label, order in (
            (PYTHON, "Python", "CPU", 0),
            (CANN, "CANN", "CPU", 2),
            (DEVICE_3, "Ascend Hardware", "NPU", 8),
            (HCCL, "HCCL", "NPU", 9),
        ):
            for fact, args in (
                ("process_name", {"name": process}),
                ("process_labels", {"labels": label}),
                ("process_sort_index", {"sort_index": order}),
            ):
                self.events.append(
                    {"ph": "M", "name": fact, "pid": pid, "tid": 0, "args": args}
                )

    def slice(self, name, pid, tid, ts, dur, **more) -> None:
        self.events.append(
            {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": str(ts), "dur": dur}
            | more
        )

    def flow(self, cat, number, source, target) -> None:
        for ph, (pid, tid, ts) in (("s", source), ("f", target)):
            self.events.append(
                {"ph": ph, "bp": "e", "name": cat, "cat": cat, "id": number}
                | {"pid": pid, "tid": tid, "ts": str(ts)}
            )

    def work(self, operator, kernel, ts, dur, pid=DEVICE_3, tid=2) -> None:
        """An operator of 20 us, whose call on the queue's thread starts work."""
        number = len(self.events)
        self.slice(operator, PYTHON, 1, ts, 20, cat="cpu_op", args={})
        self.slice("Enqueue", PYTHON, 1, ts + 5, 2, cat="enqueue", args={})
        self.slice(f"Dequeue@{operator}", PYTHON, 7, ts + 8, 12, cat="dequeue")
        self.slice(f"AscendCL@{operator}", CANN, 7, ts + 10, 8, args={})
        self.slice(kernel, pid, tid, ts + 40, dur, args={})
        self.flow("HostToDevice", f"{number}", (CANN, 7, ts + 14), (pid, tid, ts + 40))
        self.flow("async_npu", number, (PYTHON, 1, ts), (pid, tid, ts + 40))

    def write(self, path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self.events))


def ascend() -> AscendFile:
    made = AscendFile()
    made.slice("ProfilerStep#4", PYTHON, 1, 1_000, 900, cat="cpu_op", args={})
    made.work("aclnnMm", "aclnnMm_MatMul_MatMul", 1_100, 300)
    made.work("aclnnAdd", "aclnnAdd_AddAiCore_Add", 1_500, 100)
    made.work("c10d::allreduce_", "hcom_allReduce__042_0_1", 1_600, 200, HCCL, 5)
    made.slice("Notify_Wait", HCCL, 6, 1_650, 100, args={})
    made.slice("NOTIFY_WAIT", DEVICE_3, 4, 1_650, 100, args={})
    made.slice("MEMCPY_ASYNC", DEVICE_3, 2, 1_900, 10, args={})
    return made


def test_work_of_npus_has_devices_streams_calls_and_operators(tmp_path, importer):
    ascend().write(tmp_path / "trace_view.json")
    trace = read_trace(tmp_path / "trace_view.json", importer)()
    work = trace.device_work
    names = [trace.name_of(row) for row in work.row.tolist()]
    places = np.stack((work.device, work.stream), axis=1).tolist()
    assert {name: tuple(place) for name, place in zip(names, places, strict=True)} == {
        "aclnnMm_MatMul_MatMul": (3, 2),
        "aclnnAdd_AddAiCore_Add": (3, 2),
        "MEMCPY_ASYNC": (3, 2),
        "hcom_allReduce__042_0_1": (3, 5),
    }
    calls = {
        trace.name_of(kernel): trace.name_of(call)
        for call, kernel in trace.launch_pairs.tolist()
    }
    assert calls == {
        "aclnnMm_MatMul_MatMul": "AscendCL@aclnnMm",
        "aclnnAdd_AddAiCore_Add": "AscendCL@aclnnAdd",
        "hcom_allReduce__042_0_1": "AscendCL@c10d::allreduce_",
    }


def test_pages_of_a_trace_of_npus(tmp_path):
    ascend().write(tmp_path / "exp" / "trace_view.json")
    page = Page(tmp_path)
    profile = ask(page, "profile")
    assert list(profile["step"]) == [4]
    facts = {fact["name"]: fact["value"] for fact in profile["facts"]}
    assert facts["device"] == "NPU"
    kernels = ask(page, "kernels")
    assert dict(zip(kernels["name"], kernels["total_ms"], strict=True)) == {
        "aclnnMm_MatMul_MatMul": pytest.approx(0.3),
        "aclnnAdd_AddAiCore_Add": pytest.approx(0.1),
        "hcom_allReduce__042_0_1": pytest.approx(0.2),
    }
    operators = ask(page, "operators")
    device_ms = dict(zip(operators["name"], operators["device_self_ms"], strict=True))
    assert device_ms["aclnnMm"] == pytest.approx(0.3)
    assert device_ms["c10d::allreduce_"] == pytest.approx(0.2)
    (sentence,) = ask(page, "trace_idle")["sentences"]
    assert sentence.startswith("NPU 3 was idle ")
    assert not _says_a_wrong_device(profile)


def test_merged_traces_of_npus_have_the_work_of_each_rank(tmp_path):
    for rank in range(2):
        ascend().write(tmp_path / f"rank{rank}_trace_view.json")
    paths = sorted(tmp_path.glob("*.json"))
    out = tmp_path / "out" / "merged_trace.json"
    assert main(["merge", *map(str, paths), "-o", str(out)]) == 0
    arrows = [
        event for event in json.loads(out.read_text())["traceEvents"] if "id" in event
    ]
    assert all(isinstance(arrow["id"], int) for arrow in arrows)
    assert max(arrow["id"] for arrow in arrows) < 2**53
    page = Page(out.parent)
    profile = ask(page, "profile")
    assert [trace["rank"] for trace in profile["choice"]["traces"]] == [0, 1]
    for trace in profile["choice"]["traces"]:
        kernels = ask(page, "kernels", source=trace["id"])
        assert sorted(kernels["total_ms"]) == pytest.approx([0.1, 0.2, 0.3])
        operators = ask(page, "operators", source=trace["id"])
        row = operators["name"].index("aclnnMm")
        assert operators["device_self_ms"][row] == pytest.approx(0.3)
        (sentence,) = ask(page, "trace_idle", source=trace["id"])["sentences"]
        assert sentence.startswith("NPU 3 was idle ")


def test_the_folders_of_torch_npu_are_ranks_and_cycles_of_one_run(tmp_path):
    for rank in range(2):
        for cycle in range(2):
            folder = (
                tmp_path / "exp" / f"host_{70 + rank}_2026010112000{cycle}123_ascend_pt"
            )
            ascend().write(folder / "ASCEND_PROFILER_OUTPUT" / "trace_view.json")
            (folder / f"profiler_info_{rank}.json").write_text("{}")
            (folder / "profiler_metadata.json").write_text("{}")
    page = Page(tmp_path)
    (run,) = page.get("/runs")["runs"]
    assert (run["name"], run["num_ranks"]) == ("exp", 2)
    traces = ask(page, "profile")["choice"]["traces"]
    assert [(trace["cycle"], trace["rank"]) for trace in traces] == [
        (1, 0),
        (1, 1),
        (2, 0),
        (2, 1),
    ]
    assert ask(page, "distributed")["summary"].startswith("2 ranks")
    out = tmp_path / "merged.json"
    assert main(["merge", str(tmp_path / "exp"), "--cycle", "1", "-o", str(out)]) == 0
    metadata = json.loads(out.read_text())["metadata"]
    assert [rank["rank"] for rank in metadata["ranks"]] == [0, 1]


def _says_a_wrong_device(answer) -> bool:
    text = str(answer)
    return "GPU -1" in text or "device CPU" in text or "GPU 3" in text


@pytest.mark.parametrize(
    ("label", "runtime", "kernel", "torch_type", "title"),
    [
        ("XPU 0", "xpu_runtime", "kernel", 12, "XPU 0"),
        ("MTIA 0", "mtia_runtime", "mtia_ccp_events", 19, "MTIA 0"),
        ("HPU 0", "privateuse1_runtime", "hpu_op", 15, "HPU 0"),
        ("AIU 0", "privateuse1_runtime", "kernel", 20, "AIU 0"),
        (None, "mtia_runtime", "mtia_ccp_events", 19, "MTIA 0"),
        (None, "privateuse1_runtime", "kernel", 20, "PrivateUse1 0"),
        (None, None, "kernel", 20, "device 0"),
        ("GPU 0", "cuda_runtime", "kernel", 1, "GPU 0"),
    ],
)
def test_devices_have_the_name_that_the_file_gives(
    tmp_path, label, runtime, kernel, torch_type, title
):
    made = KinetoFile()
    made.step(3, 1_000, 900)
    made.slice("aten::mm", 1_100, 50, **{"External id": 9})
    if runtime is not None:
        made.slice("launch", 1_110, 5, runtime, correlation=7)
    made.device_slice("gemm", 1_200, 300, device=0, stream=7, correlation=7)
    made.events[-1] |= {"cat": kernel}
    made.events[-1]["args"]["External id"] = 9
    made.memory(1_120, 4_096, 77, 1 << 20)
    made.events[-1]["args"]["Device Type"] = torch_type
    if label is not None:
        made.events.append(
            {"ph": "M", "name": "process_labels", "pid": 0, "tid": 0}
            | {"args": {"labels": label}}
        )
    made.write(tmp_path / "exp" / "host_0.100.pt.trace.json")
    page = Page(tmp_path)
    profile = ask(page, "profile")
    (devices,) = [t for t in (profile["devices"],) if t is not None]
    (device,) = [c for c in devices["columns"] if c["key"] == "device"]
    assert list(device["texts"]) == [title]
    (sentence,) = ask(page, "trace_idle")["sentences"]
    assert sentence.startswith(f"{title} was idle ")
    kernels = ask(page, "kernels")
    assert kernels["name"] == ["gemm"]
    operators = ask(page, "operators")
    assert operators["device_self_ms"][operators["name"].index("aten::mm")] == (
        pytest.approx(0.3)
    )
    assert not _says_a_wrong_device(profile)
    (memory,) = ask(page, "operator_memory")["devices"]
    kinds = {"GPU 0": "CUDA 0", "device 0": "PrivateUse1 0"}
    assert memory["name"] == kinds.get(title, title)


def test_sums_over_a_devices_name_do_not_depend_on_the_order_of_metadata(
    tmp_path, importer
):
    made = ascend()
    metadata = [event for event in made.events if event["ph"] == "M"]
    others = [event for event in made.events if event["ph"] != "M"]
    made.events = others + metadata
    made.write(tmp_path / "late.json")
    trace = read_trace(tmp_path / "late.json", importer)()
    assert np.unique(trace.device_work.device).tolist() == [3]
    assert len(trace.launch_pairs) == 3
