"""Delivery of servers: CI workflows, client configurations, publication and releases."""
