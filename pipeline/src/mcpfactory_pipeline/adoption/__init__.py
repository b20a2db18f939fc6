"""Servers that exist and were adopted: how each kind is recognised, built into a candidate, started, installed and watched."""
