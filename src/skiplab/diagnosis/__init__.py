"""What ails a user's network: findings, remedies and comparisons; see ``skiplab.diagnose``."""
