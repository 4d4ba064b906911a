"""Functions around whose calls something was collected: calls, statistics, captures."""
