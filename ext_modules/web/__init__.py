"""The web module: pages as Markdown, fetched through the sandbox's egress proxy."""
