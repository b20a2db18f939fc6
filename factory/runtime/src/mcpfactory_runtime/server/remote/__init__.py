"""A server elsewhere, behind a URL or a command, as one of this process: what it has is offered, and calls are passed on."""
