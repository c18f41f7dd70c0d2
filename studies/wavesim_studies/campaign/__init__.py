"""Campaigns run one configuration many times with factors, a design, seeds and metrics, and collect the results in one
table.
"""
