"""The devices that can be virtual: a small table, and any by memory and capability."""

from __future__ import annotations

import re
from dataclasses import dataclass

MIB = 1 << 20
GIB = 1 << 30

CONTEXT_SOURCE = (
    "what nvidia-smi shows for a process after torch's first kernels; "
    "it grows with the kernels that are loaded"
)


@dataclass(frozen=True)
class Architecture:
    """What devices of one compute capability have in common; sizes in bytes."""

    threads_per_sm: int
    blocks_per_sm: int
    shared_per_sm: int
    shared_per_block: int


@dataclass(frozen=True)
class Device:
    """One kind of GPU.

    `memory_bytes` is what torch reports as `total_memory`: a few hundred MiB
    less than the label, and up to 0.3 GiB apart between drivers.
    `context_bytes` is an estimate, lowest and highest, from `context_source`.
    """

    key: str
    name: str
    label: str
    memory_bytes: int
    capability: tuple[int, int]
    multiprocessors: int
    l2_bytes: int
    bus_bits: int
    context_bytes: tuple[int, int]
    traits: frozenset[str] = frozenset()
    """Words that may follow the model's name: memory, form, and other names of the model."""
    context_source: str = CONTEXT_SOURCE

    @property
    def model(self) -> str:
        """The first word of the key, as `_words_of` writes it."""
        return _words_of(self.key)[0]

    @property
    def architecture(self) -> Architecture:
        """What its compute capability decides."""
        return _architecture(self.capability)


ARCHITECTURES: dict[tuple[int, int], Architecture] = {
    (7, 0): Architecture(2048, 32, 98304, 98304),
    (7, 5): Architecture(1024, 16, 65536, 65536),
    (8, 0): Architecture(2048, 32, 167936, 166912),
    (8, 6): Architecture(1536, 16, 102400, 101376),
    (8, 9): Architecture(1536, 24, 102400, 101376),
    (9, 0): Architecture(2048, 32, 233472, 232448),
    (10, 0): Architecture(2048, 32, 233472, 232448),
    (12, 0): Architecture(1536, 24, 102400, 101376),
}


def _architecture(capability: tuple[int, int]) -> Architecture:
    """That of the newest known capability that is not newer."""
    older = [
        architecture for architecture in ARCHITECTURES if architecture <= capability
    ]
    return ARCHITECTURES[max(older, default=(7, 0))]


def _device(
    key: str,
    name: str,
    label: str,
    mebibytes: int,
    capability: tuple[int, int],
    multiprocessors: int,
    l2_mebibytes: int,
    bus_bits: int,
    context: tuple[int, int],
    traits: str = "",
) -> Device:
    low, high = context
    size = label.rpartition(" ")[2].lower()
    return Device(
        key=key,
        name=name,
        label=label,
        memory_bytes=mebibytes * MIB,
        capability=capability,
        multiprocessors=multiprocessors,
        l2_bytes=l2_mebibytes * MIB,
        bus_bits=bus_bits,
        context_bytes=(low * MIB, high * MIB),
        traits=frozenset((size, *traits.split())),
    )


_MAKER = re.compile(r"\b(?:nvidia|tesla|geforce|rtx|gpu)(?:-|\b|(?=a?\d))")
_SUFFIX = re.compile(r"-(ada|ti|super)\b")
_SIZE_WORD = re.compile(r"(\d+)g(?:i?b)?")


def _words_of(name: str) -> list[str]:
    """The words that tell devices apart: `NVIDIA A100-SXM4-80GB` is a100, sxm4, 80gb."""
    plain = re.sub(r"[\s_/-]+", "-", name.strip().lower())
    plain = _SUFFIX.sub(r"\1", _MAKER.sub("", plain)).replace("pro-", "pro")
    return [_SIZE_WORD.sub(r"\1gb", word) for word in plain.strip("-").split("-")]


