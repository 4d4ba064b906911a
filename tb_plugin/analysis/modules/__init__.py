"""Memory by module over one window."""
