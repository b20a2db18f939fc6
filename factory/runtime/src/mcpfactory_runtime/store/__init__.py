"""Where a server keeps what several of its processes must know: one interface, in memory, in a file, or in Redis or Valkey."""
