"""`python -m phloem`."""

from phloem.cli import main

main()
