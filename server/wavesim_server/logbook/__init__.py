"""The logger, which writes one MCAP file per run."""
