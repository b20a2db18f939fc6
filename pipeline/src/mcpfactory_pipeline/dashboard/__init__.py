"""Where every server of a workspace stands, in a browser: live on loopback, or as a static site. It only reads."""
