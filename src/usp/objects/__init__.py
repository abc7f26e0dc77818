"""The objects that you get from usp: sitemaps, pages, problems, and how a document was fetched."""
