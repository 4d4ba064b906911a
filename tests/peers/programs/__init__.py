"""Trainings that run in the environment of the packages compared with.

PyPI has torchvision for CUDA alone: its compiled operators do not load beside torch's CPU
build, and it stops where they are not declared. No training here calls one.
"""

import torch

_library = torch.library.Library("torchvision", "DEF")
for _name in ("nms", "qnms"):
    _library.define(f"{_name}(Tensor dets, Tensor scores, float threshold) -> Tensor")
