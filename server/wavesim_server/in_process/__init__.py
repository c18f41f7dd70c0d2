"""Trials whose engine, emulators and on-board programs run in one process, without sockets, serialisation or keep-alive
messages.
"""
