"""WaVeSim SDK: everything that a broker, an emulator or a viewer needs to meet the server."""

__version__ = "0.1.0"