DEVICES: dict[str, Device] = {
    device.key: device
    for device in (
        _device("gb200", "NVIDIA GB200", "GB200 186GB", 188743, (10, 0), 152, 126, 8192, (500, 900), "192gb"),
        _device("b200", "NVIDIA B200", "B200 180GB", 182642, (10, 0), 148, 126, 8192, (500, 900), "192gb sxm sxm6"),
        _device("h200", "NVIDIA H200", "H200 141GB", 143156, (9, 0), 132, 60, 6144, (450, 750), "sxm sxm5 nvl hbm3e"),
        _device("gh200", "NVIDIA GH200 480GB", "GH200 96GB", 96768, (9, 0), 132, 60, 6144, (450, 750), "480gb"),
        _device("h100", "NVIDIA H100 80GB HBM3", "H100 80GB", 81079, (9, 0), 132, 50, 5120, (450, 750), "sxm sxm5 hbm3 mega"),
        _device("h100-pcie", "NVIDIA H100 PCIe", "H100 PCIe 80GB", 81079, (9, 0), 114, 50, 5120, (450, 750), "pcie hbm2e"),
        _device("h100-nvl", "NVIDIA H100 NVL", "H100 NVL 94GB", 95232, (9, 0), 132, 60, 6144, (450, 750), "nvl pcie hbm3"),
        _device("h800", "NVIDIA H800", "H800 80GB", 81079, (9, 0), 132, 50, 5120, (450, 750), "sxm sxm5 hbm3"),
        _device("h20", "NVIDIA H20", "H20 96GB", 97505, (9, 0), 78, 60, 6144, (450, 750), "sxm sxm5 hbm3"),
        _device("a100", "NVIDIA A100-SXM4-80GB", "A100 80GB", 81050, (8, 0), 108, 40, 5120, (400, 600), "sxm sxm4 pcie hbm2e"),
        _device("a100-40gb", "NVIDIA A100-SXM4-40GB", "A100 40GB", 40339, (8, 0), 108, 40, 5120, (400, 600), "sxm sxm4 pcie hbm2"),
        _device("a800", "NVIDIA A800-SXM4-80GB", "A800 80GB", 81050, (8, 0), 108, 40, 5120, (400, 600), "sxm sxm4 pcie"),
        _device("a30", "NVIDIA A30", "A30 24GB", 24062, (8, 0), 56, 24, 3072, (300, 500), "pcie"),
        _device("l40s", "NVIDIA L40S", "L40S 48GB", 45466, (8, 9), 142, 96, 384, (300, 550)),
        _device("l40", "NVIDIA L40", "L40 48GB", 45466, (8, 9), 142, 96, 384, (300, 550)),
        _device("l4", "NVIDIA L4", "L4 24GB", 22692, (8, 9), 58, 48, 192, (200, 400)),
        _device("a40", "NVIDIA A40", "A40 48GB", 45416, (8, 6), 84, 6, 384, (250, 450), "pcie"),
        _device("a10g", "NVIDIA A10G", "A10G 24GB", 22723, (8, 6), 80, 6, 384, (250, 450)),
        _device("a10", "NVIDIA A10", "A10 24GB", 22592, (8, 6), 72, 6, 384, (250, 450), "pcie"),
        _device("rtx-pro-6000", "NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX PRO 6000 96GB", 97249, (12, 0), 188, 128, 512, (400, 700), "blackwell server workstation edition"),
        _device("rtx6000-ada", "NVIDIA RTX 6000 Ada Generation", "RTX 6000 Ada 48GB", 48520, (8, 9), 142, 96, 384, (300, 550), "generation"),
        _device("a6000", "NVIDIA RTX A6000", "RTX A6000 48GB", 48677, (8, 6), 84, 6, 384, (250, 450)),
        _device("a5000", "NVIDIA RTX A5000", "RTX A5000 24GB", 24247, (8, 6), 64, 6, 384, (250, 450)),
        _device("a4000", "NVIDIA RTX A4000", "RTX A4000 16GB", 16107, (8, 6), 48, 4, 256, (250, 450)),
        _device("rtx5090", "NVIDIA GeForce RTX 5090", "RTX 5090 32GB", 32109, (12, 0), 170, 96, 512, (400, 700)),
        _device("rtx5080", "NVIDIA GeForce RTX 5080", "RTX 5080 16GB", 15842, (12, 0), 84, 64, 256, (400, 700)),
        _device("rtx4090", "NVIDIA GeForce RTX 4090", "RTX 4090 24GB", 24217, (8, 9), 128, 72, 384, (300, 550)),
        _device("rtx4080", "NVIDIA GeForce RTX 4080", "RTX 4080 16GB", 16076, (8, 9), 76, 64, 256, (300, 550)),
        _device("rtx4070ti", "NVIDIA GeForce RTX 4070 Ti", "RTX 4070 Ti 12GB", 12000, (8, 9), 60, 48, 192, (300, 550)),
        _device("rtx4070", "NVIDIA GeForce RTX 4070", "RTX 4070 12GB", 12000, (8, 9), 46, 36, 192, (300, 550)),
        _device("rtx3090", "NVIDIA GeForce RTX 3090", "RTX 3090 24GB", 24268, (8, 6), 82, 6, 384, (250, 450)),
        _device("rtx3090ti", "NVIDIA GeForce RTX 3090 Ti", "RTX 3090 Ti 24GB", 24248, (8, 6), 84, 6, 384, (250, 450)),
        _device("rtx3080", "NVIDIA GeForce RTX 3080", "RTX 3080 10GB", 10015, (8, 6), 68, 5, 320, (250, 450)),
        _device("rtx3070", "NVIDIA GeForce RTX 3070", "RTX 3070 8GB", 7967, (8, 6), 46, 4, 256, (250, 450)),
        _device("rtx3060", "NVIDIA GeForce RTX 3060", "RTX 3060 12GB", 12042, (8, 6), 28, 3, 192, (250, 450)),
        _device("rtx2080ti", "NVIDIA GeForce RTX 2080 Ti", "RTX 2080 Ti 11GB", 11018, (7, 5), 68, 5, 352, (150, 400)),
        _device("t4", "Tesla T4", "T4 16GB", 15095, (7, 5), 40, 4, 256, (100, 350)),
        _device("v100", "Tesla V100-SXM2-16GB", "V100 16GB", 16151, (7, 0), 80, 6, 4096, (300, 500), "sxm sxm2 pcie"),
        _device("v100-32gb", "Tesla V100-SXM2-32GB", "V100 32GB", 32501, (7, 0), 80, 6, 4096, (300, 500), "sxm sxm2 sxm3 pcie"),
    )
}  # fmt: skip
"""Every named device, by key."""

