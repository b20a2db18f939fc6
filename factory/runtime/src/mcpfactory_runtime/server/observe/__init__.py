"""Each request of a client as whoever operates the server sees it: counted in metrics, as spans of a trace, and as lines of a log. Loaded where somebody asks for it."""
