"""From API document to channel staging, without a person: which documents arrive, and what stops the others."""
