"""Remote servers (a URL or a command) in a local server that lists their items and forwards calls."""
