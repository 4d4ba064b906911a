"""The routes of profiles: time of steps, operators, kernels, memory, ranks."""

from __future__ import annotations

import numpy as np
import pytest

from memboard.tb_plugin.pages.operators.operators import place_of
from tests.kineto_files import KinetoFile, trained
from tests.tb_plugin.client import Page
from tests.tb_plugin.pages.profiled import ask, columns_of, run_of

ROUTES = (
    "profile",
    "operators",
    "operator",
    "kernels",
    "module_times",
    "operator_memory",
    "distributed",
    "distributed_heatmap",
)


@pytest.fixture
def page(tmp_path):
    trained().write(tmp_path / "exp" / "host_0.100.pt.trace.json")
    trained().write(tmp_path / "exp" / "host_0.200.pt.trace.json.gz")
    return Page(tmp_path)


def test_the_profile_of_the_newest_cycle_is_shown(page):
    answer = ask(page, "profile")
    choice = answer["choice"]
    assert [one["cycle"] for one in choice["traces"]] == [1, 2]
    assert choice["source"] == choice["traces"][1]["id"]
    assert choice["traces"][0]["title"] == "rank 0, cycle 1: host_0.100.pt.trace.json"
    assert answer["step"].tolist() == [5, 6, 7]
    whole = answer["duration_ms"].sum()
    shares = {part["role"]: part["ms"].sum() / whole for part in answer["parts"]}
    assert sum(shares.values()) == pytest.approx(1)
    assert shares["kernel"] == pytest.approx(900 / 2990, abs=0.01)
    assert shares["communication"] == pytest.approx(600 / 2990, abs=0.01)
    sums = sum(part["ms"] for part in answer["parts"])
    assert sums == pytest.approx(answer["duration_ms"])
    devices = columns_of(answer["devices"])
    assert devices["device"] == ["GPU 0 · Tesla V100"]
    assert answer["devices"]["columns"][0]["notes"] == ["compute capability 7.0"]
    assert devices["num_kernels"] == [6]
    keys = {finding["key"] for finding in answer["findings"]}
    assert {"loading", "no_tensor_cores", "communicating"} <= keys
    facts = {fact["name"]: fact["value"] for fact in answer["facts"]}
    assert (facts["backend"], facts["device"]) == ("nccl", "GPU")


def test_a_name_that_is_cut_says_so(tmp_path):
    made = trained()
    kernel, operator = "cutlass" + "_k" * 2000, "aten::" + "mm_" * 2000
    made.slice(operator, 100, 50)
    made.kernel(kernel, 110, 120, 10)
    made.write(tmp_path / "exp" / "rank0.pt.trace.json")
    page = Page(tmp_path)
    (name,) = (one for one in ask(page, "kernels")["name"] if one[:7] == "cutlass")
    assert name[-1] == "…"
    assert kernel.startswith(name[:-1])
    (name,) = (one for one in ask(page, "operators")["name"] if one[:9] == "aten::mm_")
    assert name[-1] == "…"
    assert ask(page, "operator", name=name)["num_calls"] == 1


def test_roles_of_one_step_are_told_of_alone(page):
    whole, one = ask(page, "profile"), ask(page, "profile", step=6)
    assert whole["roles"]["title"] == "Roles"
    assert one["roles"]["title"] == "Roles, step 6"
    for answer in (whole, one):
        roles = columns_of(answer["roles"])
        assert roles["role"] == [part["label"] for part in answer["parts"]]
        assert sum(roles["share"]) == pytest.approx(1)
    parts = whole["parts"]
    assert columns_of(whole["roles"])["ms"] == pytest.approx(
        [part["ms"].mean() for part in parts]
    )
    assert columns_of(one["roles"])["ms"] == pytest.approx(
        [part["ms"][1] for part in parts]
    )


def test_devices_of_one_step_are_told_of_alone(page):
    whole = ask(page, "profile")
    assert whole["devices"]["title"] == "Devices"
    one = ask(page, "profile", step=6)
    assert one["devices"]["title"] == "Devices, step 6"
    assert one["step"].tolist() == whole["step"].tolist() == [5, 6, 7]
    device = columns_of(one["devices"])
    assert device["device"] == ["GPU 0 · Tesla V100"]
    assert device["num_kernels"] == [2]
    assert device["utilization"] == pytest.approx([0.5 / 0.99])
    assert device["sm_efficiency"] == pytest.approx([0.15 / 0.99])
    assert device["occupancy"] == pytest.approx([0.25])
    assert device["tensor_core_share"] == [0]
    # Of a step that the trace does not have nothing is told alone.
    other = ask(page, "profile", step=4)
    assert other["devices"]["title"] == "Devices"
    for key, values in columns_of(whole["devices"]).items():
        assert list(columns_of(other["devices"])[key]) == list(values)


