"""Changes of weights that leave a function as it is (orhan2017, section 2.5)."""
