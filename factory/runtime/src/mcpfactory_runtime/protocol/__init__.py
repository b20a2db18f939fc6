"""The wire without I/O: no clock, no event loop, no sockets. Bytes and messages in, events and messages out."""
