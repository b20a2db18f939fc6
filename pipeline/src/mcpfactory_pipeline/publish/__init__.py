"""Publishing what a channel offers, byte for byte, to targets outside the workspace: `table.TARGETS` has them."""
