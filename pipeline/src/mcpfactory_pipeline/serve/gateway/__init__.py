"""Several servers of a workspace behind one endpoint, each a process of its own that is started when it is needed."""

from mcpfactory_pipeline.serve.gateway.gateway import make_gateway

__all__ = ["make_gateway"]
