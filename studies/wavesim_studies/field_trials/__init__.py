"""Recorded acoustic trials: reconstruction from raw detections, and the same trial simulated.

The data sets stay outside the project. The modules read them from a folder that the user names.
"""
