"""The wire protocol: a codec that consists of pure functions, and sessions that use no sockets or clocks."""
