"""The engine: a core without clock or process, and the process around it."""
