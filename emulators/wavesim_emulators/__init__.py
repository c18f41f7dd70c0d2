"""WaVeSim sensor emulators: separate processes that write sensor columns in shared memory."""
