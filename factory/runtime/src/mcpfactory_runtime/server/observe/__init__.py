"""Each request of a client as whoever operates the server sees it: counted in metrics, and as spans of a trace. Loaded where somebody asks for it."""
