"""Sends statements to a cluster: sessions, deadlines, retries, placement."""
