"""Style, colours and plots from plain arrays; besides the plots of single items, all that imports matplotlib."""
