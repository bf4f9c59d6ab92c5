"""How deep linear networks with skips learn (orhan2017, section 2.3)."""
