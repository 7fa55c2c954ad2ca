"""``python -m rods``."""

from rods.cli.main import main

main()
