"""Files of profilers that are not read say so, and what to use instead."""

from __future__ import annotations

import pytest

from memboard.tb_plugin.cli import main
from tests.kineto_files import trained
from tests.tb_plugin.client import Page

SQLITE = b"SQLite format 3\0" + bytes(300)
FILES = {
    "report1.nsys-rep": (b"\x1f\x8b\x08", "Nsight Systems (nsys)"),
    "report1.sqlite": (SQLITE, "nsys and rocpd"),
    "report1.json": (b'{"Type":48,"CudaEvent":{"startNs":"7"}}\n', "Nsight Systems"),
    "4711_results.db": (SQLITE, "rocprof"),
    "4711_kernel_trace.csv": (b'"Kind","Agent_Id"\n', "rocprof"),
    "4711_results.json": (b'{"rocprofiler-sdk-tool": [{}]}', "rocprof"),
    "of_another_name.json": (b'{"rocprofiler-sdk-tool": [{}]}', "rocprof"),
    "my_trace.json": (b'{"rocprofiler-sdk-tool": [{}]}', "rocprof"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_named_is_refused_by_its_tool(tmp_path, capsys, name):
    data, tool = FILES[name]
    path = tmp_path / name
    path.write_bytes(data)
    assert main(["report", str(path)]) != 0
    output = "".join(capsys.readouterr())
    assert tool in output
    assert "torch.profiler" in output


def test_a_directory_says_once_which_tool_wrote_what_is_not_read(tmp_path):
    for name in ("1_kernel_trace.csv", "2_kernel_trace.csv", "1_results.json"):
        (tmp_path / name).write_bytes(b"{}")
    (tmp_path / "a.nsys-rep").write_bytes(b"{}")
    trained().write(tmp_path / "rank0_trace.json")
    runs = Page(tmp_path).get("/runs")
    assert len(runs["runs"]) == 1
    sentences = [problem["what"] for problem in runs["problems"]]
    assert [sentence for sentence in sentences if "rocprof" in sentence] == [
        "This is an export of ROCm's profiler (rocprof), which MemBoard does not read."
    ]
    assert sum("nsys" in sentence for sentence in sentences) == 1


def test_tables_and_databases_of_others_say_nothing(tmp_path):
    (tmp_path / "results.csv").write_text("a,b")
    (tmp_path / "experiments.db").write_bytes(SQLITE)
    (tmp_path / "results.json").write_text("{}")
    assert not Page(tmp_path).get("/runs")["problems"]
