"""Numbers out of the messages of torch's allocators, as several releases word them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memboard.collector.format.sizes import sizes_in
from memboard.collector.oom.message import (
    device_type_in,
    in_words,
    is_out_of_memory,
    text_of,
)

MIB, GIB = 2**20, 2**30

NEW = (
    "CUDA out of memory. Tried to allocate 4.94 GiB. GPU 1 has a total capacity of 79.14"
    " GiB of which 91.69 MiB is free. Process 123 has 79.03 GiB memory in use. 60.00 GiB"
    " allowed; Of the allocated memory 78.29 GiB is allocated by PyTorch, with 12.00 MiB"
    " allocated in private pools (e.g., CUDA Graphs), and 135.40 MiB is reserved by"
    " PyTorch but unallocated."
)
OLD = (
    "CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 14.76 GiB total capacity;"
    " 13.73 GiB already allocated; 11.75 MiB free; 13.79 GiB reserved in total by PyTorch)"
)
POOL = (
    "CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 4.00 GiB"
    " of which 1.80 GiB is free. Including non-PyTorch memory, this process has 2.20 GiB"
    " memory in use. Of the allocated memory 2.00 GiB is allocated by PyTorch, with 2.00"
    " GiB allocated in private pools (e.g., CUDA Graphs), and 0 bytes is reserved by"
    " PyTorch but unallocated."
)
"""torch 2.13, where a MemPool had cached 2 GiB and nothing at all was allocated."""
MPS = (
    "MPS backend out of memory (MPS allocated: 5.50 GiB, other allocations: 1.20 GiB, max"
    " allowed: 9.00 GiB). Tried to allocate 256.00 MiB on private pool."
)
REJECTED = (
    "CUDA out of memory. Allocation was preemptively rejected because it would exceed"
    " per_process_memory_fraction limit. Requested size: 1.50 GiB"
)
"""Since torch 2.13, with throw_on_cudamalloc_oom."""
HOST = (
    "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate"
    " memory: you tried to allocate 400000000000 bytes. Error code 12"
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            NEW,
            {
                "requested_bytes": round(4.94 * GIB),
                "device_total_bytes": round(79.14 * GIB),
                "device_free_bytes": round(91.69 * MIB),
                "device_limit_bytes": 60 * GIB,
                "allocated_bytes": round(78.29 * GIB) - 12 * MIB,
                "private_free_bytes": 12 * MIB,
                "reserved_bytes": round(78.29 * GIB) + round(135.40 * MIB),
                "device": 1,
            },
        ),
        (
            OLD,
            {
                "requested_bytes": 20 * MIB,
                "device_total_bytes": round(14.76 * GIB),
                "device_free_bytes": round(11.75 * MIB),
                "allocated_bytes": round(13.73 * GIB),
                "reserved_bytes": round(13.79 * GIB),
                "device": 0,
            },
        ),
        (
            POOL,
            {
                "requested_bytes": round(2.5 * GIB),
                "device_total_bytes": 4 * GIB,
                "device_free_bytes": round(1.8 * GIB),
                "allocated_bytes": 0,
                "private_free_bytes": 2 * GIB,
                "reserved_bytes": 2 * GIB,
                "device": 0,
            },
        ),
        (
            MPS,
            {
                "requested_bytes": 256 * MIB,
                "device_total_bytes": 9 * GIB,
                "allocated_bytes": round(5.5 * GIB),
            },
        ),
        (HOST, {"requested_bytes": 400_000_000_000}),
        (REJECTED, {"requested_bytes": 1536 * MIB}),
        ("", {}),
    ],
)
def test_what_a_message_says(text, expected):
    assert sizes_in(text) == expected


@given(st.text(max_size=200))
def test_any_text_will_do(text):
    assert all(value >= 0 for value in sizes_in(text).values())
    assert isinstance(is_out_of_memory(RuntimeError(text)), bool)


def test_which_errors_are_meant():
    torch = pytest.importorskip("torch")
    assert is_out_of_memory(torch.OutOfMemoryError("x"))
    assert is_out_of_memory(MemoryError())
    assert is_out_of_memory(RuntimeError(HOST))
    assert is_out_of_memory(RuntimeError("CUDA error: out of memory"))
    assert not is_out_of_memory(RuntimeError("out of luck"))
    assert not is_out_of_memory(ValueError("out of memory"))  # a text of the user's own
    assert not is_out_of_memory(None)


def test_an_exception_without_a_text_has_none():
    class MuteError(RuntimeError):
        def __str__(self):
            raise KeyError

    assert text_of(MuteError()) == ""
    assert not is_out_of_memory(MuteError())


def test_devices_and_words():
    assert device_type_in(NEW) == "cuda"
    assert device_type_in("HIP out of memory. Tried") == "cuda"
    assert device_type_in("XPU out of memory.") == "xpu"
    assert device_type_in(HOST) is None
    assert [in_words(n) for n in (5, 1536, 3 * MIB, 5 * GIB, None)] == [
        "5 bytes",
        "1.50 KiB",
        "3.00 MiB",
        "5.00 GiB",
        "an unknown size",
    ]
