"""Roles of slices in a step's time: kernels, copies, communication, operators ...

Communication is known by what ran, never by external ids, which profilers have written
in too many ways: on a device the collective's kernels (by name, or by the metadata of
the collective), on the host the work of backends that have no device.
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.tb_plugin.analysis.kernel_names.host_calls import (
    DEVICE_BACKEND,
    HOST_BACKEND,
)
from memboard.tb_plugin.analysis.kernel_names.kinds import communicates
from memboard.tb_plugin.analysis.time.step_marks import is_step_mark
from memboard.tb_plugin.analysis.trace.categories import (
    OPERATORS_AND_ANNOTATIONS,
    is_runtime,
    work_kind,
)
from memboard.tb_plugin.analysis.trace.texts import are, looked_up

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.arrays import Ints
    from memboard.tb_plugin.analysis.trace.categories import WorkKind
    from memboard.tb_plugin.analysis.trace.trace import Trace
    from memboard.tb_plugin.api.time.profile import ProfileRole


class Role(IntEnum):
    """In the order in which they claim time: what is lower is counted first."""

    KERNEL = 0
    """Computation on a device: kernels other than those of collectives."""
    MEMCPY = 1
    MEMSET = 2
    COMMUNICATION = 3
    RUNTIME = 4
    """Calls of a device's runtime or driver."""
    DATALOADER = 5
    CPU_EXEC = 6
    """Operators and annotations on the host."""
    OTHER = 7
    """Nothing of the above; of a slice: it has no role."""


ROLES: Final[tuple[tuple[ProfileRole, str, str, str], ...]] = (
    ("kernel", "kernels", "kernel", "A kernel ran on a device, not of a collective."),
    ("memcpy", "copies", "memory", "A copy ran on a device, and no kernel."),
    ("memset", "fills", "fill", "A device filled memory, and did nothing else."),
    (
        "communication",
        "communication",
        "communication",
        "A collective ran and nothing hid it: exposed communication.",
    ),
    (
        "runtime",
        "runtime calls",
        "runtime",
        "The host called the device's runtime; the device did nothing.",
    ),
    ("dataloader", "dataloader", "dataloader", "The step waited for a batch."),
    (
        "cpu_exec",
        "host operators",
        "operator",
        "Operators and annotations ran on the host; no device did anything.",
    ),
    ("other", "other", "other", "None of the others: code outside operators."),
)
"""By `Role`: its key, label, colour and help."""

_OF_WORK: Final[dict[WorkKind, Role]] = {
    "kernel": Role.KERNEL,
    "copy": Role.MEMCPY,
    "fill": Role.MEMSET,
    "collective": Role.COMMUNICATION,
}

_LOADING: Final = re.compile(
    r"enumerate\(Data(?:Loader|Pipe)\)#.*|DataLoader.*__next__"
)


def slice_roles(trace: Trace) -> Ints:
    """(slices,) uint8: the `Role` of each."""
    slices, strings = trace.slices, trace.strings
    roles = looked_up(strings, slices.category, _role_of_category)
    has_devices = len(trace.device_work.row) > 0
    host = np.flatnonzero(roles == Role.CPU_EXEC)
    roles[host] = looked_up(
        strings, slices.name[host], lambda text: _on_host(text, has_devices)
    )
    kernels = np.flatnonzero(roles == Role.KERNEL)
    talks = are(strings, slices.name[kernels], communicates)
    roles[kernels[talks]] = Role.COMMUNICATION
    described = trace.collectives.row
    described = described[roles[described] == Role.KERNEL]
    roles[described] = Role.COMMUNICATION
    return roles


def _role_of_category(category: str) -> Role:
    work = work_kind(category)
    if work is not None:
        return _OF_WORK[work]
    if is_runtime(category):
        return Role.RUNTIME
    return (
        Role.CPU_EXEC if category.lower() in OPERATORS_AND_ANNOTATIONS else Role.OTHER
    )


def _on_host(slice_name: str, has_devices: bool) -> Role:
    if is_step_mark(slice_name):
        return Role.OTHER
    if _LOADING.fullmatch(slice_name):
        return Role.DATALOADER
    # Where there are devices their kernels are the communication; this only starts it.
    if HOST_BACKEND.match(slice_name) or (
        DEVICE_BACKEND.match(slice_name) and not has_devices
    ):
        return Role.COMMUNICATION
    return Role.CPU_EXEC
