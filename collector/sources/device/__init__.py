"""Sources of devices: torch's allocator, its peaks, free memory, sensors."""
