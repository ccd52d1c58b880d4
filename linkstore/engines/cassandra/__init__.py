"""The Cassandra backend: documents and link members as partitions of a cluster. Extra ``cassandra``."""
