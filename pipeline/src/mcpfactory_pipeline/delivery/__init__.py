"""Deliver servers: CI workflows, client configurations, targets for publication, and releases."""
