"""What an uncertainty study reports: the fitted models, their quality, a sample, tables."""
