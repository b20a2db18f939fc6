"""Remote servers, behind a URL or a command, as parts of a local server: their items are listed, and calls forwarded."""
