"""A server that gives a store's tools to clients of the Model Context Protocol: ``linkstore mcp``.

The protocol is specified at https://modelcontextprotocol.io; the extra ``mcp`` installs its SDK.
"""
