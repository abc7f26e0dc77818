"""What users hold: pages, sitemaps, problems."""
