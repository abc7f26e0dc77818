"""The explorer: a page in the browser over the sitemaps of a site, of files or of a crawl (`usp view`)."""
