"""From stored runs to a static site that works from disk."""
