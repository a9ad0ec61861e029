"""The docs module: PDF, Word and spreadsheets as Markdown and tables."""
