"""Remote servers (a URL or a command) mounted in a local server, which lists their items and forwards calls."""
