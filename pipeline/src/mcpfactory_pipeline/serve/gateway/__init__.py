"""Gateway: several servers of a workspace behind one endpoint, each in its own process, started on demand."""

from mcpfactory_pipeline.serve.gateway.gateway import make_gateway

__all__ = ["make_gateway"]
