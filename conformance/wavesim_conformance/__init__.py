"""Tests of other implementations of the protocol: clients, servers and emulators."""
