"""Traffic encounters: layout, simulation, and scoring under the collision regulations."""
