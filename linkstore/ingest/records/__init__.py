"""Documents that come ready: JSON lines and what other loaders made."""
