"""Bytes of a store's files, in blocks, copies, or from the index beside them."""
