"""Status, inbox and drift as plain data, which the commands, the dashboard and the factory's own server show."""
