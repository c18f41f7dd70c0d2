"""WaveSim pictures: what a run's log looks like."""
