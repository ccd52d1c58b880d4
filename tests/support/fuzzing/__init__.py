"""Fuzzing of what reads text that others wrote: ``python -m fuzzing``."""
