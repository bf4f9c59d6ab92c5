"""``python -m skiplab`` is the command ``skiplab``."""

from skiplab.cli import main

if __name__ == "__main__":
    main()
