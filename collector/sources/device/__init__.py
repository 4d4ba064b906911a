"""What is measured on devices: torch's allocator, its peaks, free memory, sensors."""
