"""Virtual Water Linked DVL A50 or A125, with the protocols of firmware 2.7.2: JSON (json_v3.3), serial (2.8.0), PD4,
PD6 and HTTP. It takes its measurements from the ``dvl`` sensor of a body.
"""
