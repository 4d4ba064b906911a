"""Which kernels of a trace use matrix cores: tensor cores, as NVIDIA calls its own.

By the kernel's name, and for the products of Triton, which use the cores where data types
allow it, by the device or by the inputs of the operator that launched them. Where none of
these decides it is not known.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from memboard.tb_plugin.analysis.arrays import NOTHING, picked, places_in, ratio
from memboard.tb_plugin.analysis.kernel_names.kinds import kernel_kind
from memboard.tb_plugin.analysis.trace.texts import are, looked_up

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from memboard.tb_plugin.analysis.arrays import Flags, Floats, Ints
    from memboard.tb_plugin.analysis.trace.trace import Trace

KNOWN_SHARE: Final = 0.80
"""Of the time of kernels that must be decided for a share to be given."""
_PRODUCTS: Final = frozenset({"matmul", "convolution", "attention"})
_UNKNOWN, _NOT_USED, _USED, _BY_TYPE = range(4)
AMD_WARP_SIZE: Final = 64
"""Threads of a warp on Instinct; Radeon has 32, as NVIDIA."""
_AMD: Final = re.compile(r"\bAMD\b|Radeon|Instinct", re.IGNORECASE)
_NARROW: Final = re.compile(r"\b(?:c10::)?(?:BFloat16|Half|Float8_\w+|Float4_\w+)\b")
_WIDE: Final = re.compile(r'"(?:float|double|c10::complex<\w+>)"')


class MatrixCores(NamedTuple):
    """Of each device work; of copies and fills too."""

    is_used: Flags
    is_known: Flags

    @property
    def verdict(self) -> Ints:
        """1: used; 0: not; -1: not known."""
        return np.where(self.is_known, self.is_used.astype(np.int64), NOTHING)


def matrix_cores(trace: Trace, owner: Ints) -> MatrixCores:
    """`owner`: (device work,): the slice that launched each, an operator; or NOTHING."""
    names = trace.slices.name[trace.device_work.row]
    verdict = looked_up(trace.strings, names, _by_name)
    by_type = verdict == _BY_TYPE
    if by_type.any():
        is_on_cores = by_type & (has_cdna(trace) | _has_narrow_inputs(trace, owner))
        verdict = np.where(by_type, _UNKNOWN, verdict)
        verdict[is_on_cores] = _USED
    return MatrixCores(verdict == _USED, verdict != _UNKNOWN)


def may_use_cores(trace: Trace) -> Flags:
    """(device work,): whether it is a product, or not known to be none, by its name.

    Only of these the time counts where it is judged whether enough is known.
    """
    names = trace.slices.name[trace.device_work.row]
    return are(trace.strings, names, _may_use_cores)


def known_ratio(used_ns: Ints, known_ns: Ints, all_ns: Ints) -> Floats:
    """Share of the known time in which cores are used; NaN where too little is known."""
    is_enough = known_ns >= KNOWN_SHARE * all_ns
    return np.where(is_enough, ratio(used_ns, known_ns), np.nan)


def has_cdna(trace: Trace) -> bool:
    """Whether the devices are Instinct, on which Triton makes every product so."""
    return any(
        device.get("warpSize") == AMD_WARP_SIZE for device in trace.facts.devices
    )


def is_amd(devices: Iterable[Mapping[str, Any]]) -> bool:
    """Whether `deviceProperties` are of AMD: its cores are called matrix cores."""
    return any(
        device.get("warpSize") == AMD_WARP_SIZE
        or _AMD.search(str(device.get("name", "")))
        for device in devices
    )


def _may_use_cores(kernel_name: str) -> bool:
    kind = kernel_kind(kernel_name)
    return kind.category in _PRODUCTS or kind.matrix_cores is None


def _by_name(kernel_name: str) -> int:
    is_used = kernel_kind(kernel_name).matrix_cores
    if is_used is not None:
        return _USED if is_used else _NOT_USED
    is_used_by_dot = kernel_kind(kernel_name, on_cdna=True).matrix_cores
    return _BY_TYPE if is_used_by_dot else _UNKNOWN


def _has_narrow_inputs(trace: Trace, owner: Ints) -> Flags:
    """(device work,): whether all floats that its operator reads have 16 bits or fewer."""
    recorded = trace.operators
    place = places_in(recorded.row, owner)
    types = picked(recorded.input_types, place, 0)
    is_narrow = are(
        trace.strings,
        types,
        lambda text: _NARROW.search(text) and not _WIDE.search(text),
    )
    flags: Flags = is_narrow & (place != NOTHING)
    return flags
