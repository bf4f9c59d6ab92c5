"""The differentiation engine: what a network computed is recorded, then swept forwards and backwards."""