def test_the_profile_of_very_many_steps_and_devices_stays_small(tmp_path):
    made = KinetoFile()
    for number in range(2_500):
        made.step(number, number * 100, 100)
    for device in range(64):
        made.device(id=device, name="A" * 400)
        for at in range(3):
            name = f"k{device}"
            made.kernel(name, at * 100, at * 100 + 10, 50, device=device)
    made.step(2_500, 250_000, 100)
    made.kernel("k0", 250_010, 250_020, 10)
    made.write(tmp_path / "exp" / "a.pt.trace.json")
    page = Page(tmp_path)
    ask(page, "profile")
    response = page.raw("/profile", run=run_of(page), step=2)
    assert len(response.data) <= 300_000
    answer = ask(page, "profile", step=2)
    assert answer["devices"]["title"] == "Devices, step 2"
    assert list(columns_of(answer["devices"])["num_kernels"]) == [1] * 64


def test_another_trace_may_be_chosen_and_one_that_is_not_there_is_said(page):
    first = ask(page, "profile")["choice"]["traces"][0]["id"]
    assert ask(page, "profile", source=first)["choice"]["source"] == first
    missing = ask(page, "profile", source="t0000000000000000")
    assert missing["choice"]["source"] is None
    assert "not in the run" in missing["choice"]["problem"]["what"]
    assert len(missing["parts"]) == 0


def test_operators_by_name_and_by_shapes(page):
    answer = ask(page, "operators", sort="host_total_ms")
    names = answer["name"]
    assert names[0] == "aten::linear"
    at = names.index("aten::mm")
    assert answer["num_calls"][at] == 3
    assert answer["host_self_ms"][at] == pytest.approx(3 * 58e-3)
    assert answer["device_self_ms"][at] == pytest.approx(3 * 300e-3)
    assert answer["device_total_ms"][names.index("aten::linear")] == pytest.approx(0.9)
    assert answer["is_tensor_core_eligible"].tolist() == [
        name != "aten::add" for name in names
    ]
    assert answer["tensor_core_self_share"][at] == 0
    assert answer["has_devices"]
    assert not answer["has_stacks"]
    by_shapes = ask(page, "operators", by="shapes", text="MM")
    assert (by_shapes["name"], by_shapes["table"]["num_all"]) == (["aten::mm"], 1)
    assert by_shapes["shapes"] == ["[[8,8],[8,8]]"] or by_shapes["shapes"] == [
        "[[8, 8], [8, 8]]"
    ]
    short = ask(page, "operators", top=1)
    assert (len(short["name"]), short["table"]["num_all"]) == (1, 3)
    assert short["table"]["summary"].startswith("3 rows, 9 calls, ")


def test_what_is_launched_without_an_operator_has_the_row_of_its_call(tmp_path):
    made = KinetoFile()
    made.slice("aten::mm", 0, 50)
    made.kernel("gemm", 10, 60, 100)
    made.slice("cudaGraphLaunch", 100, 300, "cuda_runtime", correlation=77)
    for at in range(200, 1_200, 100):
        lane = {"device": 0, "stream": 7, "correlation": 77, "graph node id": at}
        made.device_slice("paged_attention", at, 98, **lane)
    made.device_slice("lost", 1_300, 7, device=0, stream=7, correlation=99)
    made.write(tmp_path / "exp" / "a.pt.trace.json")
    page = Page(tmp_path)
    answer = ask(page, "operators", sort="device_self_ms")
    assert answer["name"] == ["cudaGraphLaunch", "aten::mm", "in no operator"]
    assert answer["device_self_ms"].tolist() == pytest.approx([0.98, 0.1, 0.007])
    assert answer["num_calls"].tolist() == [1, 1, 0]
    eligible = answer["is_tensor_core_eligible"]
    assert eligible[1] == 1
    assert np.isnan(eligible[[0, 2]]).all()
    summary = answer["table"]["summary"]
    assert summary.startswith("3 rows, 2 calls, ")
    assert "1.09 ms on devices" in summary
    called = ask(page, "operator", name="cudaGraphLaunch")
    assert (called["num_calls"], called["callees"][0]["device_ms"]) == (1, 0.98)


