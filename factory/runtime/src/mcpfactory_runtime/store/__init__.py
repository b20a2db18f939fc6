"""Storage shared by the processes of a server: one interface; in memory, in a file, or in Redis or Valkey."""
