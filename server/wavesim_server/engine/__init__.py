"""The engine, which consists of a core without a clock or a process, and of the process around it."""
