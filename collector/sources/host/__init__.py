"""Sources of the host: processors, memory, disks, network, processes."""
