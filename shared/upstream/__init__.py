"""Tools of other MCP servers: their configuration, the connections to them, and how they are published here."""
