"""The wire protocol, with a codec of pure functions, and sessions without sockets or clocks."""
