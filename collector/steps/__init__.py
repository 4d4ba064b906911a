"""The training loop: steps, phases, spans, and the parts of a step that are timed."""
