"""How statements reach a cluster and answers come back: sessions, deadlines, retries, placement."""
