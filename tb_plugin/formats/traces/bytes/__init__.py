"""The bytes of a trace: found, inflated, cut into pieces that can be decoded."""
