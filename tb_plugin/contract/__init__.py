"""The HTTP contract: declarations, the wire's form and the page's types."""
