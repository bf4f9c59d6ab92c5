"""What README.md and docs/ say in numbers, a file per part; ``python tools/readme.py`` writes them."""
