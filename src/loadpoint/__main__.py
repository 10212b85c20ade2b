"""`python -m loadpoint` is the command `loadpoint`."""

from .cli import main

main()
