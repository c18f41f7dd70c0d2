"""The engine. It consists of a core that uses neither a clock nor a process, and of the process that runs this core."""
