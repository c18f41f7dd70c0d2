"""WaVeSim viewer: pictures of logs, and mission control in the browser."""
