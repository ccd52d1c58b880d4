"""Websites as sources of pages, fetched politely, and only from safe addresses."""
