"""The stages of this workspace."""
