"""Campaigns: one configuration, factors, a design, seeds and metrics; many runs, one table."""
