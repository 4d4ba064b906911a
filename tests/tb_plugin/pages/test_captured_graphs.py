"""Traces that replay graphs, with the captures that lie beside them."""

from __future__ import annotations

import pytest

from tests.kineto_files import KinetoFile
from tests.tb_plugin.client import Page
from tests.tb_plugin.pages.profiled import ask


def capture(shapes: list[list[int]]) -> KinetoFile:
    made = KinetoFile()
    made.slice("hipStreamBeginCapture", 10, 5, "cuda_runtime", correlation=1)
    python = {"Python id": 1, "Python module id": 0}
    made.slice("nn.Module: Mlp_0", 20, 100, "python_function", **python)
    for number, kernel in enumerate(("gemm", "gelu")):
        at = 30 + 40 * number
        made.slice(f"aten::{kernel}", at, 30, **{"Input Dims": shapes})
        launch = {"correlation": 2 + number, "kernel": kernel}
        made.slice("hipLaunchKernel", at + 10, 5, "cuda_runtime", **launch)
    made.slice("hipStreamEndCapture", 200, 5, "cuda_runtime", correlation=9)
    return made


def replay() -> KinetoFile:
    made = KinetoFile()
    made.slice("hipGraphLaunch", 100, 50, "cuda_runtime", correlation=77)
    for number, (kernel, took) in enumerate((("gemm", 30), ("gelu", 10))):
        lane = {"device": 0, "stream": 7, "correlation": 77}
        made.device_slice(kernel, 200 + 50 * number, took, **lane)
    return made


@pytest.fixture
def folder(tmp_path):
    replay().write(tmp_path / "exp" / "rank0.1.pt.trace.json.gz")
    return tmp_path / "exp"


@pytest.fixture
def captures(folder):
    capture([[8, 8]]).write(
        folder / "capture_traces" / "graph_capture_rank_0.9.pt.trace.json.gz"
    )
    return folder / "capture_traces"


def answer_of(folder, route, **query):
    page = Page(folder.parent)
    (run,) = [run["id"] for run in page.get("/runs")["runs"] if run["name"] == "exp"]
    return ask(page, route, run=run, **query)


def operators(folder, **query):
    answer = answer_of(folder, "operators", sort="device_self_ms", **query)
    times = zip(answer["name"], answer["device_self_ms"].tolist(), strict=True)
    return dict(times), answer["table"]["summary"], answer


OF_OPERATORS = {"aten::gemm": 0.03, "aten::gelu": 0.01}
OF_LAUNCH = {"hipGraphLaunch": 0.04}


def test_without_a_capture_a_graph_has_one_row_and_says_what_would_tell_more(folder):
    times, summary, _ = operators(folder)
    assert times == pytest.approx(OF_LAUNCH)
    assert summary.endswith(
        "40.0 µs of it replayed by graphs in the row of the launch; a trace of the capture,"
        " in capture_traces beside this one, names its operators."
    )
    kernels = answer_of(folder, "kernels", by="properties")
    assert kernels["operator"] == ["hipGraphLaunch", "hipGraphLaunch"]


def test_a_capture_beside_the_trace_names_operators_modules_and_shapes(
    folder, captures
):
    (captures / "execution_details.json").write_text('[{"batch_size": 8}]')
    times, summary, answer = operators(folder, by="shapes")
    assert times == pytest.approx(OF_OPERATORS)
    assert answer["shapes"] == ["[[8, 8]]", "[[8, 8]]"]
    assert summary.endswith("40.0 µs of it replayed by graphs.")
    modules = answer_of(folder, "module_times")
    assert modules["name"] == ["Mlp_0"]
    assert modules["device_ms"].tolist() == pytest.approx([0.04])
    kernels = answer_of(folder, "kernels", by="properties")
    assert kernels["operator"] == ["aten::gemm", "aten::gelu"]


def test_a_kernel_in_trace_leads_to_what_captured_it(folder, captures):
    assert captures.is_dir()
    source = answer_of(folder, "operators")["choice"]["source"]
    found = answer_of(folder, "trace_search", text="gelu", tracks=f"{source}:0")
    kernel = answer_of(folder, "trace_slice", source=source, row=int(found["row"][0]))
    words = {partner["words"]: partner["name"] for partner in kernel["partners"]}
    assert words == {"launched by": "hipGraphLaunch", "captured in": "aten::gelu"}


def test_captures_of_other_ranks_and_damaged_ones_are_left_alone(folder, captures):
    own = next(captures.iterdir())
    own.rename(captures / "graph_capture_rank_1.9.pt.trace.json.gz")
    (captures / "bs_8_rank0.json.gz").write_bytes(b"no trace")
    (captures / "graph_capture_rank_0.pt.trace.json").write_text('{"traceEvents": 1}')
    assert operators(folder)[0] == pytest.approx(OF_LAUNCH)


def test_no_link_to_captures_is_followed(folder, captures, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "captures"
    captures.rename(elsewhere)
    captures.symlink_to(elsewhere)
    assert operators(folder)[0] == pytest.approx(OF_LAUNCH)
    captures.unlink()
    captures.mkdir()
    (file,) = elsewhere.iterdir()
    (captures / file.name).symlink_to(file)
    assert operators(folder)[0] == pytest.approx(OF_LAUNCH)


def test_of_two_captures_that_fit_alike_the_shapes_are_not_known(folder, captures):
    capture([[16, 8]]).write(captures / "bs_16_rank0.json.gz")
    times, _, answer = operators(folder, by="shapes")
    assert times == pytest.approx(OF_OPERATORS)
    assert answer["shapes"] == ["", ""]


def test_a_trace_may_hold_the_capture_and_the_replay(tmp_path):
    made = capture([[8, 8]])
    for event in replay().events:
        made.events.append({**event, "ts": event["ts"] + 1_000})
    made.write(tmp_path / "exp" / "rank0.1.pt.trace.json.gz")
    times, _, _ = operators(tmp_path / "exp")
    assert times == pytest.approx(OF_OPERATORS)
