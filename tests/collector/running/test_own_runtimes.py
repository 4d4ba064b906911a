"""Libraries with a CUDA runtime of their own, told from what the linker left undefined."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys

import pytest

from memboard.collector.running.own_runtimes import has_own_runtime

DEVICE_CODE = 'asm(".section .nv_fatbin,\\"a\\"\\n.long 1\\n.text");\n'
LINKED = "static int __cudaRegisterFatBinary(void) { return 0; }\n"
ASKED = "int __cudaRegisterFatBinary(void);\n"
CALLS = "int start(void) { return __cudaRegisterFatBinary(); }\n"


@pytest.fixture
def library(tmp_path):
    """Compiles a shared library of these lines."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("there is no C compiler")

    def make(*lines: str) -> str:
        (tmp_path / "made.c").write_text("".join(lines))
        path = str(tmp_path / f"lib{len(list(tmp_path.iterdir()))}.so")
        words = [compiler, "-shared", "-fPIC", "made.c", "-o", path]
        subprocess.run(words, cwd=tmp_path, check=True, capture_output=True)
        return path

    return make


def test_device_code_with_a_runtime_linked_in_is_found(library):
    assert has_own_runtime(library(DEVICE_CODE, LINKED, CALLS))
    assert not has_own_runtime(library(DEVICE_CODE, ASKED, CALLS)), "asks the loader"
    assert not has_own_runtime(library(LINKED, CALLS)), "no device code"


def test_what_is_no_library_is_none(tmp_path):
    (tmp_path / "text.so").write_text("not a library")
    (tmp_path / "cut.so").write_bytes(b"\x7fELF\x02" + bytes(20))
    assert not has_own_runtime(str(tmp_path / "text.so"))
    assert not has_own_runtime(str(tmp_path / "cut.so"))
    assert not has_own_runtime(str(tmp_path / "gone.so"))
    assert not has_own_runtime(ctypes.__file__)
