"""Credentials of an API: which names are theirs (`names`), and parameters that are some (`binding`)."""

from __future__ import annotations

from mcpfactory_codegen.credentials.binding import NO_OPTIONS, CredentialOptions, bind_credentials

__all__ = ["NO_OPTIONS", "CredentialOptions", "bind_credentials"]
