"""What is measured on the host: processors, memory, disks, network, processes."""
