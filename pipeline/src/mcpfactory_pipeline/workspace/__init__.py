"""The workspace: its servers, settings, addresses and waivers."""
