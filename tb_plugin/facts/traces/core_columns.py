"""Columns on tensor cores, in the tables of operators, kernels and devices.

Where too little is known the cell has a dash; where not all is, it says how much. AMD calls
them matrix cores, and so do the tables of its devices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec.structs import replace

from memboard.tb_plugin.analysis.findings.text import share_text
from memboard.tb_plugin.analysis.kernel_names.matrix_cores import KNOWN_SHARE, is_amd
from memboard.tb_plugin.contract.table import Column

if TYPE_CHECKING:
    from collections.abc import Iterable

    from memboard.tb_plugin.analysis.operators.kernels import KernelTable
    from memboard.tb_plugin.analysis.trace.trace import Trace
    from memboard.tb_plugin.api.tables import TableRows

_DECIDED_BY: Final = (
    "The kernel's name decides, and of Triton's products the data types and the device."
)
_TOO_LITTLE: Final = (
    f"No kernel ran, or less than {share_text(KNOWN_SHARE)} of their time is of kernels"
    " whose names say whether they use tensor cores"
)
_KNOWN_HELP: Final = "Time of kernels of which it is known whether they use tensor cores ÷ time of all kernels"

OPERATOR_CORES: Final = (
    Column(
        "is_tensor_core_eligible",
        "TC eligible",
        unit="yes",
        help="Whether its kernels could use tensor cores, with fitting data types and "
        "shapes: by its name, of operators of PyTorch; or because they do",
        absent="No operator of PyTorch: its name does not say it",
        sorts=False,
    ),
    Column(
        "tensor_core_self_share",
        "TC self",
        unit="share",
        help="Time of its own kernels that use tensor cores ÷ time of its own kernels of "
        f"which that is known; beside it, of how much it is. {_DECIDED_BY}",
        absent=_TOO_LITTLE,
    ),
    Column(
        "tensor_core_total_share",
        "TC total",
        unit="share",
        help="The same over its kernels and those of the operators in it",
        absent=_TOO_LITTLE,
    ),
    Column(
        "tensor_core_known_share",
        "",
        unit="share",
        help=f"{_KNOWN_HELP}, those of the operators in it included",
    ),
)
KERNEL_CORES: Final = Column(
    "uses_tensor_cores",
    "TC",
    unit="yes",
    help=f"Whether it uses tensor cores. {_DECIDED_BY}",
    absent="Its name does not say whether it uses tensor cores",
)
DEVICE_CORES: Final = (
    Column(
        "tensor_core_share",
        "Tensor\ncores",
        unit="share",
        help="Time of kernels that use tensor cores ÷ time of the kernels of which that is "
        f"known; of one step, of what lies in it. {_DECIDED_BY}",
        absent=_TOO_LITTLE,
    ),
    Column("tensor_core_known_share", "", unit="share", help=_KNOWN_HELP),
)


def known_notes(known_shares: Iterable[float | None]) -> tuple[str, ...]:
    """Beside shares, how much is known where not all is."""
    notes = tuple(map(_known_note, known_shares))
    return notes if any(notes) else ()


def _known_note(share: float | None) -> str:
    if share is None or np.isnan(share):
        return ""
    if share < KNOWN_SHARE:
        return "not known"
    percent = round(100 * share)
    return "" if percent == 100 else f"of {percent} %"


def kernels_on_cores(kernels: KernelTable) -> str:
    """Share of the kernels' time on tensor cores, and of how much that is known.

    Empty without kernels.
    """
    is_known = kernels.uses_tensor_cores >= 0
    all_ns = int(kernels.total_ns.sum())
    if all_ns == 0:
        return ""
    known_ns = int(kernels.total_ns[is_known].sum())
    used_ns = int(kernels.total_ns[kernels.uses_tensor_cores == 1].sum())
    if known_ns < KNOWN_SHARE * all_ns:
        unknown = share_text(1 - known_ns / all_ns)
        return f"of {unknown} of the time it is not known whether tensor cores are used"
    text = f"{100 * used_ns / max(known_ns, 1):.1f} % of the time with tensor cores"
    percent = round(100 * known_ns / all_ns)
    return text if percent == 100 else f"{text} ({percent} % known)"


def in_vendor_words(rows: TableRows, trace: Trace) -> TableRows:
    """A table as the devices' maker names what it counts."""
    if not is_amd(trace.facts.devices):
        return rows
    columns = [
        replace(
            column,
            title=_amd_text(column.title),
            help=_amd_text(column.help),
            absent=_amd_text(column.absent),
        )
        if "tensor_core" in column.key
        else column
        for column in rows.columns
    ]
    return replace(rows, columns=tuple(columns), summary=_amd_text(rows.summary))


def _amd_text(text: str) -> str:
    for nvidia, amd in (
        ("tensor cores", "matrix cores"),
        ("Tensor\ncores", "Matrix\ncores"),
        ("TC", "MC"),
    ):
        text = text.replace(nvidia, amd)
    return text
