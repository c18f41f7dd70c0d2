"""Imaging sonars: materials, beam patterns, instrument presets, frames and survey file formats."""
