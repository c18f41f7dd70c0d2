"""The logger. It writes one MCAP file per run, or several if the log is divided into parts."""
