"""FLOP and bytes of operators by their shapes, and what the device could have done."""
