"""Style, colours and plots from plain arrays; the only room that imports matplotlib."""
