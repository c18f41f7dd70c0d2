"""The wire protocol: a codec of pure functions, and sessions without sockets or clocks."""
