"""The engine. It consists of a core, which uses neither a clock nor processes, and the process that runs this core."""