def test_stacks_that_old_profilers_wrote_with_the_call(tmp_path):
    made = KinetoFile()
    for at, stack in (
        (0, "model.py(7): forward;train.py(3): main"),
        (100, "a"),
        (200, ""),
    ):
        made.slice("aten::mm", at, 50, **({"Call stack": stack} if stack else {}))
    made.write(tmp_path / "exp" / "a.pt.trace.json")
    page = Page(tmp_path)
    assert ask(page, "operators")["has_stacks"]
    stacks = ask(page, "operator", name="aten::mm")["stacks"]
    assert [(stack["frames"], stack["num_calls"]) for stack in stacks] == [
        (["model.py(7): forward", "train.py(3): main"], 1),
        (["a"], 1),
    ]


def test_stacks_of_an_operator(tmp_path):
    made = KinetoFile()
    made.slice("train.py(3): main", 0, 1000, "python_function", **{"Python id": 1})
    made.slice("model.py(7): forward", 10, 500, "python_function", **{"Python id": 2})
    made.slice("aten::mm", 20, 50)
    made.slice("aten::mm", 100, 30)
    made.slice("aten::mm", 600, 5)
    made.write(tmp_path / "exp" / "a.pt.trace.json")
    answer = ask(Page(tmp_path), "operator", name="aten::mm")
    assert answer["places"]["summary"] == "3 calls from 2 places."
    stacks = [(s["frames"], s["num_calls"], s["host_ms"]) for s in answer["stacks"]]
    assert stacks == [
        (["model.py(7): forward", "train.py(3): main"], 2, pytest.approx(0.08)),
        (["train.py(3): main"], 1, pytest.approx(0.005)),
    ]


_LINEAR = ("<built-in function linear>", "torch/nn/linear.py(130): forward")
_LIBRARY = "/v/site-packages/x/y.py(1): f"


@pytest.mark.parametrize(
    ("frames", "place"),
    [
        (
            (
                *_LINEAR,
                "nn.Module: Linear_2",
                "net.py(5): forward",
                "train.py(1): main",
            ),
            "Linear_2 · forward  net.py:5",
        ),
        ((*_LINEAR, _LIBRARY, "train.py(1): <module>"), "<module>  train.py:1"),
        ((*_LINEAR, "nn.Module: Net_0"), "Net_0"),
        (_LINEAR, "<built-in function linear>"),
        ((), "no Python frame"),
    ],
)
def test_a_place_is_a_module_and_a_line_of_the_program(frames, place):
    assert place_of(frames) == place


def test_callees_of_an_operator(page):
    answer = ask(page, "operator", name="aten::linear")
    called = {tuple(one["frames"]): one for one in answer["callees"]}
    # Each of 3 products launches 300 us.
    assert called["aten::mm",]["num_calls"] == 3
    assert called["aten::mm",]["device_ms"] == pytest.approx(0.9)
    assert called[()]["device_ms"] == 0
    table = ask(page, "operators")
    total = table["host_total_ms"][table["name"].index("aten::linear")]
    assert sum(one["host_ms"] for one in called.values()) == pytest.approx(total)


def with_module(made: KinetoFile) -> KinetoFile:
    """One call of a module that calls `aten::addmm` (number 7), and its backward."""
    module = {"Python id": 1, "Python module id": 0}
    made.slice("nn.Module: Net_0", 0, 300, "python_function", **module)
    inner = {"Python id": 2, "Python parent id": 1, "Python module id": 1}
    made.slice("nn.Module: Linear_0", 100, 100, "python_function", **inner)
    made.slice("aten::addmm", 110, 50, **{"Sequence number": 7, "Fwd thread id": 0})
    made.slice("aten::sum", 210, 50, **{"Sequence number": 8, "Fwd thread id": 0})
    return made


def undone(made: KinetoFile, **args: int) -> None:
    for at, (node, number) in enumerate((("SumBackward0", 8), ("AddmmBackward0", 7))):
        name = f"autograd::engine::evaluate_function: {node}"
        linked = {"Sequence number": number, "Fwd thread id": 1} if args else {}
        made.slice(name, 400 + 100 * at, 60 + at, **linked)


