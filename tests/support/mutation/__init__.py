"""Mutation scores: how many small changes of a module its tests notice. Run by ``make mutate``."""
