"""Campaigns: many runs of one configuration with varied factors and seeds, whose metrics are collected in one table."""