def test_backward_of_modules_by_sequence_numbers(tmp_path):
    made = with_module(KinetoFile())
    undone(made, linked=True)
    made.write(tmp_path / "exp" / "a.pt.trace.json")
    answer = ask(Page(tmp_path), "module_times")
    assert answer["name"] == ["Net_0", "Linear_0"]
    assert answer["backward"].startswith("Backward by sequence numbers")
    assert answer["backward_host_ms"].tolist() == pytest.approx([0.121, 0.061])
    assert answer["backward_host_self_ms"].tolist() == pytest.approx([0.060, 0.061])
    assert "backward_device_self_ms" not in answer


@pytest.mark.parametrize("runs", [False, True])
def test_backward_that_is_nobodys_is_not_zero(tmp_path, runs):
    made = with_module(KinetoFile())
    if runs:
        undone(made)
    made.write(tmp_path / "exp" / "a.pt.trace.json")
    answer = ask(Page(tmp_path), "module_times")
    why = "does not link its operators" if runs else "none ran"
    assert why in answer["backward"]
    assert not any(key.startswith("backward_") for key in answer)


def test_calls_without_shapes_are_a_group_of_their_own(tmp_path):
    made = KinetoFile()
    made.slice("train.py(3): main", 0, 1000, "python_function", **{"Python id": 1})
    made.slice("aten::mm", 20, 50, **{"Input Dims": [[8, 8], [8, 8]]})
    made.slice("aten::mm", 100, 30)
    made.write(tmp_path / "exp" / "a.pt.trace.json")
    page = Page(tmp_path)
    table = ask(page, "operators", by="shapes", sort="-shapes")
    assert table["name"] == ["aten::mm", "aten::mm"]
    assert table["shapes"][0] == ""
    for row in range(2):
        group = {"name": table["name"][row], "shapes": table["shapes"][row]}
        answer = ask(page, "operator", by="shapes", **group)
        assert answer["num_calls"] == table["num_calls"][row] == 1
        assert answer["stacks"][0]["host_ms"] == table["host_total_ms"][row]
    assert ask(page, "operator", by="name", name="aten::mm")["num_calls"] == 2


def test_tables_are_sorted_before_they_are_cut(page):
    operators = ask(page, "operators")
    names = operators["name"]
    for column in ("num_calls", "host_total_ms", "tensor_core_total_share"):
        known = [value for value in operators[column] if value == value]
        most = ask(page, "operators", sort=column, top=1)
        least = ask(page, "operators", sort=f"-{column}", top=1)
        assert (most[column][0], least[column][0]) == (max(known), min(known))
    assert ask(page, "operators", sort="name", top=1)["name"] == [max(names)]
    assert ask(page, "operators", sort="-name", top=1)["name"] == [min(names)]
    memory = columns_of(ask(page, "operator_memory")["operators"])
    first = ask(page, "operator_memory", sort="-name", top=1)["operators"]
    first = columns_of(first)
    assert first["name"] == [min(memory["name"])]


def test_memory_of_operators_and_its_allocations(page):
    answer = ask(page, "operator_memory")
    assert answer["device"] == "1:0"
    (device,) = answer["devices"]
    assert device["title"] == "CUDA 0, peak 13.8 KiB"
    assert device["capacity_bytes"] == 1 << 34
    rows = columns_of(answer["operators"])
    assert rows["name"] == ["aten::linear", "aten::mm"] or rows["name"] == [
        "aten::mm",
        "aten::linear",
    ]
    at = rows["name"].index("aten::mm")
    assert rows["self_increase_bytes"][at] == 0
    assert rows["self_allocated_bytes"][at] == 3 * 4096
    freeing = ask(page, "operator_memory", charge="freeing")["operators"]
    freeing = columns_of(freeing)
    lost = freeing["name"].index("aten::add")
    assert freeing["self_increase_bytes"][lost] == -3 * 4096
    made = columns_of(answer["allocations"])
    assert answer["allocations"]["num_all"] == 3
    assert made["num_bytes"].tolist() == [4096] * 3
    took = made["released_ms"] - made["allocated_ms"]
    assert took == pytest.approx([0.095] * 3)
    assert made["duration_ms"] == pytest.approx(took)
    assert made["operator"] == ["aten::mm"] * 3
    one = ask(page, "operator_memory", t0=0, t1=0.3)
    assert one["allocations"]["num_all"] == 1
    assert max(answer["curve"]["allocated_bytes"]) == 14_096
    other = ask(page, "operator_memory", device="12:0")
    assert other["device"] is None


