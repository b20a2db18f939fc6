"""The checks' own client: it records each byte as evidence, and can send invalid messages."""
