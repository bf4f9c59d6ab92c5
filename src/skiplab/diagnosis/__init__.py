"""What is wrong with a user's network: findings, remedies and comparisons; see ``skiplab.diagnose``."""
