"""Peak rates of devices: dense operations by data type, and memory bandwidth.

Figures are the makers', without sparsity (of NVIDIA's tables that list only sparse rates,
half), at boost clock: a device under its power limit does not reach them. fp16 and bf16 of
GeForce cards are those with fp32 accumulation, which torch uses. `tf32` is what fp32
matrices do on tensor cores, `fp32` what they do without (of AMD: on matrix cores, as
rocBLAS does them). torch shows each die of an MI250 as a device, so it has half.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class DevicePeaks(NamedTuple):
    """What one device can do at most."""

    title: str
    terabytes_per_s: float
    teraflops: Mapping[str, float]
    """Dense, by data type: see `arguments.ElementType`, and `tf32`."""
    source: str

    @property
    def bytes_per_s(self) -> float:
        return self.terabytes_per_s * 1e12

    def flop_per_s(self, element: str) -> float:
        """NaN for a type that the maker does not list."""
        return self.teraflops.get(element, float("nan")) * 1e12


_BLACKWELL: Final = (
    "NVIDIA Blackwell architecture technical brief and HGX B200 data sheet (2024)"
)
_HOPPER: Final = "NVIDIA H100 Tensor Core GPU data sheet and architecture white paper"
_AMPERE: Final = "NVIDIA A100 Tensor Core GPU data sheet (2021)"
_ADA: Final = "NVIDIA Ada GPU architecture white paper"
_CDNA3: Final = "AMD CDNA 3 white paper and Instinct data sheets (2023, 2024)"
_CDNA2: Final = "AMD CDNA 2 white paper and Instinct data sheets (2021)"

_H100: Final = {"fp64": 66.9, "fp32": 66.9, "tf32": 494.7, "fp16": 989.4, "bf16": 989.4, "fp8": 1978.9, "int8": 1978.9}  # fmt: skip
_H100_NVL: Final = {"fp64": 60.0, "fp32": 60.0, "tf32": 417.5, "fp16": 835.5, "bf16": 835.5, "fp8": 1670.5, "int8": 1670.5}  # fmt: skip
_A100: Final = {"fp64": 19.5, "fp32": 19.5, "tf32": 156.0, "fp16": 312.0, "bf16": 312.0, "int8": 624.0}  # fmt: skip
_MI300X: Final = {"fp64": 163.4, "fp32": 163.4, "tf32": 653.7, "fp16": 1307.4, "bf16": 1307.4, "fp8": 2614.9, "int8": 2614.9}  # fmt: skip

_NO_WHOLE_DEVICE: Final = re.compile(r"\bMIG\b|^GRID\b|\bvGPU\b", re.IGNORECASE)
"""A part of a device has a part of its peaks, which its name does not tell."""

PEAKS: Final[tuple[tuple[re.Pattern[str], DevicePeaks], ...]] = tuple(
    (re.compile(pattern, re.IGNORECASE), DevicePeaks(title, bandwidth, teraflops, source))
    for pattern, title, bandwidth, teraflops, source in (
        (r"\bGB200\b", "GB200", 8.0, {"fp64": 40.0, "fp32": 80.0, "tf32": 1250.0, "fp16": 2500.0, "bf16": 2500.0, "fp8": 5000.0, "fp4": 10000.0}, _BLACKWELL),
        (r"\bB200\b", "B200", 8.0, {"fp64": 37.0, "fp32": 75.0, "tf32": 1125.0, "fp16": 2250.0, "bf16": 2250.0, "fp8": 4500.0, "int8": 4500.0, "fp4": 9000.0}, _BLACKWELL),
        (r"\bH200 NVL\b", "H200 NVL", 4.8, _H100_NVL, "NVIDIA H200 Tensor Core GPU data sheet"),
        (r"\bH200\b", "H200", 4.8, _H100, "NVIDIA H200 Tensor Core GPU data sheet"),
        (r"\bGH200 144G", "GH200 144GB", 4.9, _H100, "NVIDIA GH200 Grace Hopper Superchip data sheet"),
        (r"\bGH200\b", "GH200 96GB", 4.0, _H100, "NVIDIA GH200 Grace Hopper Superchip data sheet"),
        (r"\bH100 PCIe\b", "H100 PCIe", 2.04, {"fp64": 51.2, "fp32": 51.2, "tf32": 378.0, "fp16": 756.0, "bf16": 756.0, "fp8": 1513.0, "int8": 1513.0}, _HOPPER),
        (r"\bH100 NVL\b", "H100 NVL", 3.9, _H100_NVL, _HOPPER),
        (r"\bH[18]00(?: 80GB HBM3|[ -]SXM5?\b)", "H100 SXM", 3.35, _H100, _HOPPER),
        (r"\bH20\b", "H20", 4.0, {"fp32": 44.0, "tf32": 74.0, "fp16": 148.0, "bf16": 148.0, "fp8": 296.0, "int8": 296.0}, "NVIDIA H20 product brief"),
        (r"\bA[18]00-SXM4-80GB|\bA[18]00-SXM-80GB", "A100 SXM 80GB", 2.039, _A100, _AMPERE),
        (r"\bA[18]00(?: 80GB PCIe|-PCIE-80GB)", "A100 PCIe 80GB", 1.935, _A100, _AMPERE),
        (r"\bA[18]00-(?:SXM4?|PCIE)-40GB", "A100 40GB", 1.555, _A100, _AMPERE),
        (r"\bA30\b", "A30", 0.933, {"fp64": 10.3, "fp32": 10.3, "tf32": 82.0, "fp16": 165.0, "bf16": 165.0, "int8": 330.0}, "NVIDIA A30 data sheet"),
        (r"\bA40\b", "A40", 0.696, {"fp32": 37.4, "tf32": 74.8, "fp16": 149.7, "bf16": 149.7, "int8": 299.3}, "NVIDIA A40 data sheet"),
        (r"\bA10G\b", "A10G", 0.6, {"fp32": 31.5, "tf32": 35.0, "fp16": 70.0, "bf16": 70.0, "int8": 140.0}, "NVIDIA A10G data sheet"),
        (r"\bA10\b", "A10", 0.6, {"fp32": 31.2, "tf32": 62.5, "fp16": 125.0, "bf16": 125.0, "int8": 250.0}, "NVIDIA A10 data sheet"),
        (r"\bL40S\b", "L40S", 0.864, {"fp32": 91.6, "tf32": 183.0, "fp16": 362.0, "bf16": 362.0, "fp8": 733.0, "int8": 733.0}, "NVIDIA L40S data sheet"),
        (r"\bL40\b", "L40", 0.864, {"fp32": 90.5, "tf32": 90.5, "fp16": 181.0, "bf16": 181.0, "fp8": 362.0, "int8": 362.0}, "NVIDIA L40 data sheet"),
        (r"\bL4\b", "L4", 0.3, {"fp32": 30.3, "tf32": 60.0, "fp16": 121.0, "bf16": 121.0, "fp8": 242.5, "int8": 242.5}, "NVIDIA L4 data sheet"),
        (r"\bRTX 6000 Ada\b", "RTX 6000 Ada", 0.96, {"fp32": 91.1, "tf32": 182.1, "fp16": 364.2, "bf16": 364.2, "fp8": 728.5, "int8": 728.5}, _ADA),
        (r"\bRTX A6000\b", "RTX A6000", 0.768, {"fp32": 38.7, "tf32": 77.4, "fp16": 154.8, "bf16": 154.8, "int8": 309.7}, "NVIDIA GA102 white paper"),
        (r"\bRTX 5090\b(?! (?:D|Laptop))", "RTX 5090", 1.792, {"fp32": 104.8, "tf32": 104.8, "fp16": 209.5, "bf16": 209.5, "fp8": 419.0, "int8": 838.0}, "NVIDIA RTX Blackwell GPU architecture white paper"),
        (r"\bRTX 4090\b(?! (?:D|Laptop))", "RTX 4090", 1.008, {"fp32": 82.6, "tf32": 82.6, "fp16": 165.2, "bf16": 165.2, "fp8": 330.3, "int8": 660.6}, _ADA),
        (r"\bRTX 3090\b(?! Ti)", "RTX 3090", 0.936, {"fp32": 35.6, "tf32": 35.6, "fp16": 71.2, "bf16": 71.2, "int8": 284.7}, "NVIDIA GA102 white paper"),
        (r"\bT4\b", "T4", 0.32, {"fp32": 8.1, "fp16": 65.0, "int8": 130.0}, "NVIDIA T4 data sheet"),
        (r"\bV100-PCIE", "V100 PCIe", 0.9, {"fp64": 7.0, "fp32": 14.0, "fp16": 112.0}, "NVIDIA V100 data sheet"),
        (r"\bV100-SXM2", "V100 SXM2", 0.9, {"fp64": 7.8, "fp32": 15.7, "fp16": 125.0}, "NVIDIA V100 data sheet"),
        (r"\bMI355X\b", "MI355X", 8.0, {"fp64": 78.6, "fp32": 157.3, "fp16": 2516.6, "bf16": 2516.6, "fp8": 5033.2, "int8": 5033.2, "fp4": 10066.3}, "AMD Instinct MI355X data sheet (2025)"),
        (r"\bMI350X\b", "MI350X", 8.0, {"fp64": 72.1, "fp32": 144.2, "fp16": 2306.9, "bf16": 2306.9, "fp8": 4613.7, "int8": 4613.7, "fp4": 9227.5}, "AMD Instinct MI350X data sheet (2025)"),
        (r"\bMI325X\b", "MI325X", 6.0, _MI300X, _CDNA3),
        (r"\bMI300X\b", "MI300X", 5.3, _MI300X, _CDNA3),
        (r"\bMI300A\b", "MI300A", 5.3, {"fp64": 122.6, "fp32": 122.6, "tf32": 490.3, "fp16": 980.6, "bf16": 980.6, "fp8": 1961.2, "int8": 1961.2}, _CDNA3),
        (r"\bMI250X\b", "MI250X, one die", 1.6384, {"fp64": 47.9, "fp32": 47.9, "fp16": 191.5, "bf16": 191.5, "int8": 191.5}, _CDNA2),
        (r"\bMI250\b", "MI250, one die", 1.6384, {"fp64": 45.3, "fp32": 45.3, "fp16": 181.0, "bf16": 181.0, "int8": 181.0}, _CDNA2),
        (r"\bMI210\b", "MI210", 1.6384, {"fp64": 45.3, "fp32": 45.3, "fp16": 181.0, "bf16": 181.0, "int8": 181.0}, _CDNA2),
        (r"\bMI100\b", "MI100", 1.2288, {"fp64": 11.5, "fp32": 46.1, "fp16": 184.6, "bf16": 92.3, "int8": 184.6}, "AMD Instinct MI100 data sheet (2020)"),
    )
)  # fmt: skip
"""By a pattern that the device's name contains; the first that fits."""


def peaks_of_name(name: str) -> DevicePeaks | None:
    """None: a device that is not listed, or a part of one."""
    if _NO_WHOLE_DEVICE.search(name):
        return None
    return next((peaks for pattern, peaks in PEAKS if pattern.search(name)), None)


def peaks_of(devices: Sequence[Mapping[str, Any]]) -> DevicePeaks | None:
    """Of `deviceProperties`; None where they are not all of one listed device."""
    names = {device.get("name") for device in devices}
    if len(names) != 1:
        return None
    (name,) = names
    return peaks_of_name(name) if isinstance(name, str) else None
