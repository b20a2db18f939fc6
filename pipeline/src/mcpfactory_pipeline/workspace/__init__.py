"""The workspace: its servers, their settings, addresses and waivers."""
