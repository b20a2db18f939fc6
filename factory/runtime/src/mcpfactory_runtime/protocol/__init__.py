"""The MCP protocol without I/O: no clock, event loop or sockets. Input and output are bytes, messages and events."""
