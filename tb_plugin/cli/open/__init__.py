"""The verb open, and the page that it serves without TensorBoard."""
