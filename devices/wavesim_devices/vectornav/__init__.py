"""Virtual VectorNav VN-100, VN-200 or VN-300 with its ASCII commands, registers and binary outputs."""
