"""What ran in a trace, by name: operators, kernels, modules, and the stacks that call them."""
