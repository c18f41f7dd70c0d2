"""The engine: its core without clock or process, and the process around it."""
