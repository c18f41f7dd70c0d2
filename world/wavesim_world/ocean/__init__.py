"""Ocean fields shared by server, emulators and user programs: sea bed, water column, flow."""
