"""WaVeSim SDK, the library of brokers, emulators and viewers."""

__version__ = "0.1.0"
