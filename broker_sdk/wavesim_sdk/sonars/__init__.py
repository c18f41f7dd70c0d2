"""What is fixed about imaging sonars: materials, beam patterns, instruments, and the frames that they give."""
