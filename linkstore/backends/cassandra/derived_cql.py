"""CQL statements about the tables derived from documents: members of link groups, and words.

Every write is a batch with one timestamp. It adds states to rows, or replaces the earlier states.
"""

from __future__ import annotations

from typing import Final

from linkstore.backends.cassandra.cql import Tables, stamped_batch

_OF_GROUPS: Final = "WHERE kind = ? AND tag IN ? AND side = ? AND bucket IN ? PER PARTITION LIMIT ?"


def read_members(tables: Tables) -> str:
    """Select members: (tag, id, states). Values: kind, tags, side, buckets, limit per partition."""
    return f"SELECT tag, id, states FROM {tables.members} {_OF_GROUPS}"


def count_members(tables: Tables) -> str:
    """Select a row (tag,) for each member of link groups. Values as for :func:`read_members`."""
    return f"SELECT tag FROM {tables.members} {_OF_GROUPS}"


def read_more_members(tables: Tables) -> str:
    """Select the next members of a partition: (tag, id, states).

    Values: kind, tag, side, bucket, last id, limit.
    """
    return (
        f"SELECT tag, id, states FROM {tables.members}"
        " WHERE kind = ? AND tag = ? AND side = ? AND bucket = ? AND id > ? LIMIT ?"
    )


_MEMBERS_KEY: Final = "kind, tag, side, bucket"


def read_range_of_members(tables: Tables) -> str:
    """Select members in a range of tokens: (kind, tag, side, bucket, id, states, write times).

    Values: the token before the range, the last token of the range.
    """
    return (
        f"SELECT {_MEMBERS_KEY}, id, states, WRITETIME(states) FROM {tables.members}"
        f" WHERE token({_MEMBERS_KEY}) > ? AND token({_MEMBERS_KEY}) <= ?"
    )


def write_members(tables: Tables, count: int, *, replace: bool, lifetime: bool) -> str:
    """Write members. Values: timestamp, and for each: lifetime, states, kind, tag, side, bucket, id.

    Args:
        tables: The tables of the store.
        count: Number of members.
        replace: Whether earlier states are removed.
        lifetime: Whether the rows expire.
    """
    one = (
        f"UPDATE {tables.members}{_using(lifetime)} SET states = {_states(replace)}"
        " WHERE kind = ? AND tag = ? AND side = ? AND bucket = ? AND id = ?"
    )
    return stamped_batch(one, count)


def delete_members(tables: Tables, count: int) -> str:
    """Delete from ``count`` partitions. Values: timestamp, and for each: kind, tag, side, bucket, ids."""
    one = f"DELETE FROM {tables.members} WHERE kind = ? AND tag = ? AND side = ? AND bucket = ? AND id IN ?"
    return stamped_batch(one, count)


_OF_WORD: Final = "WHERE shard = ? AND bucket = ? AND word = ?"


def read_first_postings(tables: Tables) -> str:
    """Select the first postings of a word: (hash, id, states). Values: shard, bucket, word, limit."""
    return f"SELECT hash, id, states FROM {tables.words} {_OF_WORD} LIMIT ?"


def read_next_postings(tables: Tables) -> str:
    """Select the next postings of a word: (hash, id, states).

    Values: shard, bucket, word, hash and id of the last one, limit.
    """
    return f"SELECT hash, id, states FROM {tables.words} {_OF_WORD} AND (hash, id) > (?, ?) LIMIT ?"


def read_word_partitions(tables: Tables) -> str:
    """Select the partitions of words in a range of tokens: (shard, bucket).

    Values: the token before the range, the last token of the range. A read of all partitions would pass over
    more deleted rows than a server allows.
    """
    return (
        f"SELECT DISTINCT shard, bucket FROM {tables.words}"
        " WHERE token(shard, bucket) > ? AND token(shard, bucket) <= ?"
    )


_POSTING: Final = "word, hash, id, states, WRITETIME(states)"


def read_postings_first(tables: Tables) -> str:
    """Select the first postings of a partition: (word, hash, id, states, write times).

    Values: shard, bucket, limit.
    """
    return f"SELECT {_POSTING} FROM {tables.words} WHERE shard = ? AND bucket = ? LIMIT ?"


def read_postings_after(tables: Tables) -> str:
    """Select the next postings of a partition: (word, hash, id, states, write times).

    Values: shard, bucket, word, hash and id of the last one, limit.
    """
    return (
        f"SELECT {_POSTING} FROM {tables.words} WHERE shard = ? AND bucket = ?"
        " AND (word, hash, id) > (?, ?, ?) LIMIT ?"
    )


def write_postings(tables: Tables, count: int, *, replace: bool, lifetime: bool) -> str:
    """Write postings. Values: timestamp, and for each: lifetime, states, shard, bucket, word, hash, id.

    Args:
        tables: The tables of the store.
        count: Number of postings.
        replace: Whether earlier states are removed.
        lifetime: Whether the rows expire.
    """
    one = (
        f"UPDATE {tables.words}{_using(lifetime)} SET states = {_states(replace)}"
        f" {_OF_WORD} AND hash = ? AND id = ?"
    )
    return stamped_batch(one, count)


def delete_postings(tables: Tables, count: int) -> str:
    """Delete postings. Values: timestamp, and for each: shard, bucket, word, hash, id."""
    return stamped_batch(f"DELETE FROM {tables.words} {_OF_WORD} AND hash = ? AND id = ?", count)


def _states(replace: bool) -> str:
    return "?" if replace else "states + ?"


def _using(lifetime: bool) -> str:
    return " USING TTL ?" if lifetime else ""
