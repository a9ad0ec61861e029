"""The web module: pages as Markdown, through the sandbox's egress proxy."""
