"""The link extractors that come with linkstore, found through the entry points ``linkstore.extractors``."""
