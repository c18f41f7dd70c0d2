"""``python -m wavesim_sdk`` runs the ``wavesim`` command."""

from wavesim_sdk.console import main

main()
