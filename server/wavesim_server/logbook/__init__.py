"""The logger: one MCAP file per run."""
