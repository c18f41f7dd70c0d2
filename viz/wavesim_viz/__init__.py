"""WaVeSim viewer: plots of logs, and mission control in the browser."""
