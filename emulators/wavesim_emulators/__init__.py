"""WaVeSim sensor emulators: separate processes that compute sensor values and write them to shared memory."""
