"""Decisions of people, promotion and rollback, and restoration of channels from the state."""
