"""The torch of a Python, found without importing it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from memboard.collector.process.child_python import WITHOUT_CURRENT_FOLDER
from memboard.collector.virtual.unavailable import VirtualGpuUnavailable

_ASK: Final = f"""{WITHOUT_CURRENT_FOLDER}
import json
from importlib.util import find_spec
torch = find_spec("torch")
print(json.dumps(torch and torch.origin))
"""


@dataclass(frozen=True)
class TorchBuild:
    """An installed CUDA build of torch.

    `cuda`, `cudnn` and `nccl` are the versions it was built for, as those
    libraries write them: 13000 for 13.0, 92000 for 9.20.0, 22907 for 2.29.7.
    """

    version: str
    folder: Path
    cuda: int
    cudnn: int = 91000
    nccl: int = 22703

    @property
    def libraries(self) -> list[Path]:
        return sorted((self.folder / "lib").glob("*.so*"))


def torch_of(python: str) -> TorchBuild:
    """The CUDA build of torch that `python` would import.

    Raises:
        VirtualGpuUnavailable: there is no torch, or it is not built for CUDA.
    """
    folder = _folder(python)
    if folder is None:
        raise VirtualGpuUnavailable(
            f"there is no torch in {python}: pip install --no-deps torch"
        )
    text = (folder / "version.py").read_text()
    version = _assigned(text, "__version__") or "?"
    cuda = _assigned(text, "cuda")
    if cuda is None:
        plain = version.partition("+")[0]
        raise VirtualGpuUnavailable(
            f"torch {version} is not built for CUDA: pip install --no-deps "
            f"'torch==={plain}' brings the build that is (no GPU is needed)"
        )
    major, minor = (int(part) for part in cuda.split(".")[:2])
    return TorchBuild(
        version, folder, cuda=major * 1000 + minor * 10, **_libraries(folder, version)
    )


def _libraries(folder: Path, version: str) -> dict[str, int]:
    """The versions of cuDNN and NCCL that its package asks for."""
    metadata = folder.parent / f"torch-{version}.dist-info" / "METADATA"
    if not metadata.is_file():
        plain = version.partition("+")[0]
        metadata_files = sorted(
            folder.parent.glob(f"torch-{plain}*.dist-info/METADATA")
        )
        if not metadata_files:
            return {}
        metadata = metadata_files[0]
    text = metadata.read_text(errors="replace")
    versions: dict[str, int] = {}
    for library, major, minor, patch in re.findall(
        r"nvidia-(cudnn|nccl)-cu\d+[ (]*==\s*(\d+)\.(\d+)\.(\d+)", text
    ):
        versions[library] = int(major) * 10000 + int(minor) * 100 + int(patch)
    return versions


def _folder(python: str) -> Path | None:
    if python == sys.executable:
        spec = find_spec("torch")
        origin = spec.origin if spec else None
    else:
        try:
            done = subprocess.run(  # noqa: S603  # the caller's own Python
                [python, "-c", _ASK], capture_output=True, text=True, check=True
            )
            origin = json.loads(done.stdout)
        except (OSError, subprocess.CalledProcessError, ValueError) as error:
            raise VirtualGpuUnavailable(
                f"{python} does not run as a Python ({error}): give the one that has torch"
            ) from error
    return Path(origin).parent if origin else None


def _assigned(text: str, variable: str) -> str | None:
    match = re.search(
        rf"^{variable}(?:\s*:[^=]*)?\s*=\s*['\"]([^'\"]+)['\"]", text, re.MULTILINE
    )
    return match[1] if match else None
