"""Traffic encounters: layout, simulation and scoring by the collision regulations."""
