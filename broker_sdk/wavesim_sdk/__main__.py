"""``python -m wavesim_sdk`` is the command ``wavesim``."""

from wavesim_sdk.console import main

main()