_DESCRIBED = re.compile(
    r"(?P<size>\d+(?:\.\d+)?)\s*(?P<unit>[GM]i?B?)\s*"
    r"(?:,\s*(?:sm_?)?(?P<major>\d{1,2})\.(?P<minor>\d))?",
    re.IGNORECASE,
)
_UNITS = {"g": GIB, "gi": GIB, "gib": GIB, "gb": 10**9, "m": MIB, "mi": MIB, "mib": MIB, "mb": 10**6}  # fmt: skip


def parse_device(text: str) -> Device:
    """The device that `text` names (`h100`) or describes (`24GiB,8.9`, `80GB`).

    Names are also nvidia-smi's and the clouds': `NVIDIA A100-SXM4-80GB`, `a100-80gb`,
    `nvidia-tesla-t4`, `4090`. A description without a capability has 9.0's.

    Raises:
        ValueError: one sentence that names the known devices.
    """
    device = _named(text)
    if device is not None:
        return device
    match = _DESCRIBED.fullmatch(text.strip())
    if not match:
        raise ValueError(
            f"no virtual device {text!r}: give memory and capability as in 24GiB,8.9, "
            f"or one of {', '.join(DEVICES)}"
        )
    memory = int(float(match["size"]) * _UNITS[match["unit"].lower()])
    if memory < 64 * MIB:
        raise ValueError(f"a virtual device of {text!r} is too small: 64MiB at least")
    capability = (int(match["major"] or 9), int(match["minor"] or 0))
    if capability < (5, 0):
        raise ValueError(f"no torch of today runs on capability {match['major']}.{match['minor']}: 5.0 at least")  # fmt: skip
    size_text = f"{match['size']} {match['unit']}"
    if match["major"]:
        size_text += f", {capability[0]}.{capability[1]}"
    return Device(
        key=text.strip(),
        name=f"Virtual GPU {size_text}",
        label=f"GPU of {size_text}",
        memory_bytes=memory,
        capability=capability,
        multiprocessors=132 if capability >= (9, 0) else 108,
        l2_bytes=40 * MIB,
        bus_bits=384,
        context_bytes=(200 * MIB, 700 * MIB),
    )


def _named(text: str) -> Device | None:
    """The first device of that model which has all other words of the name."""
    model, *variant = _words_of(text)
    return next(
        (
            device
            for device in DEVICES.values()
            if device.model == model and device.traits.issuperset(variant)
        ),
        None,
    )
