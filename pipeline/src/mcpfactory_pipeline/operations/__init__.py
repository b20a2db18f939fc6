"""Operations: what users do to a workspace, each declared once for command line, dashboard and agents."""
