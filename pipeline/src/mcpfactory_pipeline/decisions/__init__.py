"""Decisions of people, promotion and rollback, and channels restored from the state."""
