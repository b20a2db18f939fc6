"""Web dashboard with the status of each server in a workspace: live on loopback, or as a static, read-only site."""
