"""Tables of pages and sitemaps, in memory and in files."""
