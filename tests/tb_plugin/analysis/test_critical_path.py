"""The critical path: made by hand, of real traces, and beside Holistic Trace Analysis."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memboard.tb_plugin.analysis.trace.profile import TraceProfile
from memboard.tb_plugin.analysis.trace.waiting.critical_path import (
    by_name,
    critical_path,
)
from memboard.tb_plugin.analysis.trace.waiting.work_starts import Cause
from memboard.tb_plugin.formats.traces import read_trace
from memboard.tb_plugin.worker.cache import ColumnCache
from memboard.tb_plugin.worker.importer import Importer
from tests.kineto_files import KinetoFile
from tests.tb_plugin.client import Page, answered
from tests.tb_plugin.pages.profiled import columns_of
from tests.traces_builder import MadeTrace

REAL = Path(os.environ.get("MEMBOARD_REAL_DATA", "/nowhere")) / "kineto"
US = 1_000


@pytest.fixture(scope="module")
def importer(tmp_path_factory):
    made = Importer(ColumnCache(tmp_path_factory.mktemp("cache")))
    yield made
    made.close()


class Made(MadeTrace):
    """One step on a thread `main`; times are microseconds."""

    def __init__(self, took=0):
        super().__init__()
        self.correlation = 0
        if took:
            self.host("ProfilerStep#3", 0, took, "user_annotation")

    def host(self, name, start, took, category="cpu_op", thread="main", launch=0):
        self.slice(thread, name, start * US, took * US, category, None, launch)

    def work(self, name, called, start, took, stream=7, thread="main"):
        """A kernel, and the call of 2 us that launched it."""
        self.correlation += 1
        self.host("cudaLaunch", called, 2, "cuda_runtime", thread, self.correlation)
        track = f"stream {stream}"
        self.track(track, kind="device", device=0, stream=stream)
        self.slice(track, name, start * US, took * US, "kernel", None, self.correlation)

    def path(self):
        profile = TraceProfile(self.build())
        found = critical_path(profile, 0)
        name = lambda row: "" if row < 0 else profile.trace.name_of(row)  # noqa: E731
        return [
            (one.start_ns // US, one.end_ns // US, one.cause.value, name(one.row))
            for one in found
        ]


def test_a_device_with_enough_work_is_the_path_from_its_first_launch():
    made = Made(40)
    made.host("aten::mm", 2, 6)
    made.work("first", 5, 10, 30)
    made.work("second", 15, 41, 59)
    assert made.path() == [
        (0, 2, "host outside operators", "ProfilerStep#3"),
        (2, 5, "host operators", "aten::mm"),
        (5, 10, "launch delay", "cudaLaunch"),
        (10, 40, "kernels", "first"),
        (40, 41, "gaps between kernels", "second"),
        (41, 100, "kernels", "second"),
    ]


def test_a_late_host_is_on_the_path_and_the_kernels_it_hides_are_not():
    made = Made(90)
    made.work("hidden", 5, 10, 20)
    made.host("aten::slow", 10, 70)
    made.work("last", 78, 85, 15)
    path = made.path()
    assert path[-3:] == [
        (10, 78, "host operators", "aten::slow"),
        (78, 85, "launch delay", "cudaLaunch"),
        (85, 100, "kernels", "last"),
    ]
    assert "hidden" not in {name for *_, name in path}


def test_a_call_that_waits_leads_to_what_it_waited_for():
    made = Made(100)
    made.work("long", 5, 10, 60)
    made.host("cudaDeviceSynchronize", 8, 65, "cuda_runtime")
    made.host("aten::after", 75, 25)
    assert made.path() == [
        (0, 5, "host outside operators", "ProfilerStep#3"),
        (5, 10, "launch delay", "cudaLaunch"),
        (10, 70, "kernels", "long"),
        (70, 73, "runtime calls", "cudaDeviceSynchronize"),
        (73, 75, "host outside operators", "ProfilerStep#3"),
        (75, 100, "host operators", "aten::after"),
    ]


def test_a_copy_that_blocks_its_call_is_waited_for():
    made = Made(60)
    made.track("stream 7", kind="device", device=0, stream=7)
    made.host("cudaMemcpyAsync", 5, 40, "cuda_runtime", launch=9)
    made.slice("stream 7", "copy", 10 * US, 30 * US, "kernel", None, 9)
    made.host("aten::item", 45, 15)
    causes = [(one[2], one[1] - one[0]) for one in made.path()]
    assert causes == [
        ("host outside operators", 5),
        ("launch delay", 5),
        ("kernels", 30),
        ("runtime calls", 5),
        ("host operators", 15),
    ]


def test_work_that_waits_for_another_stream_leads_there():
    made = Made(30)
    made.work("ncclDevKernel_AllReduce", 2, 5, 60, stream=20)
    made.work("uses the result", 10, 67, 33, stream=7)
    assert [one[2:] for one in made.path()][-3:] == [
        ("communication", "ncclDevKernel_AllReduce"),
        ("gaps between kernels", "uses the result"),
        ("kernels", "uses the result"),
    ]


def test_backward_on_its_own_thread_is_followed_there():
    made = Made(100)
    made.host("forward", 0, 20)
    made.host("autograd::engine::evaluate_function: MmBackward0", 25, 60, thread="auto")
    made.host("step", 90, 10)
    assert made.path() == [
        (0, 20, "host operators", "forward"),
        (20, 25, "host outside operators", "ProfilerStep#3"),
        (25, 85, "host operators", "autograd::engine::evaluate_function: MmBackward0"),
        (85, 90, "host outside operators", "ProfilerStep#3"),
        (90, 100, "host operators", "step"),
    ]


def inferring(made, *, thread="main"):
    """Ten products of 200 us each, whose operators wait for their kernels."""
    for number in range(10):
        at = 300 * number
        made.host("aten::mm", at + 10, 280, thread=thread)
        made.work("gemm", at + 15, at + 40, 230, thread=thread)


def names_on(path):
    sums = {}
    for start, end, cause, name in path:
        sums[cause, name] = sums.get((cause, name), 0) + end - start
    return sums


@pytest.mark.parametrize(
    "waits",
    [
        [(5, 9_000)],
        [(at, 90) for at in range(5, 9_000, 100)],  # polled: more slices than operators
    ],
)
def test_without_marks_a_thread_that_only_waits_is_not_the_path(waits):
    made = Made()
    for at, took in waits:
        made.host("threading.py(359): wait", at, took, "python_function", "waiting")
    inferring(made)
    found = names_on(made.path())
    assert found["kernels", "gemm"] == 2_300
    assert found["launch delay", "cudaLaunch"] == 250
    assert {name for _, name in found} == {"gemm", "cudaLaunch", "aten::mm", ""}
    assert sum(found.values()) == 2_980


@pytest.mark.parametrize("is_said", [True, False])
def test_a_step_whose_thread_waits_for_another_is_followed_there(is_said):
    made = Made(3_000)
    if is_said:
        made.host("prepare", 0, 5)
        frame = "/usr/lib/python3.12/queue.py(154): get"
        made.host(frame, 6, 2_994, "python_function")
    inferring(made, thread="worker")
    found = names_on(made.path())
    assert found["kernels", "gemm"] == 2_300
    assert sum(found.values()) == 3_000


@pytest.mark.parametrize(
    "frame",
    [
        "<built-in function sleep>",
        "<built-in method acquire of _thread.lock object at 0x7f>",
        "<built-in method epoll_wait of select.epoll object at 0x7f>",
        "<method 'poll' of 'select.epoll' objects>",
        "threading.py(359): wait",
        "queue.py(154): get",
        "selectors.py(452): select",
        "/opt/venv/lib/python3.12/site-packages/tqdm/_monitor.py(60): run",
        "torch/_inductor/compile_worker/subproc_pool.py(180): _read_thread",
        "multiprocessing/connection.py(390): _recv",
        "multiprocessing/queues.py(103): get",
        "zmq/sugar/poll.py(80): poll",
        "concurrent/futures/thread.py(81): _worker",
    ],
)
def test_a_frame_in_which_a_thread_waits_leads_to_the_one_that_works(frame):
    made = Made(3_000)
    made.host("prepare", 0, 5)
    made.host(frame, 6, 2_994, "python_function")
    inferring(made, thread="worker")
    # It watches the device, and starts nothing.
    for at in range(10, 3_000, 50):
        made.host("cudaEventQuery", at, 1, "cuda_runtime", "watchdog")
    found = names_on(made.path())
    assert found["kernels", "gemm"] == 2_300
    assert "cudaEventQuery" not in {name for _, name in found}


@pytest.mark.parametrize(
    "frame",
    [
        "<built-in method join of str object at 0x7f>",
        "<built-in method get of dict object at 0x7f>",
        "<built-in method read of _io.BufferedReader object at 0x7f>",
        "transformers/cache_utils.py(90): get",
        "torch/nn/modules/module.py(1755): _call_impl",
    ],
)
def test_a_frame_that_works_is_the_programs(frame):
    made = Made(3_000)
    made.host("prepare", 0, 5)
    made.host(frame, 6, 2_994, "python_function")
    made.host("aten::add", 1_000, 10, thread="worker")
    assert names_on(made.path())["host outside operators", frame] == 2_994


def test_pythons_body_of_a_custom_operator_is_the_operators():
    made = Made(1000)
    made.host("vllm::moe_forward", 0, 600)
    made.host("fused_moe.py(93): forward", 100, 400, "python_function")
    assert made.path() == [
        (0, 100, "host operators", "vllm::moe_forward"),
        (100, 500, "host operators", "fused_moe.py(93): forward"),
        (500, 600, "host operators", "vllm::moe_forward"),
        (600, 1000, "host outside operators", "ProfilerStep#3"),
    ]


def test_a_frame_that_waits_for_the_device_leads_to_its_work():
    made = Made(100)
    made.work("long", 5, 10, 60)
    frame = "<built-in method synchronize of torch.Event object at 0x7f>"
    made.host(frame, 8, 65, "python_function")
    assert (10, 70, "kernels", "long") in made.path()


def test_work_that_waits_for_room_on_the_device_leads_to_what_filled_it():
    made = Made(90)
    made.work("fills the device", 2, 5, 480, stream=20)
    made.work("first", 5, 10, 20)
    made.work("begins amid it", 8, 300, 200)
    assert [one[2:] for one in made.path()][-2:] == [
        ("kernels", "fills the device"),
        ("kernels", "begins amid it"),
    ]


@pytest.mark.parametrize("frame", ["", "python_function"])
def test_a_step_that_ends_with_its_devices_work_waited_for_it(frame):
    made = Made(1_000)
    made.work("long", 5, 10, 960)
    if frame:
        made.host("train.py(7): log", 20, 980, frame)
    names = {one[3] for one in made.path()}
    # Frames say what the host did instead.
    assert ("long" in names) == (not frame)


def test_a_start_that_nothing_explains_is_said_to_be_so():
    made = Made(90)
    made.host("aten::mm", 2, 80)
    made.work("first", 3, 10, 20)
    made.work("held", 5, 900, 100)
    path = made.path()
    assert path[-2:] == [
        (30, 900, "not explained", "held"),
        (900, 1_000, "kernels", "held"),
    ]


def test_a_devices_first_work_may_wait_for_what_is_not_recorded():
    made = Made(90)
    made.work("first", 5, 900, 100)
    assert made.path()[-2:] == [
        (7, 900, "before the recorded work", "first"),
        (900, 1_000, "kernels", "first"),
    ]


def test_an_operator_that_works_beside_its_short_kernel_did_not_wait():
    made = Made(100)
    made.host("aten::mm", 10, 90)
    made.work("gemm", 12, 20, 30)
    found = names_on(made.path())
    assert ("kernels", "gemm") not in found
    assert found["host operators", "aten::mm"] == 88


@pytest.mark.skipif(
    not REAL.exists(), reason="recorded by others: not in the repository"
)
def test_the_pieces_of_every_real_step_follow_each_other_and_add_up(importer):
    paths = sorted(REAL.glob("*/*.pt.trace.json*"))
    assert len(paths) > 8
    for path in paths:
        profile = TraceProfile(read_trace(path, importer)())
        steps = profile.steps
        for index in range(min(3, len(steps))):
            found = critical_path(profile, index)
            edges = [steps.start_ns[index], *(one.end_ns for one in found)]
            assert [one.start_ns for one in found] == edges[:-1]
            assert edges[-1] == steps.end_ns[index]
            total = sum(one.path_ns for one in by_name(profile, found))
            assert total == steps.end_ns[index] - steps.start_ns[index]


# Holistic Trace Analysis 0.5.0: get_critical_path_breakdown() by name, microseconds. It
# cuts times with nanoseconds down to whole microseconds, and counts no gaps of the host.
PEER = [
    (
        "hta_nccl_two_ranks_sampled/rank_0.1.pt.trace.json.gz",
        0,
        {
            "aten::_foreach_mul_": 117_005,
            "forward": 112_279,
            "aten::_foreach_add_": 18_433,
            "aten::addmm": 2_535,
        },
    ),
    (
        "hta_ns_resolution_ddp1/rank-0.1.pt.trace.json.gz",
        1,
        {
            "volta_sgemm_64x64_tn": 4_529,
            "volta_sgemm_64x64_nt": 4_525,
            "volta_sgemm_32x128_tn": 4_261,
            "cudnn_infer_volta_scudnn_128x64_relu_medium_nn_v1": 4_232,
        },
    ),
    (
        "hta_ns_resolution_ddp1/rank-0.1.pt.trace.json.gz",
        2,
        {
            "volta_sgemm_64x64_tn": 4_550,
            "volta_sgemm_64x64_nt": 4_505,
            "volta_sgemm_32x128_tn": 4_268,
        },
    ),
]


@pytest.mark.parametrize(("file", "step", "said"), PEER)
def test_what_is_on_the_path_is_what_the_peer_says(importer, file, step, said):
    if not REAL.exists():
        pytest.skip("recorded by others: not in the repository")
    profile = TraceProfile(read_trace(REAL / file, importer)())
    found = by_name(profile, critical_path(profile, step))
    for name, us in said.items():
        own = [one for one in found if one.name == name]
        (ours,) = [one for one in own if one.cause != Cause.GAP.value]
        assert us * US <= ours.path_ns <= (us + ours.pieces) * US


def test_the_longest_step_is_told_unless_one_is_asked_for(tmp_path):
    made = KinetoFile()
    for number, at, took in ((5, 0, 100), (6, 200, 300)):
        made.step(number, at, took)
        made.slice("aten::mm", at + 10, took - 10)
        made.kernel("gemm", at + took - 20, at + took - 15, 10)
    made.write(tmp_path / "exp" / "host_0.1.pt.trace.json")
    (run,) = (page := Page(tmp_path)).get("/runs")["runs"]
    ask = lambda **more: answered(  # noqa: E731
        lambda: page.get("/trace_path", run=run["id"], **more),
        lambda answer: answer["state"] == "ready",
    )
    assert ask()["sentences"][0].startswith("Step 6 takes 300 µs: ")
    found = ask(step=5)
    assert found["sentences"] == [
        (
            "Step 5 takes 100 µs: 88.0 % host operators, 10.0 % host outside operators,"
            " 2.0 % runtime calls. Work that is not on this path was hidden behind it."
        )
    ]
    columns = columns_of(found["table"])
    assert columns["name"][0] == "aten::mm"
    assert sum(columns["path_ms"]) == pytest.approx(0.1)
