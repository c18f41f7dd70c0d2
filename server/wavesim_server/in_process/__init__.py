"""Trials in one process, with engine, emulators and on-board programs, without sockets, serialisation or keep-alive
messages.
"""
