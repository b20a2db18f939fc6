"""Status, inbox and drift as plain data for commands, dashboard and the factory's own server."""
