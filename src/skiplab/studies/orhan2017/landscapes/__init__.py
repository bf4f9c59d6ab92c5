"""What figures 4 and S1 share: every configuration of four toy networks with binary weights, on random targets."""
