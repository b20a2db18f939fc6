"""Each request of a client as whoever operates the server sees it: counted in metrics. Loaded where somebody asks for it."""
