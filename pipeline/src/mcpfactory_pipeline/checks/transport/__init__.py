"""The checks' own client: it keeps every byte that was exchanged as evidence, and can send what a correct client would not."""
