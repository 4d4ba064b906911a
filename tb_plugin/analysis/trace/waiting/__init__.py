"""What devices and threads waited for: idle time and the critical path."""
