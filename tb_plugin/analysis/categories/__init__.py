"""Categories of allocations: parameter, gradient, activation, optimizer state ..."""
