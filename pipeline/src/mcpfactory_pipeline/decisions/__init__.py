"""Decisions of people, promotions, rollbacks, and restoration of channels."""
