"""An allocator's history: what lived when, where it lay, and what was free."""
