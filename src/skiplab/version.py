"""The one place that says which version of skiplab this is; the package's metadata reads it from here."""

__version__ = "0.1.0"
