"""What several papers do: search gains and then decide, networks measured over training, best against worst."""
