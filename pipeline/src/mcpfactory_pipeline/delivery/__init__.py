"""Deliver servers: CI workflows, client configurations, publish targets and releases."""
