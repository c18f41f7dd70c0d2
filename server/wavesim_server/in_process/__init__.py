"""Trials in one process: engine, emulators and on-board programs, without sockets, serialisation or keep-alive."""
