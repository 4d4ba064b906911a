"""The time of profiled steps: operators, kernels, devices, idleness."""
