"""What communicates on the host, by the names of operators and annotations."""

from __future__ import annotations

import re
from typing import Final

HOST_BACKEND: Final = re.compile(r"(?:gloo|mpi|ucc):\w")
"""A collective of a backend that has no device: its slice is the communication."""
DEVICE_BACKEND: Final = re.compile(r"(?:nccl|rccl|xccl|hccl|ccl):\w")
"""A collective of one that has: where devices were recorded, their kernels are it."""
WAITS: Final = re.compile(
    r"FSDP::|_?c10d(?:_functional)?::|record_param_comms$|DistributedDataParallel\.sync"
)
"""Starts communication, or waits for it: neither computation nor communication."""

_STARTS: Final = re.compile(
    r"nccl|rccl|oneccl|(?:^|:)(?:gloo|mpi|ucc|xccl|hccl|ccl):|^_?c10d::|c10d_functional"
    r"|record_param_comms|(?:^|[_:])all_?gather|(?:^|[_:])all_?reduce|reduce_?scatter"
    r"|all_?to_?all|::barrier|(?:^|:)(?:symm_mem|deep_ep|nvshmem|mscclpp)::",
    re.IGNORECASE,
)


def starts_communication(slice_name: str) -> bool:
    """Whether an operator or annotation is a collective or sends, or starts one.

    What it took on devices says it better, where anything of it ran there.
    """
    return _STARTS.search(slice_name) is not None