def test_what_allocations_are_for_and_who_holds_most(tmp_path):
    made = KinetoFile()
    made.device()
    made.step(1, 0, 1000)
    module = {"Python id": 1, "Python module id": 0}
    made.slice("nn.Module: Linear_0", 100, 200, "python_function", **module)
    made.slice("aten::linear", 110, 100)
    made.memory(120, 4096, 77, 1_000_000 + 4096)
    evaluate = "autograd::engine::evaluate_function: AddmmBackward0"
    made.slice(evaluate, 400, 100)
    made.memory(410, 512, 78, 1_000_000 + 4608)
    made.memory(420, -4096, 77, 1_000_000 + 512)
    made.slice("FSDP::post_backward_reduce (layers.0)", 600, 50, "user_annotation")
    made.memory(610, 256, 79, 1_000_000 + 768)
    made.slice("Optimizer.zero_grad#SGD.zero_grad", 900, 50, "user_annotation")
    made.memory(910, -512, 78, 1_000_000 + 256)
    made.write(tmp_path / "exp" / "a.pt.trace.json")
    answer = ask(Page(tmp_path), "operator_memory")

    def told(table, at):
        columns = columns_of(table)
        return tuple(columns[key][at] for key in ("category", "module", "phase"))

    table = answer["allocations"]
    assert [told(table, at) for at in range(3)] == [
        ("activation", "Linear_0", "forward"),
        ("grad", "", "backward"),
        ("sharded_grad", "layers.0", "FSDP::post_backward_reduce"),
    ]
    (why,) = (one["hints"] for one in table["columns"] if one["key"] == "category")
    assert why == [
        "freed by a backward that did not make it",
        "freed by zero_grad",
        "reduced by FSDP, and kept",
    ]
    assert columns_of(table)["operator"] == [
        "aten::linear",
        evaluate,
        "FSDP::post_backward_reduce (layers.0)",
    ]
    assert table["colours"] == ["activation", "grad", "sharded_grad"]
    peak = answer["peak"]
    assert (peak["time_ms"], peak["whole_bytes"]) == (0.41, 1_004_608)
    assert peak["unknown_bytes"] == 1_000_000
    assert [(one["name"], one["num_bytes"]) for one in peak["parts"]] == [
        ("activation", 4096),
        ("grad", 512),
        ("", 1_000_000),
    ]
    every = ask(Page(tmp_path), "operator_memory", by="all")["peak"]["holders"]
    assert columns_of(every)["num_bytes"].tolist() == [4096, 512]
    assert told(every, 0) == ("activation", "Linear_0", "forward")
    for by, names in (("phase", ["forward", "backward"]), ("module", ["Linear_0", ""])):
        alike = ask(Page(tmp_path), "operator_memory", by=by)["peak"]["holders"]
        assert columns_of(alike)[by] == names
        assert columns_of(alike)["num_allocations"].tolist() == [1, 1]
    groups = {one["name"]: one["group"] for one in answer["categories"]}
    assert (groups["sharded_grad"], groups["other"]) == ("grad", "unknown")
    later = ask(Page(tmp_path), "operator_memory", t0=0.5, t1=0.95)["peak"]
    assert later["time_ms"] == 0.61
    assert sum(columns_of(later["holders"])["num_bytes"]) == 768


@pytest.mark.parametrize("route", ROUTES)
def test_numbers_beyond_reason_are_harmless(page, route):
    for query in (
        {"top": 2000, "px": 8192, "cycle": 10**12, "step": 10**12},
        {"t0": "1e11", "t1": "-1e11"},
        {"ranks": "0-9999999"},
        {"x0": "1e11", "x1": "-1e11", "rows": 8192},
        {"x0": "0.5", "x1": "0.7"},
        {"sort": "nothing_of_the_kind", "text": "[("},
        {"name": "\0<b>", "shapes": "]["},
    ):
        assert isinstance(ask(page, route, **query), dict)
