"""Where the time of profiled steps went: operators, kernels, devices, idleness."""
