"""Memory of modules in the window that is shown."""
